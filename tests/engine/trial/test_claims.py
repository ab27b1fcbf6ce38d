"""Claims: trials stored meanwhile by other processes are not trained again."""

import os
import time

import pytest

from activemem import load_study
from activemem.engine import Run
from activemem.engine.trial.outcome import Job
from activemem.engine.trial.resumable_attempt import Claims
from activemem.storage import Store
from activemem.storage.leases import KEPT_S

from ...storage.factories import make_trial_row


@pytest.mark.parametrize("removed", ["none", "ended", "old"])
def test_the_store_is_read_again_after_leases_were_removed(tiny, tmp_path, removed):
    store = Store(tmp_path / "results")
    first, second, third, *_ = load_study(tiny).trials
    mine = Claims(store, "mine")
    lease = mine.claim(Job(trial=first, attempt=0, run="mine"))  # now it knows what the store holds
    store.write(make_trial_row(1, trial=second.id), [])
    if removed != "none":
        store.leases("other").claim((second if removed == "ended" else third).id, 0).end()
        long_ago = time.time() - KEPT_S - 60
        if removed == "old":
            os.utime(store.root / "leases" / f"{third.id}-0", (long_ago, long_ago))
        store.upkeep.compact()
    claimed = mine.claim(Job(trial=second, attempt=0, run="mine"))
    assert isinstance(claimed, Run) == (removed != "none")
    lease.release()
