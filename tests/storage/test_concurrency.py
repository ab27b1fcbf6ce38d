import polars as pl
import pytest

from activemem.storage import Store

from .factories import (
    copy_store,
    fill_store,
    finish_script,
    make_trial_id,
    start_script,
    store_contents,
    uncompacted_path,
)

TRIALS = 60  # as in load_generator.py


@pytest.mark.heavy
def test_readers_never_see_a_gap_or_a_duplicate_during_writes_and_compactions(root):
    store = fill_store(root, range(TRIALS))
    before = str(store_contents(root))
    busy = [start_script("load_generator.py", root, 3, action) for action in ("write", "compact", "compact")]
    readings = 0
    while any(process.poll() is None for process in busy):
        assert str(store_contents(root)) == before
        assert len(store.latest_attempts()) == TRIALS
        readings += 1
    rounds = [int(finish_script(process)) for process in busy]
    assert readings > 0
    assert min(rounds) > 0
    store.upkeep.compact()
    assert str(store_contents(root)) == before
    assert pl.read_parquet(root / "trials").height == TRIALS
    assert store.damaged == ()


def test_a_listing_that_a_compaction_has_torn_is_taken_again(root, tmp_path):
    store = fill_store(root, [1, 2])
    originals = copy_store(root, tmp_path / "copy")
    store.upkeep.compact()
    (merged,) = (root / "trials/alpha").iterdir()
    merged.rename(tmp_path / merged.name)
    uncompacted_path(originals, 2).rename(uncompacted_path(root, 2))
    # what is listed now has neither the first trial's own file nor the merged one
    assert (
        finish_script(start_script("concurrent_compaction.py", root, tmp_path / merged.name, merged))
        == f"{make_trial_id(1)} {make_trial_id(2)}\n"
    )


def test_two_processes_that_meet_one_damaged_file_quarantine_it_once(root):
    fill_store(root, [1, 2])
    uncompacted_path(root, 1).write_bytes(b"PAR1")
    stores = [Store(root), Store(root)]
    assert [store.latest_attempts() for store in stores] == [{make_trial_id(2): ("done", 0)}] * 2
    assert [len(store.damaged) for store in stores] == [1, 0]
