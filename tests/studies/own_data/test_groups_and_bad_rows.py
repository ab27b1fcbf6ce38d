"""Groups of rows, rows with faults, and texts and labels in several forms of Unicode."""

import json
import unicodedata

import pytest

from activemem import load_study
from activemem.studies.catalog.own_corpora import OwnCounts, OwnLayout, OwnSequences, own_name
from activemem.studies.own_data.rows import CLASSES, PAIRS

from .test_own_tables import ROWS, SENTENCES, csv_text, every, rows_of, study, told


def spoken(speakers=9, count=90):
    """Return rows with the number of their speaker in their text."""
    return [
        (f"row {n} of {n % speakers}", ("odd", "even")[n % 2], f"Speaker {n % speakers}")
        for n in range(count)
    ]


def grouped_csv(rows):
    return "text,label,speaker\n" + "".join(f'"{text}",{label},"{group}"\n' for text, label, group in rows)


def summary(folder, corpus, **keys):
    return load_study(study(folder, corpus, **keys)).own_corpus.summary


def speakers(rows):
    return {text.split()[-1] for text, _ in rows}


@pytest.mark.parametrize("share", [0.1, 0.3])
@pytest.mark.parametrize("number", [3, 9, 45])
def test_a_group_is_in_one_split_and_every_split_has_one(tmp_path, number, share):
    rows = spoken(number)
    (tmp_path / "a.csv").write_text(grouped_csv(rows), encoding="utf-8")
    corpus = {"path": "a.csv", "group": "speaker", "dev": share, "test": share}
    facts, found = rows_of(tmp_path, corpus)
    assert len(every(found)) == len(rows)
    groups = {split: speakers(each) for split, each in found.items()}
    assert sum(map(len, groups.values())) == number
    assert [len(groups[split]) for split in ("dev", "test")] == [max(1, round(share * number))] * 2
    assert f"groups by speaker: train {len(groups['train'])}" in summary(tmp_path, corpus).notes[0]
    # neither the order of rows nor capitals, spaces and forms of letters decide
    forms = [(text, label, group.upper().replace(" ", "  ")) for text, label, group in reversed(rows)]
    (tmp_path / "a.csv").write_text(grouped_csv(forms), encoding="utf-8")
    _, again = rows_of(tmp_path, corpus)
    assert {split: speakers(each) for split, each in again.items()} == groups
    assert facts.layout.group == "speaker"


def test_groups_in_several_splits_of_the_data_are_a_warning(tmp_path):
    for split, rows in {"train": spoken(6), "dev": spoken(2, 20), "test": spoken(1, 10)}.items():
        text = grouped_csv([(f"{split} {text}", label, group) for text, label, group in rows])
        (tmp_path / f"{split}.csv").write_text(text, encoding="utf-8")
    files = {split: f"{split}.csv" for split in ("train", "dev", "test")}
    named = "'Speaker 0' (train, dev and test), 'Speaker 1' (train and dev)"
    warnings = summary(tmp_path, {**files, "group": "speaker"}).warnings
    assert f"2 of 6 groups have rows in several splits: {named}" in warnings


@pytest.mark.parametrize(
    ("rows", "keys", "message"),
    [
        (spoken(2), {}, "expected at least 3 different groups, one for each of train, dev and test, got 2"),
        (spoken(2), {"group": "speeker"}, "expected a column 'speeker', got 'text', 'label', 'speaker'"),
        ([*spoken(9), ("a row", "odd", "")], {}, "line 92, column speaker: expected the name of a group"),
    ],
)
def test_groups_that_cannot_be_held_out_are_faults(tmp_path, rows, keys, message):
    (tmp_path / "a.csv").write_text(grouped_csv(rows), encoding="utf-8")
    (found,) = told(tmp_path, {"path": "a.csv", "group": "speaker", **keys})
    assert message in found


def test_pairs_are_held_out_by_group_too(tmp_path):
    rows = [f"one {n}\tuno {n}\td{n % 8}" for n in range(80)]
    (tmp_path / "a.tsv").write_text("\n".join(["en\tit\tdocument", *rows]), encoding="utf-8")
    corpus = {"path": "a.tsv", "source": "en", "target": "it", "group": "document"}
    _, found = rows_of(tmp_path, corpus, PAIRS, **SENTENCES)
    assert {split: len(rows) for split, rows in found.items()} == {"train": 60, "dev": 10, "test": 10}
    documents = [{int(source.split()[1]) % 8 for source, _ in rows} for rows in found.values()]
    assert sum(map(len, documents)) == 8


