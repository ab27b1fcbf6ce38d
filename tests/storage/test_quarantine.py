import io
import itertools
import logging
import os
import re
from datetime import UTC, datetime, timedelta

import polars as pl
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from activemem.storage import Store, StoreError
from activemem.storage.checksums import add_checksum, encode, verify_checksum
from activemem.storage.errors import DamagedError
from activemem.storage.rows import SCHEMA_VERSION, metric_frame, trial_frame

from .factories import (
    fill_store,
    make_metric_rows,
    make_trial_id,
    make_trial_row,
    store_contents,
    uncompacted_path,
)

TRIAL = encode(trial_frame(make_trial_row()))
METRICS = encode(metric_frame(make_trial_row(), make_metric_rows()))
MERGED = encode(pl.concat([trial_frame(make_trial_row(number)) for number in range(3)]))
FILES = {"trial": TRIAL, "metrics": METRICS, "merged": MERGED}
END_REASON = "truncated"


@pytest.fixture(autouse=True)
def _quiet(caplog):
    caplog.set_level(logging.WARNING)


@pytest.mark.parametrize("kind", FILES)
def test_a_file_with_its_checksum_is_intact_and_an_ordinary_parquet_file(kind):
    verify_checksum(FILES[kind])
    polars, arrow = pl.read_parquet(FILES[kind]), pq.read_table(io.BytesIO(FILES[kind]))
    assert polars.height == arrow.num_rows > 0


@pytest.mark.parametrize("kind", FILES)
def test_every_flipped_bit_is_found(kind):
    data = bytearray(FILES[kind])
    for place, bit in itertools.product(range(len(data)), range(8)):
        data[place] ^= 1 << bit
        with pytest.raises(DamagedError):
            verify_checksum(bytes(data))
        data[place] ^= 1 << bit
    verify_checksum(bytes(data))


@pytest.mark.parametrize("kind", FILES)
def test_every_truncation_is_found(kind):
    for length in range(len(FILES[kind])):
        with pytest.raises(DamagedError):
            verify_checksum(FILES[kind][:length])


@settings(max_examples=120, deadline=None)
@given(
    start=st.integers(0, len(TRIAL)),
    removed=st.integers(0, 200),
    put=st.one_of(st.binary(max_size=200), st.integers(0, len(TRIAL)).map(lambda at: TRIAL[at : at + 300])),
)
def test_any_other_bytes_are_found(start, removed, put):
    data = TRIAL[:start] + put + TRIAL[start + removed :]
    if data != TRIAL:
        with pytest.raises((DamagedError, StoreError)):
            verify_checksum(data)


@pytest.mark.parametrize("data", [b"", b"PAR1", b"PAR1PAR1", bytes(100), b"\xff" * 5000, TRIAL + TRIAL[-8:]])
def test_bytes_that_are_no_file_of_ours_are_damaged(data):
    with pytest.raises(DamagedError, match=END_REASON):
        verify_checksum(data)


