"""Claims: trials stored meanwhile by other processes are not trained again, whatever the clocks show."""

import time

import pytest

from activemem import load_study
from activemem.engine.core import ClaimedElsewhere
from activemem.engine.trial import REFRESH_S, Claims, Job
from activemem.engine.trial import resumable_attempt as claims
from activemem.storage import Store

from ...storage.factories import make_trial_row

HOURS_S = 3 * 3600.0


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "results")


@pytest.mark.parametrize(
    ("clock", "shift_s"),
    [("monotonic", HOURS_S), ("time", HOURS_S), ("time", -HOURS_S), ("time", REFRESH_S / 2)],
    ids=["hours later", "after hours of sleep", "clock put back", "soon"],
)
def test_the_store_is_read_again_when_leases_may_have_been_cleared_away(
    tiny, store, monkeypatch, clock, shift_s
):
    first, second, *_ = load_study(tiny).trials
    mine = Claims(store, "mine")
    _, lease = mine.claim(Job(trial=first, attempt=0, run="mine"))  # now it knows what the store holds
    store.write(make_trial_row(1, trial=second.id), [])  # and its lease has been cleared away
    now = getattr(time, clock)
    monkeypatch.setattr(claims.time, clock, lambda: now() + shift_s)
    claimed = mine.claim(Job(trial=second, attempt=0, run="mine"))
    assert isinstance(claimed, ClaimedElsewhere) == (abs(shift_s) > REFRESH_S)
    lease.release()