BAD = {
    3: '{"text": "a", "label": "odd", "label": "even"}',
    5: '{"text": 3.5, "label": null}',
    7: "no JSON",
    9: "[1, 2]",
    11: '{"txt": "a", "label": "odd"}',
}


def lines(bad):
    good = [json.dumps({"text": text, "label": label}) for text, label in ROWS]
    return "\n".join(bad.get(number, line) for number, line in enumerate(good, start=1))


def test_all_faults_of_json_lines_are_told_in_one_pass_or_skipped(tmp_path):
    (tmp_path / "a.jsonl").write_text(lines(BAD), encoding="utf-8")
    found = " ".join(told(tmp_path, {"path": "a.jsonl"}))
    for number in BAD:
        assert f"line {number}" in found or f"lines {', '.join(map(str, (3, 7)))}" in found
    assert "the key 'label' twice" in found
    skipping = {"path": "a.jsonl", "bad_rows": "skip"}
    _, rows = rows_of(tmp_path, skipping, CLASSES)
    kept = [row for number, row in enumerate(ROWS, start=1) if number not in BAD]
    assert sorted(every(rows)) == sorted(kept)
    (warning,) = summary(tmp_path, skipping).warnings[:1]
    assert warning.startswith("5 of 200 rows skipped because of faults: ")
    assert "the key 'label' twice" in warning


def test_every_row_is_read_although_thousands_are_skipped(tmp_path):
    bad = ",odd\n" * 3_000
    rows = [(f"text {n}", ("odd", "even")[n % 2]) for n in range(4_000)]
    (tmp_path / "a.csv").write_text(csv_text(rows) + bad, encoding="utf-8")
    corpus = {"path": "a.csv", "bad_rows": "skip"}
    assert len(every(rows_of(tmp_path, corpus)[1])) == 4_000
    assert any("3,000 of 7,000 rows skipped" in each for each in summary(tmp_path, corpus).warnings)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (csv_text(ROWS, head="txt,label"), "expected a column 'text'"),
        (csv_text(ROWS) + '"open,odd\n' + "x,odd\n" * 50, "expected valid quotes around fields"),
        (csv_text(ROWS[:10]) + ",odd\n" * 20, "expected faults in at most half of the rows, got 20 of 30"),
    ],
)
def test_faults_of_a_whole_file_are_not_skipped(tmp_path, text, message):
    (tmp_path / "a.csv").write_text(text, encoding="utf-8")
    (found,) = told(tmp_path, {"path": "a.csv", "bad_rows": "skip"})
    assert message in found


@pytest.mark.parametrize(
    "labels",
    [
        ("1", "1.0"),
        ("2", "2e0"),
        ("yes", "YES "),
        ("étà", unicodedata.normalize("NFD", "étà")),
        ("no", "\uff4e\uff4f"),
        ("a b", "a\u00a0b"),
        ("new", "n\u200bew"),
    ],
)
def test_labels_that_look_alike_are_told(tmp_path, labels):
    rows = [(f"text {n}", (*labels, "other")[n % 3]) for n in range(90)]
    (tmp_path / "a.csv").write_text(csv_text(rows), encoding="utf-8")
    found = [each for each in summary(tmp_path, {"path": "a.csv"}).warnings if "look alike" in each]
    assert len(found) == (len({label.strip() for label in labels}) == 2)
    assert all("other" not in each for each in found)
    if found and labels[0] == "étà":
        assert "(30, NFC)" in found[0]
        assert "(30, U+0301, U+0300)" in found[0]


def test_a_text_in_two_files_in_another_form_is_told(tmp_path):
    rows = [(f"città {text}", label) for text, label in ROWS]
    other = [(unicodedata.normalize("NFD", text), label) for text, label in rows[:10]]
    for split, own in {"train": rows, "dev": other, "test": [("x y", "odd"), ("x z", "even")]}.items():
        (tmp_path / f"{split}.csv").write_text(csv_text(own), encoding="utf-8")
    files = {split: f"{split}.csv" for split in ("train", "dev", "test")}
    assert "dev: 10 of 10 rows are also in train" in summary(tmp_path, files).warnings


def test_new_keys_leave_the_names_of_earlier_corpora():
    layout = OwnLayout(form="csv", train=("ab",), columns=("text", "label"))
    facts = OwnSequences(
        layout=layout, rows=OwnCounts(train=3, dev=1, test=1), lists=False, symbols=4, classes=2
    )
    grouped = facts.model_copy(update={"layout": layout.model_copy(update={"group": "speaker"})})
    assert own_name(facts) == "own-e511dfe06421"
    assert own_name(grouped) != own_name(facts)
