"""Tokenizers from files: what they encode is what their own libraries encode, and faults are reported."""

import sys

import pytest
import tiktoken
import tokenizers

from activemem import StudyError, load_model, load_study, run_study
from activemem.engine import DataError, Machine
from activemem.engine.data.vocabularies.build import load_text_vocabulary, text_vocabulary_from_dict
from activemem.engine.data.vocabularies.tokenizers import JsonTokenizer
from activemem.storage import Store
from activemem.studies.own_data.tokenizers import read_ranks
from activemem.studies.study import load_recorded_study

from ....study_texts import study_text
from ...tokenizer_factories import GPT2_WORDS, byte_level_json, open_text, ranks_of

TEXT = "".join(f"Line {n} of naïve words,  and 日本 {n * n}\n\n\tit's {n % 7}\n" for n in range(200))
JSON = byte_level_json(TEXT, 320)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "my.txt").write_text(TEXT, encoding="utf-8")
    (tmp_path / "tokenizer.json").write_bytes(JSON)
    (tmp_path / "my.tiktoken").write_bytes(ranks_of(JSON))
    return tmp_path


def lines_of(split):
    """Return the tokens of each line without its mark, as the library numbers them."""
    bounds = zip(split.lines[:-1].tolist(), split.lines[1:].tolist(), strict=True)
    return [(split.tokens[start : end - 1].long() - 1).tolist() for start, end in bounds]


def test_each_line_has_the_tokens_of_the_library(folder):
    text = open_text(folder, {"path": "my.txt"}, tokens="pretrained", tokenizer="tokenizer.json")
    library = tokenizers.Tokenizer.from_buffer(JSON)
    lines = TEXT.removesuffix("\n").split("\n")
    found = [line for split in (text.train, text.dev, text.test) for line in lines_of(split)]
    assert found == [library.encode(line).ids for line in lines]
    marks = {int(split.tokens[0]) for split in (text.train, text.dev, text.test)}
    assert marks == {text.vocabulary.end}


def test_ranks_of_tiktoken_have_the_tokens_of_the_same_merges(folder):
    asked = {"path": "my.tiktoken", "pattern": GPT2_WORDS}
    ranks = open_text(folder, {"path": "my.txt"}, tokens="pretrained", tokenizer=asked)
    library = tiktoken.Encoding(
        name="test", pat_str=GPT2_WORDS, mergeable_ranks=read_ranks(ranks_of(JSON)), special_tokens={}
    )
    lines = TEXT.removesuffix("\n").split("\n")
    found = [line for split in (ranks.train, ranks.dev, ranks.test) for line in lines_of(split)]
    assert found == [library.encode(line) for line in lines]


@pytest.mark.parametrize("kind", ["json", "ranks"])
def test_a_text_is_decoded_as_it_was(kind):
    content = JSON if kind == "json" else ranks_of(JSON)
    options = {"pattern": GPT2_WORDS} if kind == "ranks" else {}
    stored = load_text_vocabulary(kind, content, **options).to_dict()
    vocabulary = text_vocabulary_from_dict(stored)
    encoded = vocabulary.encode_bytes(TEXT.encode())
    assert vocabulary.decode(encoded.tokens.tolist()) == TEXT
    assert vocabulary.decode(vocabulary.encode("naïve\nwor")) == "naïve\nwor"
    assert encoded.lossless


def test_padding_and_truncation_of_a_file_are_not_applied():
    tokenizer = tokenizers.Tokenizer.from_buffer(JSON)
    tokenizer.enable_truncation(2)
    tokenizer.enable_padding(length=9)
    vocabulary = JsonTokenizer(tokenizer.to_str().encode())
    assert vocabulary.decode(vocabulary.encode("a longer line\n")) == "a longer line\n"


def test_training_twice_gives_the_same_pieces():
    lines = TEXT.splitlines()
    assert JsonTokenizer.learn(lines, 300).content() == JsonTokenizer.learn(lines, 300).content()


