import os
import time
from concurrent.futures import ThreadPoolExecutor

import polars as pl
import pytest

from activemem.storage import MetricRow, Store, store_upkeep
from activemem.storage.place import new_compacted_path
from activemem.storage.store_upkeep import merge, write_merged

from .factories import (
    copy_store,
    fill_store,
    make_metric_rows,
    make_trial_id,
    make_trial_row,
    store_contents,
    uncompacted_path,
)


def names(root, dataset):
    return sorted(path.name for path in (root / dataset).rglob("*") if path.is_file())


def test_compaction_leaves_one_file_a_partition_and_the_same_rows(root):
    store = fill_store(root, range(5))
    fill_store(root, range(5, 8), study="beta")
    before = store_contents(root)
    assert store.upkeep.compact() == 2 * 8
    for dataset in ("trials", "metrics"):
        for study in ("alpha", "beta"):
            (path,) = (root / dataset / study).iterdir()
            assert path.name.startswith("compacted-")
    assert str(store_contents(root)) == str(before)
    assert store.trials().equals(pl.read_parquet(root / "trials/**/*.parquet").sort("trial"))


def test_a_later_merged_file_counts_as_later_even_if_the_clock_was_set_back(root, monkeypatch):
    paths = [new_compacted_path(root)]
    root.mkdir(exist_ok=True)
    for _ in range(2):
        paths[-1].touch()
        monkeypatch.setattr(time, "time_ns", lambda: 1)
        paths.append(new_compacted_path(root))
    assert [path.name for path in paths] == sorted(path.name for path in paths)


def test_a_compacted_store_is_left_as_it_is(root):
    store = fill_store(root, range(3))
    store.upkeep.compact()
    before = names(root, "")
    assert store.upkeep.compact() == 0
    assert names(root, "") == before


def test_compaction_takes_the_merged_file_with_the_new_ones(root):
    store = fill_store(root, range(3))
    store.upkeep.compact()
    fill_store(root, range(3, 5))
    before = store_contents(root)
    assert store.upkeep.compact() == 2 * 3
    assert len(names(root, "trials")) == 1
    assert str(store_contents(root)) == str(before)


def test_every_attempt_survives_compaction(root):
    store = fill_store(root, [1], status="failed", reason="time")
    fill_store(root, [1], attempt=1)
    store.upkeep.compact()
    assert pl.read_parquet(root / "trials/**/*.parquet")["attempt"].to_list() == [0, 1]
    assert pl.read_parquet(root / "metrics/**/*.parquet").height == 8


@pytest.mark.parametrize("way", ["compact", "forget"])
def test_values_measured_again_during_a_merge_are_kept(root, monkeypatch, way):
    store, row = fill_store(root, range(3)), make_trial_row(1)
    merged = write_merged
    probes = [MetricRow(step=200, epoch=2, name=name, value=0.5) for name in ("theta", "gates")]
    for number in range(3):
        store.write_probes(make_trial_row(number), probes[:1])

    def write_then_another_measures(place, dataset, partition, rows, replaced):
        merged(place, dataset, partition, rows, replaced)
        if dataset == "probes" and len(probes) > 1:
            Store(root).write_probes(row, [probes.pop()])

    monkeypatch.setattr(store_upkeep, "write_merged", write_then_another_measures)
    monkeypatch.setattr(store_upkeep, "write_merged", write_then_another_measures)
    if way == "compact":
        store.upkeep.compact()
    else:
        store.upkeep.forget("alpha", [make_trial_id(0)])
    monkeypatch.undo()
    for _ in range(2):
        found = Store(root).metrics([make_trial_id(1)])["name"].to_list()
        assert found == ["accuracy", "loss", "accuracy", "gates", "loss", "theta"]
        store.upkeep.compact()
    assert [name[:10] for name in names(root, "probes")] == ["compacted-"]


def test_rows_that_a_crash_has_doubled_are_counted_once_and_mended(root, tmp_path):
    store = fill_store(root, range(3))
    before = store_contents(root)
    originals = copy_store(root, tmp_path / "copy")
    store.upkeep.compact()
    for path in (originals / "trials/alpha").iterdir():
        path.rename(root / "trials/alpha" / path.name)
    for path in (originals / "metrics/alpha").iterdir():
        path.rename(root / "metrics/alpha" / path.name)
    assert pl.read_parquet(root / "trials/**/*.parquet").height == 6
    assert str(store_contents(root)) == str(before)
    assert store.upkeep.compact() == 2 * 4
    assert pl.read_parquet(root / "trials/**/*.parquet").height == 3
    assert pl.read_parquet(root / "metrics/**/*.parquet").height == 3 * 4
    assert str(store_contents(root)) == str(before)


