"""Datasets share one name space, and each can be obtained."""

import re
import tomllib
from pathlib import Path

import pytest
from pydantic import ValidationError

from activemem import register_dataset
from activemem.studies import CorpusError, dataset_names, require_dataset
from activemem.studies.catalog import datasets
from activemem.studies.catalog.datasets import KINDS, ParallelCorpus, Treebank


def test_every_kind_is_listed_with_all_of_its_names():
    assert list(KINDS) == ["texts", "pairs", "treebanks"]
    assert dataset_names() == tuple(name for kind in KINDS.values() for name in dataset_names(kind))


def test_the_file_names_each_dataset_once_and_uses_each_file_and_download():
    tables = tomllib.loads(Path(datasets.__file__).with_name("datasets.toml").read_text(encoding="utf-8"))
    known = [require_dataset(name) for name in dataset_names()]
    assert sorted(each.name for each in known) == sorted(name for kind in KINDS for name in tables[kind])
    assert {each.name for dataset in known for each in dataset.downloads} == set(tables["downloads"])
    assert len({source for dataset in known for source in dataset.sources}) == len(tables["files"])


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"size_md": 1.0}, "texts.verses.size_md\n  Unexpected keyword argument"),
        ({"title": 1}, "texts.verses.title\n  Input should be a valid string"),
        (
            {"splits": {"train": {"source": "verses", "end": 1}}},
            "texts.verses.splits.train.end\n",
        ),
    ],
    ids=["unknown", "mistyped", "unknown within"],
)
def test_a_table_that_is_not_as_its_kind_is_refused(changes, fault):
    table = {"title": "", "folder": "", "splits": {}, "alphabet": "[ab]", "licence": "", "source": ""}
    files = {"verses": {"names": ["verses.txt"]}}
    texts = {"verses": table | changes}
    with pytest.raises(ValidationError, match=re.escape(fault)):
        datasets._read_tables({"downloads": {}, "files": files, "texts": texts, "pairs": {}, "treebanks": {}})


def test_a_name_is_taken_for_every_kind():
    one = require_dataset("wsj", Treebank)
    with pytest.raises(ValueError, match=r"^the corpus 'text8' is already defined by activemem$"):
        register_dataset(
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
        require_dataset("wsj", ParallelCorpus)
    assert str(caught.value).startswith("unknown parallel corpus 'wsj'; known: multi30k-en-de, ")
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
