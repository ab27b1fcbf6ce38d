"""A corpus in token files: written once despite concurrency, and read back unchanged."""

import hashlib
import lzma
import os
from pathlib import Path

import pytest
import torch

from activemem import Corpus, load_plugin
from activemem.engine import DataError
from activemem.engine.corpora.files import dataset_folder, read_source
from activemem.engine.data.text.corpus import open_corpus, sentences_as_lines
from activemem.plugins import unload_plugin
from activemem.studies import dataset_names, require_dataset
from activemem.studies.catalog.tasks import LanguageModelSettings

from ....forked_commands import start_program

SPLITS = ("train", "dev", "test")


def task(corpus="paradise-lost", tokens="characters", **more):
    return LanguageModelSettings(name="language_model", corpus=corpus, tokens=tokens, **more)


def lengths(text):
    return {split: len(getattr(text, split).tokens) for split in SPLITS}


def characters(text, split, count):
    """Return the first characters of a split of Paradise Lost."""
    table = b"\n" + require_dataset("paradise-lost", Corpus).alphabet
    return bytes(table[each] for each in getattr(text, split).tokens[:count]).decode()


def test_the_installed_corpus_is_there_without_a_download(tmp_path):
    text = open_corpus(task(), tmp_path)
    assert text.vocabulary.size == 65
    assert lengths(text) == {"train": 387_922, "dev": 40_173, "test": 27_983}
    assert characters(text, "train", 50) == "Book I\n\nOf Man's first disobedience, and the fruit\n"[:50]
    assert (characters(text, "dev", 8), characters(text, "test", 9)) == ("Book XI\n", "Book XII\n")
    assert [text.train.words, text.dev.words, text.test.words] == [76_654, 8_001, 5_579]


def test_lines_and_words_of_a_split_are_where_its_marks_are(tmp_path):
    text = open_corpus(task(), tmp_path).dev
    ends = (torch.nonzero(text.tokens == 0).flatten() + 1).tolist()
    assert text.lines.tolist() == [0, *ends]
    assert len(text.line_words) == len(ends)
    assert int(text.line_words.sum()) == text.words


def test_tokens_are_written_once_and_mapped_into_memory(tmp_path):
    first = open_corpus(task(tokens="bpe", pieces=400), tmp_path)
    files = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
    second = open_corpus(task(tokens="bpe", pieces=400), tmp_path)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()} == files
    for split in SPLITS:
        assert torch.equal(getattr(first, split).tokens, getattr(second, split).tokens)
    (tokens,) = tmp_path.rglob("train.tokens")
    assert tokens.stat().st_size == 2 * len(first.train.tokens)
    assert first.train.tokens.dtype == torch.int16
    assert 300 < int(first.train.tokens.max()) < first.vocabulary.size == 400


def test_different_tokens_have_different_folders(tmp_path):
    for asked in (task(), task(tokens="bpe", pieces=400), task(tokens="bpe", pieces=401)):
        open_corpus(asked, tmp_path)
    names = sorted(path.name.rsplit("-", 1)[0] for path in (tmp_path / "encoded").iterdir() if path.is_dir())
    assert names == ["paradise-lost-bpe-400", "paradise-lost-bpe-401", "paradise-lost-characters"]


ASK = """\
import sys
from pathlib import Path
from activemem.engine.data.text.corpus import open_corpus
from activemem.studies.catalog.tasks import LanguageModelSettings
task = LanguageModelSettings(name="language_model", corpus="paradise-lost", tokens="bpe", pieces=500)
text = open_corpus(task, Path(sys.argv[1]))
print(int(text.train.tokens.long().sum()), len(text.test.tokens))
"""


def test_processes_that_ask_at_once_get_the_same_tokens_and_leave_nothing_else(tmp_path):
    script = tmp_path / "ask.py"
    script.write_text(ASK, encoding="utf-8")
    asking = [start_program(script, str(tmp_path)) for _ in range(2)]
    answers = {process.communicate(timeout=600)[0] for process in asking}
    assert [process.returncode for process in asking] == [0, 0]
    assert len(answers) == 1
    assert sorted(path.is_dir() for path in (tmp_path / "encoded").iterdir()) == [False, True]


def test_unfinished_files_of_a_dead_process_are_written_again(tmp_path):
    open_corpus(task(), tmp_path)
    (place,) = (path for path in (tmp_path / "encoded").iterdir() if path.is_dir())
    place.rename(place.with_name(f".{place.name}.{0:032x}"))
    text = open_corpus(task(), tmp_path)
    assert characters(text, "test", 9) == "Book XII\n"
    assert [path for path in (tmp_path / "encoded").iterdir() if path.is_dir()] == [place]


PLUGIN = """
from activemem import Corpus, FileSlice, SourceFile, register_dataset

FILE = SourceFile(names=("ab.txt",), size=12, digest="sha256:DIGEST")
SPLITS = {"train": FileSlice(source=FILE, stop=4), "dev": FileSlice(source=FILE, start=4, stop=STOP)}
register_dataset(
    Corpus(
        name="ab", title="a and b", folder="ab", manual_instructions="write it", licence="none", source="me",
        splits={**SPLITS, "test": FileSlice(source=FILE, start=8)}, alphabet=b"ALPHABET",
    )
)
"""


