"""Damaged, hostile or endless data files are faults; none exhausts the process."""

import io
import json
import os
import random
import socket

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from activemem import StudyError, load_study
from activemem.studies.own_data.formats import FaultyValueError, iter_parquet

from .test_own_tables import study, told


def parquet_bytes(table):
    written = io.BytesIO()
    pq.write_table(table, written)
    return written.getvalue()


def read(data, columns):
    """Return the values of these columns, or raise the first fault."""
    values = [[] for _ in columns]
    for batch in iter_parquet(data, columns):
        if isinstance(batch, FaultyValueError):
            raise batch
        for column, found in zip(values, batch, strict=True):
            column.extend(found)
    return values


def test_a_damaged_file_is_read_or_is_a_fault():
    names = pa.array(["ä", "bb"] * 30).dictionary_encode()
    table = pa.table({"text": [f"naïve {n}" for n in range(60)], "label": names, "tags": [["x", None]] * 60})
    whole, drawn, faults = parquet_bytes(table), random.Random("parquet"), 0
    assert len(read(whole, ["text", "tags"])[0]) == 60
    for _ in range(60):
        damaged = bytearray(whole)
        for _ in range(drawn.choice((1, 1, 4))):
            damaged[drawn.randrange(len(damaged))] = drawn.randrange(256)
        try:
            read(bytes(damaged), ["text", "label", "tags"])
        except FaultyValueError as error:
            assert "expected Parquet, got " in str(error) or "expected a column" in str(error)
            faults += 1
    assert faults


def test_rows_that_unpack_to_more_than_the_limit_are_not_unpacked(monkeypatch):
    monkeypatch.setenv("ACTIVEMEM_MAX_DATA_GB", "0.01")
    same = pa.DictionaryArray.from_arrays(pa.array([0] * 100_000, pa.int32()), pa.array(["x" * 1000]))
    with pytest.raises(FaultyValueError, match=r"at most 1\.3 MB.*ACTIVEMEM_MAX_DATA_GB=8"):
        read(parquet_bytes(pa.table({"text": same})), ["text"])


