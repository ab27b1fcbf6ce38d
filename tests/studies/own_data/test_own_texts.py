"""Own texts: trials are identified by file contents, and faults are reported before a run."""

import json
from types import SimpleNamespace

import pytest

from activemem import StudyError, load_study
from activemem.studies import Trial, load_last_run

from ...study_texts import study_text

LINES = "".join(f"line {number} of ten thousand words, naïve\n" for number in range(100))


def study(folder, corpus, **keys):
    """Write a study file with this corpus to a folder."""
    text = study_text(
        model={"recipe": "conv(k=3)"},
        task={"name": "language_model", "corpus": corpus, "context": 8, **keys},
        train={"curriculum": None},
    )
    path = folder / "study.toml"
    path.write_text(text, encoding="utf-8")
    return path


def told(folder, corpus, **keys):
    """Return the messages for a study with this corpus, each with its underlined text."""
    with pytest.raises(StudyError) as caught:
        load_study(study(folder, corpus, **keys))
    return [
        (
            fault.text[fault.start : fault.end],
            fault.message.replace(f"{folder}/", "").replace(str(folder), "FOLDER"),
        )
        for fault in caught.value.faults
    ]


@pytest.fixture
def folder(tmp_path):
    files = {
        "my.txt": LINES.encode(),
        "bad.txt": "fine\nnaïve \xff".encode("latin-1").replace(b"\xef", "ï".encode()),
        "empty.txt": b"",
        "blank.txt": b" \n\n",
        "one.txt": b"a single line",
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    return tmp_path


def test_an_id_is_that_of_the_content_wherever_its_file_is(folder):
    (first,) = load_study(study(folder, {"path": "my.txt"})).trials
    (folder / "other").mkdir()
    (folder / "my.txt").rename(folder / "other" / "renamed.txt")
    (moved,) = load_study(study(folder, {"path": "other/renamed.txt"})).trials
    assert moved.id == first.id == Trial.from_json(first.to_json()).id
    assert "my.txt" not in first.to_json()
    (folder / "my.txt").write_text(LINES + "one more\n", encoding="utf-8")
    (longer,) = load_study(study(folder, {"path": "my.txt"})).trials
    (folder / "my.txt").write_text(LINES, encoding="utf-8")
    (split,) = load_study(study(folder, {"path": "my.txt", "dev": 0.2})).trials
    assert len({first.id, longer.id, split.id}) == 3


def test_a_hole_in_place_of_a_file_is_refused_with_the_reason(folder):
    keys = {"tokens": "{tokens}", "tokenizer": "{vocabulary}"}
    reason = "a hole cannot name a file, because files are read before holes are filled: write its name"
    assert (
        '"{vocabulary}"',
        f"[task] tokenizer: {{vocabulary}}: expected a file, got none: {reason}",
    ) in told(folder, {"path": "my.txt"}, **keys)


def test_a_text_is_split_where_lines_end_and_its_bytes_are_its_characters(folder):
    (trial,) = load_study(study(folder, {"path": "my.txt", "dev": 0.05, "test": 0.2})).trials
    text, data = trial.settings.task.corpus, LINES.encode()
    pieces = [data[part.start : part.stop] for part in text.parts.values()]
    assert b"".join(pieces) == data
    assert all(piece.endswith(b"\n") for piece in pieces)
    assert [part.lines for part in text.parts.values()] == [76, 5, 19]
    assert bytes.fromhex(text.alphabet) == bytes(sorted(set(data) - {10}))
    assert trial.settings.task.interface.model.vocab == len(set(data))


def test_a_model_of_words_has_as_many_symbols_as_are_asked_for(folder):
    files = dict.fromkeys(("train", "dev", "test"), "my.txt")
    (trial,) = load_study(study(folder, files, tokens="words", pieces=400)).trials
    assert trial.settings.task.interface.model.vocab == 400


@pytest.mark.parametrize(
    "corpus",
    [
        {"path": "bad.txt"},
        {"train": "my.txt", "dev": "empty.txt", "test": "nowhere.txt"},
        {"path": "my_.txt"},
        {"path": "gone/my.txt"},
        {"path": "blank.txt"},
        {"path": "one.txt"},
        {"path": "my.txt", "devv": 0.1},
        {"dev": 0.1},
        3,
    ],
    ids=[
        "not UTF-8",
        "two of three files",
        "misspelt",
        "no folder",
        "blank",
        "one line",
        "unknown key",
        "no path",
        "no table",
    ],
)
def test_faults_of_a_text_are_reported_at_the_key_that_names_it(folder, corpus, golden):
    golden([f"{at} | {message}" for at, message in told(folder, corpus)])


def test_a_text_that_is_too_short_for_a_batch_is_reported(folder, golden):
    ((_, stream),) = told(folder, {"path": "my.txt"}, context=5000)
    golden(stream)


def test_a_study_that_ran_is_read_without_its_files(folder):
    path = study(folder, {"path": "my.txt"})
    found = load_study(path)
    record = {"text": found.document.text, "overrides": [], "own_corpus": found.own_corpus.to_dict()}
    (folder / "my.txt").unlink()

    class Kept:
        def load(self, name):
            return json.loads(json.dumps(record))

    assert load_last_run("tiny", SimpleNamespace(records=Kept())).trials == found.trials


def test_a_byte_order_mark_is_no_part_of_a_text(folder):
    (folder / "marked.txt").write_bytes(b"\xef\xbb\xbf" + LINES.encode())
    marked = load_study(study(folder, {"path": "marked.txt"})).trials[0].settings.task.corpus
    plain = load_study(study(folder, {"path": "my.txt"})).trials[0].settings.task.corpus
    assert (marked.alphabet, marked.train.start, plain.train.start) == (plain.alphabet, 3, 0)
    three = dict.fromkeys(("train", "dev", "test"), "marked.txt")
    parts = load_study(study(folder, three)).trials[0].settings.task.corpus.parts
    assert {part.start for part in parts.values()} == {3}


def test_a_large_text_that_was_read_before_is_found_from_another_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "text.txt").write_text("some words of a line\n" * 60_000, encoding="utf-8")
    text = study_text(
        model={"recipe": "{mixer}"},
        task={"name": "language_model", "corpus": "text.txt", "batching": "packed", "context": 8},
        train={"curriculum": None, "lengths": None},
        factors={"mixer": ["gru"], "task": None},
    )
    (folder / "study.toml").write_text(text.replace('"text.txt"', '{ path = "text.txt" }'), encoding="utf-8")
    monkeypatch.chdir(folder)
    load_study("study.toml")
    monkeypatch.chdir(tmp_path)
    (path,) = load_study("mine/study.toml").own_corpus.files.values()
    assert path.samefile(folder / "text.txt")
