"""Sentence pairs: read as published, split by source, written once."""

import gzip
import hashlib
import io
import os
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from activemem import SourceFile
from activemem.engine import DataError
from activemem.engine.data.sentence_pairs import (
    PairCorpusSpec,
    iter_pairs,
    open_pairs,
    open_prepared,
    split_pairs,
)
from activemem.studies import CorpusError, dataset_names, require_dataset
from activemem.studies.catalog.datasets import Download, HeldOutFractions, PairFiles, ParallelCorpus
from activemem.studies.catalog.tasks import TranslationSettings


@dataclass
class Task:
    """The parts of a task's table that matter here."""

    corpus: str = "tatoeba-eng-ita"
    tokens: str = "spelled"
    pieces: int = 4000
    joint_vocabulary: bool = False


def sha(data):
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def corpus(files: Mapping[str, tuple[PairFiles, ...]], **more):
    return ParallelCorpus(
        name="small",
        title="",
        languages=("en", "fr"),
        folder="small",
        files=files,
        pairs=3,
        licence="",
        source="",
        **more,
    )


def put(folder: Path, name: str, text: str) -> SourceFile:
    """Write a file of the corpus; return its description."""
    (folder / "small").mkdir(exist_ok=True)
    (folder / "small" / name).write_bytes(text.encode())
    return SourceFile(names=(name,), size=len(text.encode()), digest=sha(text.encode()))


def columns(folder: Path, rows: int = 400):
    """Write a corpus with two columns, and each source twice with other spaces and case."""
    lines = [
        f"{form}\tphrase {number}\n"
        for number in range(rows)
        for form in (f"Line {number}", f" line  {number}")
    ]
    return corpus(
        {"train": (PairFiles(source=put(folder, "pairs.tsv", "".join(lines))),)}, held_out=HeldOutFractions()
    )


def test_pairs_of_two_files_are_read_line_by_line_and_only_a_line_feed_ends_a_line(tmp_path):
    files = PairFiles(
        source=put(tmp_path, "a.en", "one\u2028two\nthree \n"), target=put(tmp_path, "a.fr", "un\r\ntrois\n")
    )
    assert list(iter_pairs(corpus({}), files, tmp_path)) == [("one\u2028two", "un"), ("three ", "trois")]


def test_pairs_of_two_columns_may_have_further_columns(tmp_path):
    files = PairFiles(source=put(tmp_path, "a.tsv", "one\tun\tCC-BY\n"))
    assert list(iter_pairs(corpus({}), files, tmp_path)) == [("one", "un")]


def test_only_the_first_bytes_of_a_file_count(tmp_path):
    side = put(tmp_path, "a.tsv", "one\tun\n")
    with (tmp_path / "small" / "a.tsv").open("ab") as file:
        file.write(b"two\tdeux\n")
    assert list(iter_pairs(corpus({}), PairFiles(source=side), tmp_path)) == [("one", "un")]


def test_missing_different_and_uneven_files_are_rejected_by_name(tmp_path, golden):
    small, _place = corpus({}), tmp_path / "small"
    one = put(tmp_path, "a.en", "one\n")

    def refusal(**sides):
        with pytest.raises(DataError) as fault:
            list(iter_pairs(small, PairFiles(**sides), tmp_path))
        return str(fault.value)

    uneven = refusal(source=one, target=put(tmp_path, "a.fr", "un\ndeux\n"))
    golden(uneven)
    missing = refusal(source=SourceFile(names=("b.en",), digest="sha256:0"))
    golden(missing)
    another = refusal(source=replace(one, digest="sha256:0"), target=one)
    golden(another)
    single = refusal(source=one)
    golden(single)