def places(root, number):
    """Return a position in each tenth of a trial's file, and the last."""
    size = uncompacted_path(root, number).stat().st_size
    return [*range(0, size, size // 10), size - 1]


def test_a_flipped_byte_anywhere_quarantines_the_file_and_leaves_the_others(root):
    fill_store(root, [1, 2])
    path = uncompacted_path(root, 2)
    sound = path.read_bytes()
    before = store_contents(root)
    for place in places(root, 2):
        path.write_bytes(sound[:place] + bytes([sound[place] ^ 0x10]) + sound[place + 1 :])
        store = Store(root)
        assert store.latest_attempts() == {make_trial_id(1): ("done", 0)}
        assert len(store.damaged) == 1
        assert store.damaged[0].read_bytes() != sound
        assert not path.exists()
    path.write_bytes(sound)
    assert str(store_contents(root)) == str(before)


def test_quarantined_files_are_named_listed_logged_and_recorded(root, caplog, golden):
    fill_store(root, [1])
    path = uncompacted_path(root, 1)
    data = path.read_bytes()
    path.write_bytes(data[:-1])
    store = Store(root)
    aside = root / "quarantine/trials/alpha" / path.name
    assert store.trials().is_empty()
    assert store.damaged == (aside,)
    assert aside.read_bytes() == data[:-1]
    golden(caplog.messages)
    time, note = (root / "quarantine/notes.txt").read_text().split("  ")
    golden(note)
    assert abs(datetime.now(UTC) - datetime.fromisoformat(time)) < timedelta(minutes=2)
    assert Store(root).damaged == ()


def test_a_file_that_is_damaged_twice_is_kept_twice(root):
    store = Store(root)
    for count in range(3):
        fill_store(root, [1])
        path = uncompacted_path(root, 1)
        path.write_bytes(path.read_bytes()[: count + 10])
        assert store.latest_attempts() == {}
    assert [path.name for path in store.damaged] == [
        f"{make_trial_id(1)}-0.parquet{ending}" for ending in ("", ".2", ".3")
    ]
    assert [path.stat().st_size for path in store.damaged] == [10, 11, 12]


def test_a_damaged_trial_is_not_held_and_can_be_written_again(root):
    store = fill_store(root, [1])
    uncompacted_path(root, 1).write_bytes(b"")
    assert store.latest_attempts() == {}
    fill_store(root, [1])
    assert list(store.latest_attempts()) == [make_trial_id(1)]
    assert store.metrics().height == 4


def test_damaged_metrics_leave_their_trial(root):
    store = fill_store(root, [1, 2])
    uncompacted_path(root, 1, dataset="metrics").write_bytes(METRICS[:-20])
    assert store.metrics()["trial"].unique().to_list() == [make_trial_id(2)]
    assert list(store.latest_attempts()) == [make_trial_id(1), make_trial_id(2)]
    assert [path.parent.parent.name for path in store.damaged] == ["metrics"]


def test_a_damaged_merged_file_is_quarantined_and_its_trials_are_missing(root, caplog):
    store = fill_store(root, [1, 2])
    store.upkeep.compact()
    fill_store(root, [3])
    (merged,) = (root / "trials/alpha").glob("compacted-*")
    data = bytearray(merged.read_bytes())
    data[len(data) // 2] ^= 1
    merged.write_bytes(data)
    assert store.latest_attempts() == {make_trial_id(3): ("done", 0)}
    assert store.damaged == (root / "quarantine/trials/alpha" / merged.name,)
    (message,) = caplog.messages
    assert re.match(f"trials/alpha/{merged.name} .*checksum", message)


def test_compaction_quarantines_damaged_files_and_merges_the_rest(root):
    store = fill_store(root, [1, 2, 3])
    uncompacted_path(root, 2).write_bytes(b"PAR1")
    assert store.upkeep.compact() == 2 + 3
    assert list(store.latest_attempts()) == [make_trial_id(1), make_trial_id(3)]
    assert [path.name for path in store.damaged] == [f"{make_trial_id(2)}-0.parquet"]


def test_a_damaged_file_that_cannot_be_moved_is_left_out_where_it_is(root, caplog, golden):
    store = fill_store(root, [1, 2])
    path = uncompacted_path(root, 2)
    path.write_bytes(b"PAR1")
    (root / "quarantine").write_text("in the way")
    for _ in range(2):
        assert store.latest_attempts() == {make_trial_id(1): ("done", 0)}
    assert store.damaged == (path,)
    assert path.read_bytes() == b"PAR1"
    golden(caplog.messages[0])


def write_without_checksum(frame, path, version=None):
    """Write a file as another tool would."""
    table = frame.to_arrow()
    table = table.replace_schema_metadata({"activemem.schema": version} if version else {})
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path)


@pytest.mark.parametrize("dataset", ["trials", "metrics"])
def test_an_unknown_schema_version_is_refused_and_left_alone(root, dataset, golden):
    store = fill_store(root, [1, 2])
    path = uncompacted_path(root, 2, dataset=dataset)
    data = path.read_bytes()
    start = data.index(b"activemem.sealed")
    path.write_bytes(add_checksum(data[:start] + data[start + 52 :], version=SCHEMA_VERSION + 1))
    for read in (store.metrics, store.upkeep.compact):
        with golden.raises(StoreError):
            read()
        assert sorted(path.parent.iterdir()) == [
            uncompacted_path(root, number, dataset=dataset) for number in (1, 2)
        ]
    assert store.damaged == ()


@pytest.mark.parametrize("version", [str(SCHEMA_VERSION + 1), "1.1"])
def test_parquet_of_another_version_is_refused(root, version, golden):
    path = uncompacted_path(root, 1)
    write_without_checksum(trial_frame(make_trial_row(1)), path, version)
    with golden.raises(StoreError):
        Store(root).latest_attempts()
    assert path.exists()


def test_parquet_that_no_store_wrote_is_left_out_and_where_it_is(root, caplog, golden):
    store = fill_store(root, [1])
    path = uncompacted_path(root, 2)
    write_without_checksum(trial_frame(make_trial_row(2)), path)
    for _ in range(2):
        assert list(store.latest_attempts()) == [make_trial_id(1)]
    golden(caplog.messages)
    assert store.damaged == (path,)
    assert path.exists()


STRANGERS = {
    "a pipe": os.mkfifo,
    "a folder": os.mkdir,
    "a broken link": lambda path: path.symlink_to("nowhere"),
}


@pytest.mark.parametrize("kind", STRANGERS)
def test_an_irregular_file_does_not_stop_other_reads(root, caplog, kind):
    store = fill_store(root, [1, 2])
    before = store_contents(root)
    for dataset in ("trials", "metrics"):
        STRANGERS[kind](uncompacted_path(root, 3, dataset=dataset))
        STRANGERS[kind](root / dataset / "alpha/compacted-0000000000000000-00000000.parquet")
    (root / "trials/stray.parquet").write_bytes(b"no folder")
    store.records.save("alpha", {"text": "as it was"})
    STRANGERS[kind](root / "studies/beta.json")
    assert str(store_contents(root)) == str(before)
    assert len(store.follow()) == 2
    assert store.records.latest() == "alpha"
    assert store.records.load("beta") is None
    assert store.upkeep.compact() == 4
    assert str(store_contents(root)) == str(before)
    assert all("a broken link" in message for message in caplog.messages)


def test_a_file_of_our_version_without_its_seal_is_damaged(root, caplog, golden):
    path = uncompacted_path(root, 1)
    write_without_checksum(trial_frame(make_trial_row(1)), path, "1")
    assert Store(root).latest_attempts() == {}
    golden(caplog.messages)
