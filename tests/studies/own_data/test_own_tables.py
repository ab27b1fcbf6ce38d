"""Tables of one's own: rows, splits, and errors for invalid ones."""

import json
import re
import unicodedata

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from activemem import StudyError, load_study
from activemem.studies import Trial
from activemem.studies.own_data.rows import CLASSES, MOST_FAULTS, NUMBERS, PAIRS, TAGS, read_rows

from ...study_texts import study_text

SPLITS = ("train", "dev", "test")
ROWS = [(f"number {number} of many", ("odd", "even")[number % 2]) for number in range(200)]


def csv_text(rows, head="text,label"):
    return "".join(f"{line}\n" for line in [head, *(f'"{text}",{label}' for text, label in rows)])


def study(folder, corpus, *, recipe="conv(k=3) >> mean_pool", **keys):
    """Write a study file with this corpus to a folder."""
    task = {"name": "sequence_classification", "corpus": corpus, "tokens": "words", **keys}
    text = study_text(model={"recipe": recipe}, task=task, train={"curriculum": None})
    path = folder / "study.toml"
    path.write_text(text, encoding="utf-8")
    return path


def told(folder, corpus, **keys):
    """Return the messages for a study with this corpus."""
    with pytest.raises(StudyError) as caught:
        load_study(study(folder, corpus, **keys))
    return [fault.message.replace(f"{folder}/", "") for fault in caught.value.faults]


def rows_of(folder, corpus, kind=CLASSES, **keys):
    """Return the summary of a corpus, and its rows by split."""
    found = load_study(study(folder, corpus, **keys))
    facts = found.trials[0].settings.task.corpus
    files = found.own_corpus.files
    rows, faults, *_ = read_rows(facts.layout, kind, lambda digest: (digest, files[digest].read_bytes()))
    assert not faults
    return facts, {
        split: [row[1:3] for row in rows if row.split == split] for split in ("train", "dev", "test")
    }


def every(splits):
    """Return the rows of all splits."""
    return [row for rows in splits.values() for row in rows]


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
    assert sorted(every(expected)) == sorted(ROWS)
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


def test_forms_of_one_text_are_in_one_split(folder):
    texts = [(f"étà {number}", label) for number, (_, label) in enumerate(ROWS)]
    forms = [(unicodedata.normalize(form, text), label) for text, label in texts for form in ("NFC", "NFD")]
    (folder / "forms.csv").write_text(csv_text(forms), encoding="utf-8")
    _, found = rows_of(folder, {"path": "forms.csv"})
    assert len(every(found)) == len(forms)
    for rows in found.values():
        kept = {text for text, _ in rows}
        assert kept == {unicodedata.normalize(form, text) for text in kept for form in ("NFC", "NFD")}


def test_a_file_with_many_faults_is_not_read_to_its_end(folder):
    (folder / "many.csv").write_text("text,label\n" + ",x\n" * 100_000, encoding="utf-8")
    message, last = told(folder, {"path": "many.csv"})
    assert "lines 2, 3, 4, 5, 6 and 995 more" in message
    assert "after 1,000 faults" in last


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


def test_splits_that_a_column_lacks_are_reported_until_their_shares_are_given(folder):
    lines = [f"{text},{label},train" for text, label in ROWS]
    (folder / "column.csv").write_text("\n".join(["text,label,part", *lines]), encoding="utf-8")
    column = {"path": "column.csv", "split": "part"}
    found = load_study(study(folder, column, tokens="characters"))
    rows = found.own_corpus.summary.rows
    [warning] = found.own_corpus.summary.warnings
    assert f"no dev or test rows, so that {rows['dev']} and {rows['test']} are drawn" in warning
    [warning] = load_study(
        study(folder, {**column, "dev": 0.1}, tokens="characters")
    ).own_corpus.summary.warnings
    assert "no test rows" in warning
    confirmed = load_study(study(folder, {**column, "dev": 0.1, "test": 0.1}, tokens="characters"))
    assert confirmed.own_corpus.summary.warnings == ()
    assert [each.id for each in confirmed.trials] == [each.id for each in found.trials]
    assert (
        load_study(study(folder, {"path": "my.csv"}, tokens="characters")).own_corpus.summary.warnings == ()
    )