def archived(folder: Path, members: Mapping[str, bytes]) -> ParallelCorpus:
    """Return a corpus published in an archive with these files."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    (folder / "small").mkdir()
    (folder / "small" / "all.zip").write_bytes(packed.getvalue())
    download = Download(name="all.zip", urls=(), digest=sha(packed.getvalue()))
    return corpus({}, downloads=(download,))


def test_files_within_an_archive_are_read_packed_or_marked_up(tmp_path):
    marked = '<doc>\n<seg id="1">A  B &amp; C\u00a0!</seg>\n<SEG id="2"> D</SEG>\n</doc>\n'
    small = archived(tmp_path, {"a/x.en.gz": gzip.compress(b"one\ntwo\n"), "a/x.fr.sgm": marked.encode()})
    text = "A B &amp; C\u00a0!\nD\n".encode()
    files = PairFiles(
        source=SourceFile(names=("a/x.en.gz",), archive="all.zip"),
        target=SourceFile(names=("x.fr", "a/x.fr.sgm"), size=len(text), digest=sha(text), archive="all.zip"),
    )
    assert list(iter_pairs(small, files, tmp_path)) == [("one", "A B &amp; C\u00a0!"), ("two", "D")]


def test_an_archive_whose_files_have_no_checksum_is_held_against_its_own(tmp_path):
    small = archived(tmp_path, {"x.en": b"one\n"})
    path = tmp_path / "small" / "all.zip"
    path.write_bytes(path.read_bytes() + b"!")
    files = PairFiles(source=SourceFile(names=("x.en",), archive="all.zip"))
    with pytest.raises(DataError) as fault:
        list(iter_pairs(small, files, tmp_path))
    digest = small.downloads[0].digest
    assert str(fault.value) == f"small: {path}: expected {digest}, got {sha(path.read_bytes())}"


def by_split(small, folder):
    """Return the sources of each split, and all, normalised."""
    found = {split: [] for split in ("train", "dev", "test")}
    for pair in split_pairs(small, folder):
        found[pair.split].append(" ".join(pair.source.casefold().split()))
    return found


def test_no_source_is_in_two_splits_of_a_collection_whatever_its_case_and_spaces(tmp_path):
    splits = by_split(columns(tmp_path, 2000), tmp_path)
    sources = {split: set(found) for split, found in splits.items()}
    assert sum(map(len, sources.values())) == 2000
    assert sum(map(len, splits.values())) == 4000
    assert 346 < len(sources["test"]) < 454
    assert 80 < len(sources["dev"]) < 120


def test_a_split_hangs_on_the_source_alone(tmp_path):
    many, few = columns(tmp_path), None
    whole = by_split(many, tmp_path)
    few = by_split(columns(tmp_path, 50), tmp_path)
    for split in ("train", "dev", "test"):
        assert set(few[split]) <= set(whole[split])


def test_sources_of_the_test_set_are_left_out_of_what_is_trained_on_and_so_are_blanks(tmp_path):
    def files(name, english, french):
        sides = put(tmp_path, f"{name}.en", english), put(tmp_path, f"{name}.fr", french)
        return (PairFiles(source=sides[0], target=sides[1]),)

    small = corpus(
        {
            "train": files("train", "Why?\nyes\n\nno\nyes\n", "Pourquoi ?\noui\nrien\n \nsi\n"),
            "dev": files("dev", "why?\nperhaps\n", "quoi\npeut-être\n"),
            "test": files("test", "Why?\nWhy?\n", "Pour quoi ?\nPourquoi ?\n"),
        }
    )
    assert by_split(small, tmp_path) == {
        "train": ["yes", "yes"],
        "dev": ["perhaps"],
        "test": ["why?", "why?"],
    }


def writing(small, folder, **kinds):
    return PairCorpusSpec(name=small.name, pairs=lambda: split_pairs(small, folder), kinds=kinds)


@pytest.mark.parametrize("kind", ["spelled", "words", "bpe"])
def test_pairs_are_written_in_numbers_that_give_the_sentences_back(tmp_path, kind, golden):
    small = columns(tmp_path)
    place = tmp_path / "encoded"
    text = open_prepared(writing(small, tmp_path, source=(kind, 300), target=(kind, 310)), place)
    assert (text.source.size, text.target.size) == (300, 310)
    pairs = list(split_pairs(small, tmp_path))
    for name in ("train", "dev", "test"):
        split = getattr(text, name)
        for side, vocabulary in (("source", text.source), ("target", text.target)):
            sentences = [getattr(pair, side) for pair in pairs if pair.split == name]
            numbers = getattr(split, side)
            found = [
                vocabulary.decode(numbers.tokens[numbers.lines[line] : numbers.lines[line + 1]].tolist())
                for line in range(len(numbers.lines) - 1)
            ]
            if kind != "words" and name != "train":
                assert found == split.sentences(side) == sentences
            assert len(found) == len(sentences)
            assert numbers.line_words.tolist() == [len(sentence.split()) + 1 for sentence in sentences]
    with golden.raises(DataError):
        text.train.sentences("source")


def test_a_joint_vocabulary_is_learnt_from_both_sides_and_is_the_same_for_both(tmp_path):
    small = columns(tmp_path)
    asked = writing(small, tmp_path, source=("spelled_digits", 300), target=("spelled_digits", 300))
    text = open_prepared(replace(asked, joint=True), tmp_path / "encoded")
    assert text.source.content() == text.target.content()
    (line,), (phrase,) = text.source.encode("line"), text.source.encode("phrase")  # a word of each side
    assert text.target.decode([line, phrase]) == "line phrase"
    first = text.train.source.tokens[: text.train.source.lines[1]].tolist()
    assert text.source.decode(first).casefold().split()[0] == "line"


def test_whether_the_vocabulary_is_joint_is_in_the_name_of_what_is_encoded(tmp_path):
    table = {"name": "translation", "corpus": "multi30k-en-fr", "tokens": "words", "pieces": 10_000}
    for joint in (False, True):
        with pytest.raises(DataError):
            open_pairs(TranslationSettings.model_validate({**table, "joint_vocabulary": joint}), tmp_path)
    names = {lock.stem for lock in (tmp_path / "encoded").iterdir()}
    assert len(names) == 2
    assert f"multi30k-en-fr-words-10000-{ENCODED['multi30k-en-fr']}" in names


def test_a_corpus_without_a_split_is_refused_and_leaves_nothing(tmp_path, golden):
    small = columns(tmp_path, 2)
    asked = writing(small, tmp_path, source=("spelled", 400), target=("spelled", 400))
    with golden.raises(DataError):
        open_prepared(asked, tmp_path / "encoded")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["encoded.lock", "small"]


def test_corpora_are_asked_for_by_name():
    assert dataset_names(ParallelCorpus) == (
        "multi30k-en-de",
        "multi30k-en-fr",
        "tatoeba-eng-deu",
        "tatoeba-eng-fra",
        "tatoeba-eng-ita",
        "tatoeba-eng-spa",
        "wmt-news-en-fr",
        "wmt14-en-fr",
    )
    with pytest.raises(CorpusError) as fault:
        require_dataset("wmt14-en-de", ParallelCorpus)
    assert str(fault.value) == "unknown parallel corpus 'wmt14-en-de'; nearest: wmt14-en-fr"


def test_every_file_of_an_archive_belongs_to_one_that_can_be_fetched():
    for name in dataset_names(ParallelCorpus):
        known = {each.name for each in require_dataset(name, ParallelCorpus).downloads}
        for files in require_dataset(name, ParallelCorpus).files.values():
            sides = [side for each in files for side in (each.source, each.target) if side is not None]
            assert all(side.digest is not None or side.archive in known for side in sides), name


ENCODED = {  # hashes of all that the numbers depend on
    "multi30k-en-de": "e99a486b73ba",
    "multi30k-en-fr": "508c672666d6",
    "tatoeba-eng-deu": "844f020db690",
    "tatoeba-eng-fra": "0a321c9a87da",
    "tatoeba-eng-ita": "3d5b381ad073",
    "tatoeba-eng-spa": "77591728a40d",
    "wmt-news-en-fr": "f492f9b4c9e2",
    "wmt14-en-fr": "c6c84ecf1f36",
}


@pytest.mark.parametrize("name", dataset_names(ParallelCorpus))
def test_encoded_pairs_are_found_again_by_name(tmp_path, name):
    with pytest.raises(DataError):  # the pairs are not here, but it is known where they would be written
        open_pairs(Task(corpus=name, tokens="words", pieces=10_000), tmp_path)
    (lock,) = (tmp_path / "encoded").iterdir()
    assert lock.name == f"{name}-words-10000-{ENCODED[name]}.lock"


REAL = {  # train, dev and test pairs
    "tatoeba-eng-spa": (22_547, 1_573, 5_880),
    "tatoeba-eng-fra": (22_552, 1_551, 5_897),
    "tatoeba-eng-deu": (22_540, 1_636, 5_824),
    "tatoeba-eng-ita": (13_702, 941, 3_657),
    "multi30k-en-de": (28_999, 1_014, 1_000),
    "multi30k-en-fr": (28_999, 1_014, 1_000),
    "wmt-news-en-fr": (13_573, 3_000, 3_003),
}


@pytest.mark.parametrize("name", REAL)
def test_real_pairs_are_split_and_written(tmp_path, name):
    real = os.environ.get("ACTIVEMEM_TEST_DATA")
    if real is None:
        pytest.skip("ACTIVEMEM_TEST_DATA names no folder with real pairs")
    home = require_dataset(name, ParallelCorpus).folder
    (tmp_path / home).symlink_to(Path(real, home))
    text = open_pairs(Task(corpus=name, tokens="words", pieces=4000), tmp_path)
    splits = (text.train, text.dev, text.test)
    assert tuple(len(split.source.lines) - 1 for split in splits) == REAL[name]
    assert tuple(len(split.target.lines) - 1 for split in splits) == REAL[name]
    (place,) = (path for path in (tmp_path / "encoded").iterdir() if path.is_dir())
    assert place.name.startswith(f"{name}-words-4000-")