def test_two_compactions_in_the_same_moment_double_nothing_and_the_next_mends(root, monkeypatch):
    first, second = fill_store(root, [1, 2, 3]), Store(root)
    before = str(store_contents(root))

    def merge_between(*arguments):
        monkeypatch.setattr(store_upkeep, "merge", merge)
        second.upkeep.compact()  # all of it, while the first one has read and has not written
        return merge(*arguments)

    monkeypatch.setattr(store_upkeep, "merge", merge_between)
    first.upkeep.compact()
    assert str(store_contents(root)) == before
    Store(root).upkeep.compact()
    assert pl.read_parquet(root / "trials/**/*.parquet").height == 3
    for dataset in ("trials", "metrics"):
        assert [path.name.startswith("compacted-") for path in (root / dataset / "alpha").iterdir()] == [True]
    assert str(store_contents(root)) == before


def test_many_compactions_at_once_lose_nothing_and_the_next_leaves_one_file(root):
    fill_store(root, range(1, 9))
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: Store(root).upkeep.compact(), range(8)))
    assert Store(root).trials().height == 8
    Store(root).upkeep.compact()
    for dataset in ("trials", "metrics"):
        assert [path.name.startswith("compacted-") for path in (root / dataset / "alpha").iterdir()] == [True]
    assert pl.read_parquet(root / "trials/**/*.parquet").height == 8


def test_the_later_of_two_merged_files_counts(root, tmp_path):
    store = fill_store(root, [1], host="first")
    store.upkeep.compact()
    first = copy_store(root, tmp_path / "copy")
    fill_store(root, [1], host="second")
    store.upkeep.compact()
    for dataset in ("trials", "metrics"):
        (path,) = (first / dataset / "alpha").iterdir()
        path.rename(root / dataset / "alpha" / path.name)
    for _ in range(2):
        assert store.trials()["host"].to_list() == ["second"]
        store.upkeep.compact()


def test_metrics_of_one_attempt_are_never_mixed_from_two_files(root):
    store = Store(root)
    store.write(make_trial_row(1), make_metric_rows(1))
    store.upkeep.compact()
    store.write(make_trial_row(1), make_metric_rows(7)[:1])
    assert store.metrics().rows() == [(make_trial_id(1), 0, 200, 2, "loss", 14.0)]


def test_old_unfinished_files_are_swept_and_young_ones_are_not(root):
    store = fill_store(root, [1])
    old, young = (root / f"unfinished/.{make_trial_id(1)}-{n}.parquet.{n:032x}" for n in (0, 1))
    old.write_bytes(b"half a file")
    young.write_bytes(b"half a file")
    day = time.time() - 25 * 3600
    os.utime(old, (day, day))
    assert store.latest_attempts() == {make_trial_id(1): ("done", 0)}
    store.upkeep.compact()
    assert [path.name for path in (root / "unfinished").iterdir()] == [young.name]


def test_the_merged_file_is_found_when_the_own_file_is_gone(root):
    store = fill_store(root, [1, 2])
    store.upkeep.compact()
    assert not uncompacted_path(root, 1).exists()
    assert list(store.latest_attempts()) == [make_trial_id(1), make_trial_id(2)]


def test_during_a_run_outcomes_are_merged_once_there_are_many(root):
    store, latest = fill_store(root, range(3)), Store(root).follow()
    assert store.upkeep.merge_ended("alpha", at_least=4) == 0
    assert store.upkeep.merge_ended("beta", at_least=1) == 0
    begun = uncompacted_path(root, 9, dataset="metrics")
    uncompacted_path(root, 2, dataset="metrics").rename(begun)  # of an attempt without a row yet
    assert store.upkeep.merge_ended("alpha", at_least=3) == 3 + 2
    fill_store(root, range(3, 6))
    assert store.upkeep.merge_ended("alpha", at_least=3) == 2 * 3
    assert [len(names(root, dataset)) for dataset in ("trials", "metrics")] == [2, 2 + 1]
    assert begun.exists()
    latest.refresh()
    assert latest.trials().equals(store.trials())
    assert store.upkeep.compact() == 2 + 3
    assert store.metrics().height == 4 * 6


@pytest.mark.parametrize("way", ["compact", "merge_ended", "forget"])
def test_a_user_with_a_strict_umask_takes_no_row_from_the_group(root, way):
    before = os.umask(0o022)
    try:
        store = fill_store(root, [1])
        store.records.save("alpha", {"text": ""})
        os.umask(0o077)
        fill_store(root, [2, 3])
        store.records.save("alpha", {"text": "", "run": "a"})
        ways = {
            "compact": store.upkeep.compact,
            "merge_ended": lambda: store.upkeep.merge_ended("alpha", at_least=1),
            "forget": lambda: store.upkeep.forget("alpha", [make_trial_id(2)]),
        }
        ways[way]()
    finally:
        os.umask(before)
    files = [path for name in ("trials", "metrics") for path in (root / name).glob("*/compacted-*")]
    assert len(files) == 2
    kept = [*files, *(root / "studies").glob("alpha.json")]
    assert {path.stat().st_mode & 0o777 for path in kept} == {0o644}


def test_a_merge_of_private_files_is_private(root):
    before = os.umask(0o077)
    try:
        fill_store(root, [1, 2]).upkeep.compact()
    finally:
        os.umask(before)
    modes = {path.stat().st_mode & 0o777 for path in (root / "trials").rglob("*.parquet")}
    assert modes == {0o600}
