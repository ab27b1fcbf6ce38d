"""All that can be trained on has one name space, and can be had by some way."""

import pytest

from activemem.studies.catalog import KINDS, dataset_names, datasets, require_dataset
from activemem.studies.catalog.datasets import CorpusError
from activemem.studies.catalog.parallel_corpora import require_parallel_corpus
from activemem.studies.catalog.treebanks import Treebank, register_treebank, require_treebank


def test_every_kind_is_listed_with_all_of_its_names():
    assert list(KINDS) == ["texts", "pairs", "treebanks"]
    assert sorted(dataset_names()) == list(datasets.names())


def test_a_name_is_taken_for_every_kind():
    one = require_treebank("wsj")
    with pytest.raises(ValueError, match=r"^corpus 'text8' is already defined$"):
        register_treebank(
            Treebank(
                name="text8",
                title="",
                folder="",
                splits=one.splits,
                sentences=one.sentences,
                licence="",
                source="",
            )
        )


def test_a_name_of_another_kind_is_none_of_this_kind():
    with pytest.raises(CorpusError) as caught:
        require_parallel_corpus("wsj")
    assert str(caught.value).startswith("unknown parallel corpus 'wsj'; nearest: ")
    with pytest.raises(CorpusError) as caught:
        require_dataset("multi30k-de")
    assert str(caught.value) == "unknown corpus 'multi30k-de'; nearest: multi30k-en-de"


@pytest.mark.parametrize("name", dataset_names())
def test_all_of_it_is_installed_or_has_an_address_or_says_where_a_person_gets_it(name):
    dataset = require_dataset(name)
    assert dataset.installed + bool(dataset.downloads) + (dataset.manual_instructions is not None) == 1
    known = {each.name for each in dataset.downloads}
    assert not dataset.manual_instructions or "https://" in dataset.manual_instructions
    if dataset.downloads:
        packed = {
            f"{name}{suffix}" for source in dataset.sources for name in source.names for suffix in ("", ".gz")
        }
        assert known <= packed | {each.archive for each in dataset.sources} or not dataset.sources
        assert all(each.archive in known | {None} for each in dataset.sources)


@pytest.mark.parametrize("name", dataset_names())
def test_a_source_without_a_checksum_has_an_archive_that_has_one(name):
    assert all(source.digest or source.archive for source in require_dataset(name).sources)
