"""One damaged place in a merged file costs one of its row groups, whose trials run again."""

import io
import random

import pyarrow.parquet as pq
import pytest

from activemem.storage import Store
from activemem.storage.parquet_file import encode, salvage, verify_checksum
from activemem.storage.rows import metric_frame

from .factories import (
    copy_store,
    fill_store,
    make_metric_rows,
    make_trial_id,
    make_trial_row,
    store_contents,
)

TRIALS = 150
GROUPS = [range(1, 65), range(65, 129), range(129, 151)]
"""The trials of each row group."""


@pytest.fixture(scope="module")
def merged(tmp_path_factory):
    """A store of one merged file for each dataset."""
    root = tmp_path_factory.mktemp("merged") / "results"
    fill_store(root, range(1, TRIALS + 1)).upkeep.compact()
    return root


@pytest.fixture
def root(merged, tmp_path):
    return copy_store(merged, tmp_path / "results")


def merged_file(root, dataset="trials"):
    (path,) = (root / dataset / "alpha").iterdir()
    return path


def flip(path, place, bit=0):
    data = bytearray(path.read_bytes())
    data[place] ^= 1 << bit
    path.write_bytes(data)


def group_of(trial):
    return next(number for number, group in enumerate(GROUPS) if int(trial, 16) in group)


def test_a_merged_file_with_row_groups_is_an_ordinary_parquet_file(root):
    data = merged_file(root).read_bytes()
    verify_checksum(data)
    file = pq.ParquetFile(io.BytesIO(data), page_checksum_verification=True)
    assert [file.metadata.row_group(number).num_rows for number in range(3)] == [64, 64, 22]
    assert file.read()["trial"].to_pylist() == [make_trial_id(number) for number in range(1, TRIALS + 1)]


def test_a_damaged_row_group_costs_its_trials_alone(root, caplog):
    before = Store(root).trials()
    path = merged_file(root)
    flip(path, pq.read_metadata(path).row_group(1).column(0).data_page_offset + 5)
    store = Store(root)
    assert str(store.trials().rows()) == str(before.rows()[:64] + before.rows()[128:])
    assert len(store.follow()) == TRIALS - 64
    assert store.damaged == (root / "quarantine/trials/alpha" / path.name,)
    assert caplog.messages == [
        f"trials/alpha/{path.name} is quarantined: its bytes do not match its checksum; "
        "2 of 3 row groups are intact; the rest count as missing"
    ]
    fill_store(root, GROUPS[1])
    assert store.upkeep.compact() == 1 + 64 + 1 + 64
    assert str(Store(root).trials().rows()) == str(before.rows())


@pytest.mark.heavy
@pytest.mark.parametrize("dataset", ["trials", "metrics"])
def test_a_flipped_bit_anywhere_costs_one_row_group_at_most_and_alters_nothing(root, dataset):
    chance = random.Random(8)
    sound = merged_file(root, dataset).read_bytes()
    contents = store_contents(root)[dataset == "metrics"]
    losses = []
    for _ in range(60):
        path = merged_file(root, dataset)
        path.write_bytes(sound)
        flip(path, chance.randrange(len(sound)), chance.randrange(8))
        left = store_contents(root)[dataset == "metrics"]
        rows = set(map(str, left))
        lost = {group_of(row[0]) for row in contents if str(row) not in rows}
        assert [str(row) for row in left] == [str(row) for row in contents if group_of(row[0]) not in lost]
        assert len(lost) <= 1
        assert not Store(root).damaged
        losses.append(len(lost))
    assert 0 < sum(losses) < len(losses)


def test_a_merged_file_without_its_footer_has_another(root):
    path, before = merged_file(root), Store(root).trials()
    data = path.read_bytes()
    path.write_bytes(data[:-1000])
    assert str(Store(root).trials().rows()) == str(before.rows())
    merged_file(root).write_bytes(data[: len(data) // 2])
    assert Store(root).trials().is_empty()


def test_in_a_store_that_cannot_be_written_intact_row_groups_are_read_all_the_same(root, caplog):
    before = Store(root).trials()
    path = merged_file(root)
    flip(path, 10)
    (root / "unfinished").rmdir()
    (root / "unfinished").write_text("in the way")
    for _ in range(2):
        assert str(Store(root).trials().rows()) == str(before.rows()[64:])
    assert merged_file(root) == path
    assert caplog.messages[0] == (
        f"trials/alpha/{path.name} is left out: its bytes do not match its checksum; "
        "2 of 3 row groups are intact; the rest count as missing"
    )


def test_one_large_attempt_is_one_row_group():
    data = encode(metric_frame(make_trial_row(1), make_metric_rows() * 5000))
    assert pq.read_metadata(io.BytesIO(data)).num_row_groups == 1
    assert salvage(data) is None