def test_a_text_that_is_too_small_for_its_pieces_says_how_many_it_yields(golden):
    with golden.raises(DataError):
        JsonTokenizer.learn(["ab ab"], 1000)
    with golden.raises(DataError):
        JsonTokenizer.learn(TEXT.splitlines(), 100_000)


@pytest.mark.parametrize(
    ("package", "task"),
    [
        ("tokenizers", {"tokens": "byte_bpe", "pieces": 300}),
        ("tokenizers", {"tokens": "pretrained", "tokenizer": "tokenizer.json"}),
        ("tiktoken", {"tokens": "pretrained", "tokenizer": {"path": "my.tiktoken", "pattern": "."}}),
    ],
)
def test_a_missing_package_is_named_with_its_extra(folder, monkeypatch, package, task, golden):
    monkeypatch.setitem(sys.modules, package, None)
    with golden.raises(DataError):
        open_text(folder, {"path": "my.txt"}, **task)


@pytest.mark.parametrize(
    ("name", "content", "asked"),
    [
        ("a.json", b"{}", "a.json"),
        ("a.json", JSON, {"path": "a.json", "pattern": "."}),
        ("a.tiktoken", ranks_of(JSON), "a.tiktoken"),
        ("a.tiktoken", b"IQ== 0\n", {"path": "a.tiktoken", "pattern": "."}),
        ("a.txt", b"IQ== 0\na b\n", {"path": "a.txt", "pattern": "."}),
        ("a.json", JSON, "b.json"),
    ],
)
def test_faults_of_a_file_are_reported_where_it_is_named(tmp_path, name, content, asked, golden):
    (tmp_path / name).write_bytes(content)
    text = study_text(
        model={"recipe": "conv(k=3)"},
        task={
            "name": "language_model",
            "corpus": "paradise-lost",
            "tokens": "pretrained",
            "tokenizer": asked,
        },
        train={"curriculum": None},
    )
    (tmp_path / "study.toml").write_text(text, encoding="utf-8")
    with pytest.raises(StudyError) as caught:
        load_study(tmp_path / "study.toml")
    golden([fault.message for fault in caught.value.faults])


@pytest.mark.parametrize(
    "task",
    [
        {"tokens": "pretrained"},
        {"tokenizer": "tokenizer.json"},
    ],
)
def test_a_tokenizer_and_its_tokens_go_together(folder, task, golden):
    text = study_text(
        model={"recipe": "conv(k=3)"},
        task={"name": "language_model", "corpus": {"path": "my.txt"}, **task},
        train={"curriculum": None},
    )
    (folder / "study.toml").write_text(text, encoding="utf-8")
    with golden.raises(StudyError):
        load_study(folder / "study.toml")


def test_a_trained_model_reads_and_writes_text_without_the_files(folder, notes):
    (folder / "study.toml").write_text(
        study_text(
            study={"name": "text", "title": "A text", "keep_weights": True},
            model={"recipe": "conv(k=3)"},
            task={
                "name": "language_model",
                "corpus": {"path": "my.txt"},
                "tokens": "pretrained",
                "tokenizer": "tokenizer.json",
                "context": 8,
            },
            train={"curriculum": None, "batch_size": 2, "epochs": 1, "steps_per_epoch": 2},
        ),
        encoding="utf-8",
    )
    study, store = load_study(folder / "study.toml"), Store(folder / "results")
    assert run_study(study, store, Machine(data=folder / "data"), notes, local=True).done == 1
    for name in ("my.txt", "tokenizer.json"):
        (folder / name).unlink()
    again = load_recorded_study(store.records.load("text"))
    assert [trial.id for trial in again.trials] == [trial.id for trial in study.trials]
    (file,) = (folder / "results").rglob("*.safetensors")
    model = load_model(file)
    assert model.score("Line 7 of naïve words\n").bytes == len("Line 7 of naïve words\n".encode())
    assert len("".join(model.generate("Line ", max_symbols=5))) > 0