def test_tokens_follow_the_alphabet_and_the_splits_of_a_plugin(tmp_path):
    def opened(alphabet, stop):
        values = {"ALPHABET": alphabet, "STOP": stop, "DIGEST": hashlib.sha256(b"abb\n" * 3).hexdigest()}
        text = PLUGIN
        for name, value in values.items():
            text = text.replace(name, value)
        (tmp_path / "ab.py").write_text(text, encoding="utf-8")
        unload_plugin(tmp_path / "ab.py")
        load_plugin(tmp_path / "ab.py")
        return open_corpus(task("ab"), tmp_path)

    (tmp_path / "ab").mkdir()
    (tmp_path / "ab" / "ab.txt").write_bytes(b"abb\n" * 3)
    assert opened("ab", "8").dev.tokens.tolist() == [1, 2, 2, 0]
    assert opened("ab", "7").dev.tokens.tolist() == [1, 2, 2, 0]
    assert opened("ba", "6").dev.tokens.tolist() == [2, 1, 0]
    told = r"^ab, train: expected one of the 1 characters of the alphabet, got byte 98 \(b\) at 1$"
    with pytest.raises(DataError, match=told):
        opened("a", "8")
    unload_plugin(tmp_path / "ab.py")


def test_a_file_of_tokens_that_was_cut_is_reported(tmp_path, golden):
    open_corpus(task(), tmp_path)
    (file,) = tmp_path.rglob("dev.tokens")
    file.write_bytes(file.read_bytes()[:-1])
    with golden.raises(DataError):
        open_corpus(task(), tmp_path)


def test_a_corpus_that_is_not_here_says_how_to_get_it(tmp_path, golden):
    with golden.raises(DataError):
        open_corpus(task("text8"), tmp_path)
    assert [path.suffix for path in (tmp_path / "encoded").iterdir()] == [".lock"]


def test_a_folder_that_is_a_file_cannot_hold_tokens(tmp_path, golden):
    (tmp_path / "encoded").touch()
    with golden.raises(DataError):
        open_corpus(task(), tmp_path)


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """Return a data folder with copies of a few small corpora."""
    real = os.environ.get("ACTIVEMEM_TEST_DATA")
    if not real:
        pytest.skip("ACTIVEMEM_TEST_DATA names no folder with real corpora")
    folder = tmp_path_factory.mktemp("published")
    for place in Path(real).iterdir():
        if place.name in {require_dataset(name, Corpus).folder for name in dataset_names(Corpus)}:
            (folder / place.name).symlink_to(place)
    return folder


def test_wikitext_has_the_published_counts_of_words(published):
    text = open_corpus(task("wikitext-2", "words"), published)
    counts = {"train": 2_088_628, "dev": 217_646, "test": 245_569}
    assert lengths(text) == counts
    assert {split: getattr(text, split).words for split in SPLITS} == counts
    for split, sizes in require_dataset("wikitext-2", Corpus).scored_words.items():
        found = getattr(text, split)
        assert sizes == (found.words - 1, int(found.line_bytes.sum()) - found.first_bytes)
    assert text.vocabulary.size == 33_278 == len(torch.unique(text.train.tokens))


@pytest.mark.parametrize("tokens", ["characters", "bpe"])
def test_words_of_wikitext_are_counted_alike_in_any_tokens(published, tokens):
    text = open_corpus(task("wikitext-2", tokens, pieces=1000), published)
    assert [getattr(text, split).words for split in SPLITS] == [2_088_628, 217_646, 245_569]
    assert int(text.train.tokens.max()) < text.vocabulary.size


def test_the_small_text8_has_every_character_of_its_alphabet(published):
    text = open_corpus(task("text8-6m"), published)
    assert lengths(text) == {"train": 5_877_826, "dev": 500_001, "test": 500_001}  # with a mark each
    assert len(torch.unique(text.train.tokens)) == text.vocabulary.size == 28


def test_the_alphabet_of_wikitext_is_that_of_its_text(published):
    text = open_corpus(task("wikitext-2"), published)
    assert len(torch.unique(text.train.tokens)) == text.vocabulary.size == 178


def test_the_alphabet_of_enwik8_is_that_of_its_text(published):
    pieces = (published / "enwik8").glob("enwik8.*.xz")  # a quarter of train, dev and test: all bytes occur
    found = {byte for piece in pieces for byte in set(lzma.decompress(piece.read_bytes()))}
    assert bytes(sorted(found - {ord("\n")})) == require_dataset("enwik8", Corpus).alphabet


@pytest.mark.parametrize("split", ["dev", "test"])
def test_the_small_splits_of_wikitext_103_are_as_published(published, split):
    corpus = require_dataset("wikitext-103", Corpus)
    text = read_source(corpus, corpus.splits[split].source, dataset_folder(corpus, published))
    assert len(text.split()) + text.count(b"\n") == {"dev": 217_646, "test": 245_569}[split]


@pytest.mark.parametrize(("split", "count"), [("dev", 7_831), ("test", 8_958)])
def test_wikitext_103_has_about_as_many_sentences_as_the_program_of_the_first_paper(published, split, count):
    corpus = require_dataset("wikitext-103", Corpus)
    text = read_source(corpus, corpus.splits[split].source, dataset_folder(corpus, published))
    sentences = sentences_as_lines(text).splitlines()
    assert len(sentences) == count  # the program says 7,832 and 8,985
    assert b" ".join(text.split()) == b" ".join(b" ".join(sentences).split())


def test_sentences_end_at_separate_marks_whatever_the_lines():
    text = b" \n = Heading = \n \n One sentence . A second , with 3.5 in it ? \n It goes on \n ! An end"
    assert sentences_as_lines(text).decode().splitlines() == [
        "= Heading = One sentence .",
        "A second , with 3.5 in it ?",
        "It goes on !",
        "An end",
    ]
