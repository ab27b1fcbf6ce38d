"""Stores in `old_stores`, written with older dependencies, must remain readable."""

from pathlib import Path

import polars as pl
import pytest

import activemem
from activemem.storage import Store
from activemem.storage.checksums import encode
from activemem.storage.rows import SCHEMAS, TRIALS

from .factories import copy_store, fill_store, make_metric_rows, make_trial_id, make_trial_row, store_contents

OLD_STORES = sorted(Path(__file__).with_name("old_stores").iterdir())


@pytest.mark.parametrize("kept", OLD_STORES, ids=[path.name for path in OLD_STORES])
def test_a_store_of_an_older_release_can_be_read_and_continued(kept, root, tmp_path):
    store = Store(copy_store(kept, root))
    other = fill_store(tmp_path / "other", [1, 2])
    other.write(make_trial_row(3, status="failed", reason="time limit", metrics=()), make_metric_rows(3))
    for merged in (4, 0):
        assert str(store_contents(root)) == str(store_contents(other.root))
        assert store.records.load("alpha") == {"text": "name = 'é'"}
        assert store.upkeep.compact() == merged
    versions = {"torch_version": "2.13.0+cpu", "cuda_version": "", "python_version": "3.11.2"}
    fill_store(root, [4], **versions)
    for _ in range(2):
        rows = store.trials().select("trial", *versions).rows()
        assert rows == [(make_trial_id(number), None, None, None) for number in (1, 2, 3)] + [
            (make_trial_id(4), "2.13.0+cpu", "", "3.11.2")
        ]
        latest = store.follow()
        assert latest.frame(latest.values()).sort("trial").equals(store.trials())
        store.upkeep.compact()
    assert list(store.latest_attempts()) == [make_trial_id(number) for number in (1, 2, 3, 4)]
    assert store.damaged == ()


@pytest.mark.parametrize("kept", OLD_STORES, ids=[path.name for path in OLD_STORES])
def test_files_of_an_older_release_and_new_ones_are_read_by_polars_alone(kept, root):
    fill_store(copy_store(kept, root), [4], python_version="3.11.2")
    paths = sorted((root / "trials").rglob("*.parquet"))
    frame = pl.concat(map(pl.read_parquet, paths), how="diagonal")
    assert frame.sort("trial").select(TRIALS.names()).equals(Store(root).trials())
    shared = pl.scan_parquet(paths, missing_columns="insert", extra_columns="ignore").collect()
    assert sorted(shared["trial"]) == [make_trial_id(number) for number in (1, 2, 3, 4)]


@pytest.mark.parametrize("is_merged", [True, False], ids=["merged before", "never merged"])
@pytest.mark.parametrize("absent", [{"packed_steps"}, {"torch_version", "continued_from"}], ids=sorted)
def test_compaction_gives_all_files_of_a_store_the_columns_of_today(root, absent, is_merged):
    store = fill_store(root, [1, 2])
    if is_merged:
        store.upkeep.compact()
    for path in (root / "trials/alpha").iterdir():
        path.write_bytes(encode(pl.read_parquet(path).drop(absent)))
    fill_store(root, [3], study="beta")
    before = store_contents(root)
    assert store.upkeep.compact() > 0
    assert pl.read_parquet(root / "trials/**/*.parquet").schema == TRIALS
    assert str(store_contents(root)) == str(before)
    assert store.upkeep.compact() == 0


def test_any_program_reads_the_committed_results_as_one_table():
    results = Path(activemem.__file__).with_name("studies") / "results"
    for dataset, schema in SCHEMAS.items():
        if any((results / dataset).rglob("*.parquet")):
            found = pl.scan_parquet(results / dataset / "**/*.parquet").collect_schema()
            assert found.items() <= schema.items()  # later columns are null
            assert len(pl.scan_parquet(results / dataset / "**/*.parquet").select("trial").collect())