def test_lists_of_tokens_are_symbols(folder, golden):
    rows = [{"text": [number, "a", 7], "label": number % 3} for number in range(100)]
    (folder / "lists.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    facts, found = rows_of(folder, {"path": "lists.jsonl"}, tokens="symbols")
    seen = {word for text, _ in found["train"] for word in text.split()}
    assert (facts.classes, facts.lists, facts.symbols) == (3, True, len(seen))
    assert load_study(folder / "study.toml").trials[0].settings.task.interface.model.vocab == 4 + len(seen)
    golden(told(folder, {"path": "lists.jsonl"}))


TOKENS = {"name": "token_classification", "tokens": None, "recipe": "conv(k=3)"}
VALUES = {"name": "sequence_regression"}
SENTENCES = {"name": "translation", "recipe": "seq2seq(gru, gru)"}


def test_tokens_and_their_labels_are_lists_or_separated_by_spaces(folder, golden):
    rows = [("a film by Ann", ("O", "O", "O", "B")), ("Bo and Ann", ("B", "O", "B"))] * 30
    rows = [(f"{text} {number}", (*labels, "O")) for number, (text, labels) in enumerate(rows)]
    lists = [json.dumps({"text": text.split(), "label": labels}) for text, labels in rows]
    (folder / "lists.jsonl").write_text("\n".join(lists), encoding="utf-8")
    (folder / "spaced.csv").write_text(
        csv_text([(text, " ".join(each)) for text, each in rows]), encoding="utf-8"
    )
    facts, listed = rows_of(folder, {"path": "lists.jsonl"}, TAGS, **TOKENS)
    assert (facts.classes, sorted(every(listed))) == (2, sorted(rows))
    assert rows_of(folder, {"path": "spaced.csv"}, TAGS, **TOKENS)[1] == listed
    (folder / "spaced.csv").write_text(csv_text([("a b c", "O B"), ("a", "O")]), encoding="utf-8")
    golden(told(folder, {"path": "spaced.csv"}, **TOKENS))


def test_a_hint_at_a_key_holds_for_its_own_table_only(folder, golden):
    golden(told(folder, {"path": "my.csv", "fold": "subject"}))
    golden(told(folder, {"path": "my.csv"}, **(TOKENS | {"tokens": "symbols"})))


def test_labels_can_be_numbers(folder, golden):
    rows = [(f"sequence {number}", number / 8) for number in range(100)]
    (folder / "numbers.csv").write_text(csv_text(rows), encoding="utf-8")
    facts, found = rows_of(folder, {"path": "numbers.csv"}, NUMBERS, **VALUES)
    interface = load_study(folder / "study.toml").trials[0].settings.task.interface.model
    assert (facts.classes, interface.classes, interface.targets) == (None, None, 1)
    assert sorted(every(found)) == sorted(rows)
    (folder / "numbers.csv").write_text(
        csv_text([("a", "1"), ("b", "one"), ("c", "nan"), ("d", "1e30")]), encoding="utf-8"
    )
    golden(told(folder, {"path": "numbers.csv"}, **VALUES))


def test_folders_of_parquet_files_are_read_with_the_names_of_classes(folder, golden):
    texts, labels = [f"text {number}" for number in range(60)], [0, 1, 1] * 20
    named = [(text, ("bad", "good")[label]) for text, label in zip(texts, labels, strict=True)]
    names = {"names": ["bad", "good"], "_type": "ClassLabel"}
    features = {"text": {"dtype": "string", "_type": "Value"}, "label": names}
    schema = pa.schema(
        {"text": pa.string(), "label": pa.int64()},
        metadata={"huggingface": json.dumps({"info": {"features": features}})},
    )
    (folder / "hub" / "data").mkdir(parents=True)
    for split, part in (("train", slice(0, 40)), ("test", slice(40, 60))):
        table = pa.table([texts[part], labels[part]], schema=schema)
        pq.write_table(table, folder / "hub" / "data" / f"{split}-00000-of-00001.parquet")
    facts, found = rows_of(folder, {"path": "hub", "dev": 0.25})
    assert found["test"] == named[40:]
    assert sorted(found["train"] + found["dev"]) == sorted(named[:40])
    assert (facts.layout.dev_share, facts.layout.test_share) == (0.25, 0.0)
    golden(told(folder, {"path": "hub", "test": 0.5}))
    pq.write_table(pa.table([texts[:2], [1, -1]], schema=schema), folder / "unlabelled.parquet")
    golden(told(folder, {"path": "unlabelled.parquet"}))


def test_pairs_are_the_same_in_two_files_and_in_a_table(folder):
    pairs = [(f'number "{number}"', f"nombre {number}") for number in range(100)]
    for name, place in (("a.en", 0), ("a.fr", 1)):
        (folder / name).write_text(
            "".join(f"{pair[place]}\n" for pair in [*pairs, ("x", "")]), encoding="utf-8"
        )
    (folder / "a.tsv").write_text("".join(f"{a}\t{b}\tCC-BY\n" for a, b in pairs), encoding="utf-8")
    objects = [json.dumps({"en": source, "fr": target}) for source, target in pairs]
    (folder / "a.jsonl").write_text("\n".join(objects), encoding="utf-8")
    facts, expected = rows_of(folder, {"source": "a.en", "target": "a.fr", "test": 0.3}, PAIRS, **SENTENCES)
    assert sorted(every(expected)) == sorted(pairs)
    assert facts.rows.model_dump() == {split: len(rows) for split, rows in expected.items()}
    for corpus in ({"path": "a.tsv"}, {"path": "a.jsonl", "source": "en", "target": "fr"}):
        assert rows_of(folder, {**corpus, "test": 0.3}, PAIRS, **SENTENCES)[1] == expected
    two, one = {"source": "a.en", "target": "a.fr"}, {"source": "one.en", "target": "one.fr"}
    other = {"source": "two.en", "target": "two.fr"}
    for name, number in (("one", 1000), ("two", 2000)):
        for side in ("en", "fr"):
            (folder / f"{name}.{side}").write_text(f"{side} {number}\n", encoding="utf-8")
    _, six = rows_of(folder, {"train": two, "dev": one, "test": other}, PAIRS, **SENTENCES)
    assert (six["train"], six["dev"]) == (pairs, [("en 1000", "fr 1000")])
    (message,) = told(folder, {"train": two, "dev": two, "test": two}, **SENTENCES)
    assert "got none in train and dev" in message


@pytest.mark.parametrize(
    "corpus",
    [
        {"source": "a.en", "target": "b.fr"},
        {"source": "a.en"},
        {"path": "c.tsv"},
        {"path": "d.jsonl"},
        {},
        {"train": {"source": "a.en", "target": "a.en"}},
    ],
)
def test_faults_of_pairs_are_reported(folder, corpus, golden):
    files = {
        "a.en": "a\nb\n",
        "b.fr": "a\nb\nc\n",
        "c.tsv": "a\tb\nc d\n",
        "d.jsonl": '{"source": "a", "target": 3}',
    }
    for name, content in files.items():
        (folder / name).write_text(content, encoding="utf-8")
    golden(told(folder, corpus, **SENTENCES))


def hub_folder(folder, splits, **columns):
    """Write a folder with a Parquet file for each split, with columns computed from row numbers."""
    for split, numbers in splits.items():
        table = pa.table({name: [value(number) for number in numbers] for name, value in columns.items()})
        (folder / "hub").mkdir(exist_ok=True)
        pq.write_table(table, folder / "hub" / f"{split}-00000-of-00001.parquet")


def test_fields_of_structs_are_columns(folder):
    def translation(number):
        return {"en": f"number {number}", "fr": f"nombre {number}"}

    hub_folder(
        folder,
        {"train": range(50), "validation": range(50, 60), "test": range(60, 70)},
        translation=translation,
    )
    columns = {"source": "translation.en", "target": "translation.fr"}
    _, found = rows_of(folder, {"path": "hub", **columns}, PAIRS, **SENTENCES)
    assert found["test"] == [tuple(translation(number).values()) for number in range(60, 70)]
    objects = [json.dumps({"translation": translation(number)}) for number in range(60)]
    (folder / "nested.jsonl").write_text("\n".join(objects), encoding="utf-8")
    _, lines = rows_of(folder, {"path": "nested.jsonl", **columns}, PAIRS, **SENTENCES)
    assert sorted(every(lines)) == sorted(tuple(translation(number).values()) for number in range(60))
    (message, _, _) = told(folder, {"path": "hub", **columns, "target": "translation.de"}, **SENTENCES)
    assert message.endswith("'translation.de', got 'translation.en', 'translation.fr'")


def test_only_the_first_faults_of_a_folder_of_other_files_are_reported(folder):
    hub_folder(
        folder, {f"train{number}": range(number, number + 3) for number in range(40)}, other=lambda n: n
    )
    messages = told(folder, {"path": "hub"})
    assert "75 more faults" in messages[-1]  # the columns text and label of 40 files
    assert len(messages) == MOST_FAULTS + 1


@pytest.mark.parametrize(
    "header",
    ["sentence,Label", "text;label"],
)
def test_a_header_with_other_names_or_marks_is_reported_with_what_to_write(folder, header, golden):
    (folder / "odd.csv").write_text(f"{header}\n", encoding="utf-8")
    golden(told(folder, {"path": "odd.csv"}))


@pytest.mark.parametrize("hidden", [-1, None])
def test_a_split_without_labels_is_left_out_and_drawn_and_that_is_said(folder, hidden, golden):
    splits = {"train": range(100), "validation": range(100, 120), "test": range(120, 150)}
    hub_folder(folder, splits, text=lambda n: f"text {n}", label=lambda n: n % 2 if n < 120 else hidden)
    facts, found = rows_of(folder, {"path": "hub"})
    assert (facts.layout.left_out, facts.layout.test_share, facts.classes) == (("test",), 0.1, 2)
    assert found["dev"] == [(f"text {n}", str(n % 2)) for n in range(100, 120)]
    assert 0 < len(found["test"]) < 30
    assert not {f"text {n}" for n in range(120, 150)} & {text for text, _ in every(found)}
    (note,) = load_study(folder / "study.toml").own_corpus.summary.notes
    golden(note)


def test_files_of_splits_with_other_names_are_named(folder):
    splits = {"train_sft": range(60), "odd": range(60, 80), "validation": range(80, 90)}
    hub_folder(folder, splits, text=lambda n: f"text {n}", label=lambda n: n % 2)
    files = {split: f"hub/{name}-00000-of-00001.parquet" for split, name in zip(SPLITS, splits, strict=True)}
    _, found = rows_of(folder, files)
    assert [len(rows) for rows in found.values()] == [60, 20, 10]
    for name in ("train_sft", "odd"):
        (folder / "hub" / f"{name}-00000-of-00001.parquet").unlink()
    (message,) = told(folder, {"path": "hub"})
    assert "Parquet files of the split train, got only files of dev" in message


def test_tokens_labelled_minus_100_or_null_are_no_class(folder):
    labels = [["B", -100, "O"], ["O", None, "B"], ["O", "B", "-100"]] * 20
    rows = [{"text": ["a", str(n), "c"], "label": each} for n, each in enumerate(labels)]
    (folder / "tags.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    facts, found = rows_of(folder, {"path": "tags.jsonl"}, TAGS, **TOKENS)
    assert facts.classes == 2
    assert {label for _, tags in every(found) for label in tags} == {"B", "O", None}


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
    "keys.jsonl": '{"text": "a", "label": 1}\n{"text": "a", "label": 1, "label": 2}\n',
    "array.jsonl": '[{"text": "a", "label": 1},\n{"text": "b", "label": 2}]\n',
    "digits.jsonl": '{"text": "a", "label": ' + "7" * 5000 + "}\n",
    "values.jsonl": "\n".join(
        json.dumps({"text": text, "label": label})
        for text, label in [([], 1), (["a b"], 1), (["a", 2.5], 1), ("a", None), ("a", 0.5), ({}, 1)]
    ),
    "vectors.jsonl": "\n".join(json.dumps({"text": [[n, 0.5]], "label": n % 2}) for n in range(9)),
    "one.csv": "text,label\na,x\nb,x\n",
    "part.csv": "text,label,part\na,x,train\nb,y,held out\n",
    "few.csv": "text,label,part\na,x,train\nb,y,dev\nc,x,test\n",
    "many.csv": "text,label\na,x\n" + ",x\n" * 7 + "a,\n,\n",
    "some.csv": "text,label\na,x\n,y\nb,\n",
    "not.parquet": "PAR1 or what",
    "my.xlsx": "",
}


@pytest.mark.parametrize(
    "corpus",
    [
        {"path": "ragged.csv"},
        {"path": "open.csv"},
        {"path": "empty.csv"},
        {"path": "twice.csv"},
        {"path": "my.csv", "text": "review"},
        {"path": "bad.jsonl"},
        {"path": "values.jsonl", "text": "words"},
        {"path": "values.jsonl"},
        {"path": "one.csv"},
        {"path": "part.csv", "split": "part"},
        {"path": "few.csv", "split": "part", "dev": 0.5},
        {"path": "few.csv", "split": "part"},
        {"train": "one.csv", "dev": "my.csv", "test": "values.jsonl"},
        {"path": "my.xlsx"},
        {"path": "not.parquet"},
        {"path": "gone.csv"},
        "imdb",
        {"dev": 0.1},
        {"path": "my.csv", "dev": 0.5, "test": 0.5},
        {"train": "many.csv", "dev": "my.csv", "test": "some.csv"},
        {"path": "vectors.jsonl"},
        {"path": "keys.jsonl"},
        {"path": "array.jsonl"},
        {"path": "digits.jsonl"},
    ],
)
def test_faults_are_reported_with_their_file_line_and_column(folder, corpus, golden):
    for name, content in BAD.items():
        (folder / name).write_text(content, encoding="utf-8")
    found = told(folder, corpus)
    assert len(found) <= MOST_FAULTS + 1
    said = re.compile(r"(expected (?:JSON|Parquet|valid quotes around fields)), got .*")
    golden([said.sub(r"\1", message) for message in found])  # what follows, other libraries say


def test_a_model_of_classes_ends_in_a_pool_and_has_no_activation_after_its_output(folder, golden):
    golden(told(folder, {"path": "my.csv"}, recipe="conv(k=3)"))


def test_faults_stand_where_their_file_is_named(tmp_path):
    for name, more in (("good.csv", []), ("one.csv", [("", "odd")]), ("other.csv", [("a b", "")])):
        (tmp_path / name).write_text(csv_text([*ROWS, *more]), encoding="utf-8")
    path = study(tmp_path, {"train": "one.csv", "dev": "good.csv", "test": "good.csv"})
    with pytest.raises(StudyError) as caught:
        load_study(path, ["task.corpus.dev=other.csv"])
    (in_file, in_option) = caught.value.faults
    assert in_file.text[in_file.start : in_file.end] == '"one.csv"'
    assert (in_option.line, in_option.text) == (0, "task.corpus.dev=other.csv")
    assert in_option.text[in_option.start : in_option.end] == "other.csv"


def test_all_faults_of_json_lines_are_told_in_one_pass_and_by_line(tmp_path):
    lines = [json.dumps({"text": text, "label": label}) for text, label in ROWS]
    lines[2] = '{"text": "cut'
    lines[4] = '{"text": 3.5}'
    lines[11] = '{"txt": "a word", "label": {}}'
    (tmp_path / "odd.jsonl").write_text("\n".join(lines), encoding="utf-8")
    places = [message.split(": ")[2:4] for message in told(tmp_path, {"path": "odd.jsonl"})]
    assert [(where, what.partition(",")[0]) for where, what in places] == [
        ("line 3", "expected JSON"),
        ("line 5, column text", "expected a text or a non-empty list of tokens"),
        ("line 5", "expected a key 'label'"),
        ("line 12, column label", "expected a label"),
        ("line 12", "expected a key 'text'"),
    ]