@pytest.mark.parametrize(
    "text",
    [
        pa.nulls(3_000_000, pa.string()),
        pa.array(["a b"]).take(pa.array([0] * 3_000_000)),
        pa.array([["a"] * 1_000_000] * 4),
        pa.array(["x" * 150_000_000, "y"]),
        pa.array(["x" * 5_000_000]).take(pa.array([0] * 64)),
        pa.DictionaryArray.from_arrays(pa.array([0] * 64, pa.int32()), pa.array(["x" * 5_000_000])),
    ],
    ids=["nulls", "a short text", "long lists", "one huge text", "a long text", "a dictionary"],
)
def test_a_small_file_of_many_or_large_values_is_a_fault_before_they_are_in_memory(tmp_path, text):
    table = pa.table({"text": text, "label": pa.array(["a", "b"] * (len(text) // 2))})
    pq.write_table(table, tmp_path / "bomb.parquet", compression="zstd")
    (message,) = told(tmp_path, {"path": "bomb.parquet"})
    assert " values in a file of " in message


DEEP, LONG = f'{{"label": {"[" * 100_000}{"]" * 100_000}}}', f'{{"label": {"9" * 6_000}}}'


@pytest.mark.parametrize(
    "features", ["[1]", '"x"', DEEP, LONG, "{"], ids=["list", "text", "deep", "long", "open"]
)
def test_class_names_in_damaged_metadata_are_a_fault_of_the_file(tmp_path, features):
    table = pa.table({"text": ["a", "b"], "label": [0, 1]})
    metadata = {"huggingface": f'{{"info": {{"features": {features}}}}}'}
    pq.write_table(table.replace_schema_metadata(metadata), tmp_path / "my.parquet")
    (message,) = told(tmp_path, {"path": "my.parquet"})
    assert "expected features in the metadata of Hugging Face datasets, got " in message
    for words in ("recursion", "object", "sys."):
        assert words not in message


def test_labels_that_are_names_already_stay_beside_class_names_in_the_metadata(tmp_path):
    table = pa.table({"text": [f"text {number}" for number in range(60)], "label": ["x", "y"] * 30})
    metadata = {
        "huggingface": '{"info": {"features": {"label": {"_type": "ClassLabel", "names": ["x", "y"]}}}}'
    }
    pq.write_table(table.replace_schema_metadata(metadata), tmp_path / "my.parquet")
    assert load_study(study(tmp_path, {"path": "my.parquet"})).own_corpus.summary.rows["train"]


def test_files_of_a_folder_are_searched_a_few_levels_down(tmp_path):
    deep = tmp_path / "hub" / "a" / "b" / "c"
    (deep / "d").mkdir(parents=True)
    table = pa.table({"text": [f"text {number}" for number in range(60)], "label": ["x", "y"] * 30})
    pq.write_table(table, deep / "d" / "0000.parquet")
    assert "got none of them" in told(tmp_path, {"path": "hub"})[0]
    (deep / "d" / "0000.parquet").rename(deep / "0000.parquet")
    assert load_study(study(tmp_path, {"path": "hub"})).own_corpus.summary.rows["train"]


@pytest.mark.parametrize("corpus", [{"path": "home"}, {"documents": "home", "text": "text"}], ids=str)
def test_a_folder_that_is_no_data_set_is_refused_and_not_walked(tmp_path, monkeypatch, corpus):
    monkeypatch.setattr("activemem.studies.own_data.files._MAX_INSIDE", 20)
    for number in range(30):
        (tmp_path / "home" / str(number)).mkdir(parents=True)
    task = {} if "path" in corpus else {"name": "language_model", "tokens": "bpe", "recipe": "conv(k=3)"}
    (message,) = told(tmp_path, corpus, **task)
    assert message.endswith("expected the folder of one data set, got more than 20 files and folders")


@pytest.mark.parametrize("indent", [None, 0, 2])
@pytest.mark.parametrize("whole", [list, lambda rows: {"data": rows}], ids=["array", "object"])
def test_one_json_value_in_place_of_lines_is_one_fault(tmp_path, whole, indent):
    rows = [{"text": f"text {number}", "label": number % 2} for number in range(100)]
    (tmp_path / "my.jsonl").write_text(json.dumps(whole(rows), indent=indent))
    (message,) = told(tmp_path, {"path": "my.jsonl"})
    assert len(message) < 150
    assert "my.jsonl: line 1: expected " in message


def test_only_regular_files_of_a_bounded_size_are_read(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "zero.csv").symlink_to("/dev/zero")
    (tmp_path / "folder.csv").mkdir()
    monkeypatch.chdir(tmp_path)  # the name of a socket is short
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket.csv")
        for name in ("pipe", "zero", "socket"):
            (message,) = told(tmp_path, {"path": f"{name}.csv"})
            assert "a file, got" in message
    text = {"name": "language_model", "tokens": "characters", "recipe": "conv(k=3)"}
    for name in ("zero", "folder"):
        assert "a file, got" in told(tmp_path, {"path": f"{name}.csv"}, **text)[0]
    with (tmp_path / "large.csv").open("wb") as file:
        file.truncate(2 * 10**9)  # without a byte on the disk
    (message,) = told(tmp_path, {"path": "large.csv"})
    assert " 1 GB" in message
    monkeypatch.setenv("ACTIVEMEM_MAX_DATA_GB", "much")
    assert "got 'much'" in told(tmp_path, {"path": "large.csv"})[0]


def test_a_message_quotes_little_of_a_file_and_nothing_that_a_terminal_obeys(tmp_path):
    head = ",".join(f"column{number}\x1b[2J" for number in range(2000))
    (tmp_path / "wide.csv").write_text(head + "\n")
    rows = ['"' + "\x1b]0;title\x07" * 1000 + '"', json.dumps({"text": ["\x1b[31m" * 999], "label": 1})]
    (tmp_path / "long.jsonl").write_text("\n".join(rows))
    (tmp_path / "near.csv").write_text("text\x00,label\n")
    for name in ("wide.csv", "long.jsonl", "near.csv"):
        messages = told(tmp_path, {"path": name})
        assert all(len(message) < 600 and not {"\x1b", "\x00"} & {*message} for message in messages)


def test_half_of_a_surrogate_pair_is_a_fault_with_its_line(tmp_path, golden):
    lines = ['{"text": "an emoji \\ud83d", "label": "a"}', '{"text": "fine", "label": "b\\udc00"}']
    (tmp_path / "cut.jsonl").write_text("\n".join(lines))
    golden(told(tmp_path, {"path": "cut.jsonl"}))
    with pytest.raises(StudyError):
        load_study(study(tmp_path, {"train": "cut.jsonl", "dev": "cut.jsonl", "test": "cut.jsonl"}))
