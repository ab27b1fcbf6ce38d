import os
import time

import polars as pl

from activemem.storage import Store

from .making import contents, copy, fill, loose, metrics, name, trial


def names(root, dataset):
    return sorted(path.name for path in (root / dataset).rglob("*") if path.is_file())


def test_compaction_leaves_one_file_a_partition_and_the_same_rows(root):
    store = fill(root, range(5))
    fill(root, range(5, 8), study="beta")
    before = contents(root)
    assert store.compact() == 2 * 8
    for dataset in ("trials", "metrics"):
        for study in ("alpha", "beta"):
            (path,) = (root / dataset / study).iterdir()
            assert path.name.startswith("compacted-")
    assert str(contents(root)) == str(before)
    assert store.trials().equals(pl.read_parquet(root / "trials/**/*.parquet").sort("trial"))


def test_a_compacted_store_is_left_as_it_is(root):
    store = fill(root, range(3))
    store.compact()
    before = names(root, "")
    assert store.compact() == 0
    assert names(root, "") == before


def test_compaction_takes_the_merged_file_with_the_new_ones(root):
    store = fill(root, range(3))
    store.compact()
    fill(root, range(3, 5))
    before = contents(root)
    assert store.compact() == 2 * 3
    assert len(names(root, "trials")) == 1
    assert str(contents(root)) == str(before)


def test_every_attempt_survives_compaction(root):
    store = fill(root, [1], status="failed", reason="time")
    fill(root, [1], attempt=1)
    store.compact()
    assert pl.read_parquet(root / "trials/**/*.parquet")["attempt"].to_list() == [0, 1]
    assert pl.read_parquet(root / "metrics/**/*.parquet").height == 8


def test_rows_that_a_crash_has_doubled_are_counted_once_and_mended(root, tmp_path):
    store = fill(root, range(3))
    before = contents(root)
    originals = copy(root, tmp_path / "copy")
    store.compact()
    for path in (originals / "trials/alpha").iterdir():
        path.rename(root / "trials/alpha" / path.name)
    for path in (originals / "metrics/alpha").iterdir():
        path.rename(root / "metrics/alpha" / path.name)
    assert pl.read_parquet(root / "trials/**/*.parquet").height == 6
    assert str(contents(root)) == str(before)
    assert store.compact() == 2 * 4
    assert pl.read_parquet(root / "trials/**/*.parquet").height == 3
    assert pl.read_parquet(root / "metrics/**/*.parquet").height == 3 * 4
    assert str(contents(root)) == str(before)


def test_of_two_merged_files_the_later_counts(root, tmp_path):
    store = fill(root, [1], host="first")
    store.compact()
    first = copy(root, tmp_path / "copy")
    fill(root, [1], host="second")
    store.compact()
    for dataset in ("trials", "metrics"):
        (path,) = (first / dataset / "alpha").iterdir()
        path.rename(root / dataset / "alpha" / path.name)
    for _ in range(2):
        assert store.trials()["host"].to_list() == ["second"]
        store.compact()


def test_metrics_of_one_attempt_are_never_mixed_from_two_files(root):
    store = Store(root)
    store.write(trial(1), metrics(1))
    store.compact()
    store.write(trial(1), metrics(7)[:1])
    assert store.metrics().rows() == [(name(1), 0, 200, 2, "loss", 14.0)]


def test_old_unfinished_files_are_swept_and_young_ones_are_not(root):
    store = fill(root, [1])
    old, young = root / "unfinished/old.parquet.0", root / "unfinished/young.parquet.0"
    old.write_bytes(b"half a file")
    young.write_bytes(b"half a file")
    day = time.time() - 25 * 3600
    os.utime(old, (day, day))
    assert store.outcomes() == {name(1): ("done", 0)}
    store.compact()
    assert [path.name for path in (root / "unfinished").iterdir()] == ["young.parquet.0"]


def test_the_merged_file_is_found_when_the_own_file_is_gone(root):
    store = fill(root, [1, 2])
    store.compact()
    assert not loose(root, 1).exists()
    assert list(store.outcomes()) == [name(1), name(2)]
