"""Stores in `old_stores` were written by older releases of what we build on; each must read for ever."""

from pathlib import Path

import pytest

from activemem.storage import Store

from .factories import copy_store, fill_store, make_metric_rows, make_trial_id, make_trial_row, store_contents

OLD_STORES = sorted(Path(__file__).with_name("old_stores").iterdir())


@pytest.mark.parametrize("kept", OLD_STORES, ids=[path.name for path in OLD_STORES])
def test_a_store_of_an_older_release_reads_and_goes_on(kept, root, tmp_path):
    store = Store(copy_store(kept, root))
    other = fill_store(tmp_path / "other", [1, 2])
    other.write(make_trial_row(3, status="failed", reason="time limit", metrics=()), make_metric_rows(3))
    for merged in (4, 0):
        assert str(store_contents(root)) == str(store_contents(other.root))
        assert store.load_study_record("alpha") == {"text": "name = 'é'"}
        assert store.compact() == merged
    fill_store(root, [4])
    assert list(store.latest_attempts()) == [make_trial_id(number) for number in (1, 2, 3, 4)]
    assert store.damaged == ()
