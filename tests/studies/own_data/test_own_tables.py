"""Tables of one's own: what their rows are, in which splits, and what is said of those that cannot be."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from activemem.studies.own_data.cells import MOST_FAULTS
from activemem.studies.own_data.rows import CLASSES, draw_split, iter_parts, read_part
from activemem.studies.resolve.trial import Trial
from activemem.studies.study import load_study
from activemem.studies.text.errors import StudyError

from ...study_texts import study_text

ROWS = [(f"number {number} of many", ("odd", "even")[number % 2]) for number in range(200)]


def csv_text(rows, head="text,label"):
    return "".join(f"{line}\n" for line in [head, *(f'"{text}",{label}' for text, label in rows)])


def study(folder, corpus, *, recipe="conv(k=3) >> mean_pool", **keys):
    """A study file with this corpus, in a folder."""
    text = study_text(
        model={"recipe": recipe},
        task={"name": "sequence_classification", "corpus": corpus, "tokens": "words", **keys},
        train={"curriculum": None},
    )
    path = folder / "study.toml"
    path.write_text(text, encoding="utf-8")
    return path


def told(folder, corpus, **keys):
    """The messages about a study with this corpus."""
    with pytest.raises(StudyError) as caught:
        load_study(study(folder, corpus, **keys))
    return [fault.message.replace(f"{folder}/", "") for fault in caught.value.faults]


def rows_of(folder, corpus, **keys):
    """The facts of a corpus, and its rows by split."""
    found = load_study(study(folder, corpus, **keys))
    facts = found.trials[0].settings.task.corpus
    rows = [
        draw_split(facts.layout, row)
        for split, digest in iter_parts(facts.layout)
        for row in read_part(facts.layout, CLASSES, split, found.own_corpus.files[digest].read_bytes())
    ]
    return facts, {
        split: [row[1:] for row in rows if row.split == split] for split in ("train", "dev", "test")
    }


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "my.csv").write_text(csv_text(ROWS), encoding="utf-8")
    return tmp_path


def test_rows_are_the_same_in_every_format(folder):
    texts, labels = (list(column) for column in zip(*ROWS, strict=True))
    objects = [json.dumps({"label": label, "text": text}) for text, label in ROWS]
    (folder / "my.jsonl").write_text("\ufeff" + "\n\n".join(objects), encoding="utf-8")
    lines = [f"{label}\tx\t{text}\r\n" for text, label in ROWS]
    (folder / "my.tsv").write_text("label\tid\ttext\r\n" + "".join(lines), encoding="utf-8", newline="")
    table = pa.table({"text": texts, "label": pa.array(labels).dictionary_encode(), "id": range(200)})
    pq.write_table(table, folder / "my.parquet", row_group_size=50)
    facts, expected = rows_of(folder, {"path": "my.csv"})
    assert sorted(row for rows in expected.values() for row in rows) == sorted(ROWS)
    assert facts.rows.model_dump() == {split: len(rows) for split, rows in expected.items()}
    assert (facts.classes, facts.lists) == (2, False)
    for name in ("my.jsonl", "my.tsv", "my.parquet"):
        assert rows_of(folder, {"path": name})[1] == expected


def test_no_text_is_in_two_splits_and_the_order_of_rows_decides_nothing(folder):
    shouted = [(text.upper().replace(" ", "  "), label) for text, label in reversed(ROWS)]
    (folder / "more.csv").write_text(csv_text(shouted + ROWS), encoding="utf-8")
    shares = {"dev": 0.2, "test": 0.3}
    _, few = rows_of(folder, {"path": "my.csv", **shares})
    _, more = rows_of(folder, {"path": "more.csv", **shares})
    for split, rows in few.items():
        assert set(rows) == {row for row in more[split] if row in ROWS}
        assert len(more[split]) == 2 * len(rows)
    assert 40 <= len(few["test"]) <= 80


def test_splits_can_be_files_or_a_column_and_those_that_are_missing_are_drawn(folder):
    three = {"train": ROWS[:100], "dev": ROWS[100:150], "test": ROWS[150:]}
    for split, rows in three.items():
        (folder / f"{split}.csv").write_text(csv_text(rows), encoding="utf-8")
    assert rows_of(folder, {split: f"{split}.csv" for split in three})[1] == three
    names = {"train": "train", "dev": "Validation", "test": "test"}
    lines = [f"{text},{label},{names[split]}" for split, rows in three.items() for text, label in rows]
    (folder / "column.csv").write_text("\n".join(["text,label,part", *lines]), encoding="utf-8")
    assert rows_of(folder, {"path": "column.csv", "split": "part"})[1] == three
    without = [line.replace("Validation", "train") for line in lines]
    (folder / "two.csv").write_text("\n".join(["text,label,part", *without]), encoding="utf-8")
    facts, found = rows_of(folder, {"path": "two.csv", "split": "part", "dev": 0.4})
    assert (found["test"], facts.layout.dev_share, facts.layout.test_share) == (three["test"], 0.4, 0.0)
    assert 40 <= len(found["dev"]) <= 80


def test_lists_of_tokens_are_symbols(folder):
    rows = [{"text": [number, "a", 7], "label": number % 3} for number in range(100)]
    (folder / "lists.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    facts, found = rows_of(folder, {"path": "lists.jsonl"}, tokens="symbols")
    seen = {word for text, _ in found["train"] for word in text.split()}
    assert (facts.classes, facts.lists, facts.symbols) == (3, True, len(seen))
    assert load_study(folder / "study.toml").trials[0].settings.task.interface.vocab == 4 + len(seen)
    assert told(folder, {"path": "lists.jsonl"}) == [
        '[task] tokens: expected "symbols" for lists of tokens, got "words"'
    ]


def test_an_id_is_that_of_the_content_and_of_what_is_read_of_it(folder):
    (first,) = load_study(study(folder, {"path": "my.csv"})).trials
    assert Trial.from_json(first.to_json()).id == first.id
    (folder / "my.csv").rename(folder / "renamed.csv")
    (moved,) = load_study(study(folder, {"path": "renamed.csv"})).trials
    (doubled,) = load_study(study(folder, {"path": "renamed.csv", "label": "text"})).trials
    (split,) = load_study(study(folder, {"path": "renamed.csv", "dev": 0.2})).trials
    assert moved.id == first.id
    assert len({first.id, doubled.id, split.id}) == 3


BAD = {
    "ragged.csv": "text,label\nfine,a\n\nbroken\n",
    "open.csv": 'text,label\nfine,a\n"never ends,b\nc,d\n',
    "empty.csv": "text,label\nfine,a\n  ,b\nfine,\n",
    "twice.csv": "text,label,label\na,b,c\n",
    "bad.jsonl": '{"text": "a", "label": 1}\n{"text": "a" "label": 1}\n[1]\n{"text": "a"}\n',
    "values.jsonl": "\n".join(
        json.dumps({"text": text, "label": label})
        for text, label in [([], 1), (["a b"], 1), (["a", 2.5], 1), ("a", None), ("a", 0.5), ({}, 1)]
    ),
    "one.csv": "text,label\na,x\nb,x\n",
    "part.csv": "text,label,part\na,x,train\nb,y,held out\n",
    "few.csv": "text,label,part\na,x,train\nb,y,dev\nc,x,test\n",
    "not.parquet": "PAR1 or what",
    "my.xlsx": "",
}


@pytest.mark.parametrize(
    ("corpus", "expected"),
    [
        ({"path": "ragged.csv"}, ["ragged.csv: line 4: expected 2 columns, got 1"]),
        (
            {"path": "open.csv"},
            ["open.csv: line 3: expected fields in quotes that end, got: unexpected end of data"],
        ),
        (
            {"path": "empty.csv"},
            [
                "empty.csv: line 3, column text: expected a text or a list of tokens, got '  '",
                "empty.csv: line 4, column label: expected a label, got none",
            ],
        ),
        ({"path": "twice.csv"}, ["twice.csv: line 1: expected one column 'label', got 2"]),
        (
            {"path": "my.csv", "text": "review"},
            ["my.csv: line 1: expected a column 'review', got text, label"],
        ),
        (
            {"path": "bad.jsonl"},
            [
                "bad.jsonl: line 2, column 14: expected JSON, got: Expecting ',' delimiter",
                "bad.jsonl: line 3: expected an object, got [1]",
                "bad.jsonl: line 4: expected a key 'label', got none",
            ],
        ),
        (
            {"path": "values.jsonl"},
            [
                "values.jsonl: line 1, column text: expected a text or a list of tokens, got []",
                "values.jsonl: line 2, column text: "
                "expected tokens that are whole numbers or texts without spaces, got 'a b'",
                "values.jsonl: line 3, column text: "
                "expected tokens that are whole numbers or texts without spaces, got 2.5",
                "values.jsonl: line 4, column label: expected a label, got none",
                "values.jsonl: line 5, column label: expected a label, got 0.5",
                "values.jsonl: … and 1 more like these",
            ],
        ),
        ({"path": "one.csv"}, ["expected rows in every split, got none in dev and test of 2 rows"]),
        (
            {"path": "part.csv", "split": "part"},
            ["part.csv: line 3, column part: expected train, dev (or validation) or test, got 'held out'"],
        ),
        (
            {"path": "few.csv", "split": "part", "dev": 0.5},
            ["dev: it has no effect, since there are rows of dev: leave it out"],
        ),
        ({"path": "few.csv", "split": "part"}, ["expected at least 4 rows in the train split, got 1"]),
        ({"train": "one.csv", "dev": "my.csv", "test": "values.jsonl"}, ["expected files of one format"]),
        (
            {"path": "my.xlsx"},
            [
                "my.xlsx: expected a file that ends in .csv, .tsv, .jsonl, .ndjson, .parquet, .arrow, "
                "got '.xlsx'"
            ],
        ),
        ({"path": "not.parquet"}, ["not.parquet: expected Parquet, got: "]),
        ({"path": "gone.csv"}, ["gone.csv: expected a file, got none"]),
        ("imdb", ["expected a table of files, got 'imdb'"]),
        ({"dev": 0.1}, ['expected { path = "my.csv" }, or a file each for train, dev and test']),
        ({"path": "my.csv", "dev": 0.5, "test": 0.5}, ["expected dev and test below 1 together, got 1"]),
    ],
)
def test_what_is_wrong_is_told_with_its_file_line_and_column(folder, corpus, expected):
    for name, content in BAD.items():
        (folder / name).write_text(content, encoding="utf-8")
    found = [message.removeprefix("[task] corpus") for message in told(folder, corpus)]
    assert len(found) == len(expected) <= MOST_FAULTS + 1
    for message, start in zip(found, expected, strict=True):
        assert message.lstrip(":.").split(": ", 1)[-1].startswith(start) or start in message


def test_a_model_of_classes_ends_in_a_pool_and_has_no_activation_behind_its_output(folder):
    assert told(folder, {"path": "my.csv"}, recipe="conv(k=3)") == [
        "[model] recipe: conv(k=3) gives a sequence, but sequence_classification needs a class for a whole "
        "sequence: end it in a pool, as in sa >> mean_pool"
    ]
