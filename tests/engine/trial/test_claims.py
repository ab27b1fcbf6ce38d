"""Claims: trials stored meanwhile by other processes are not trained again."""

from activemem import load_study
from activemem.engine.core import ClaimedElsewhere
from activemem.engine.trial import Claims, Job
from activemem.storage import Store

from ...storage.factories import make_trial_row


def test_the_store_is_read_again_when_leases_have_been_removed(tiny, tmp_path):
    store = Store(tmp_path / "results")
    first, second, *_ = load_study(tiny).trials
    mine = Claims(store, "mine")
    _, lease = mine.claim(Job(trial=first, attempt=0, run="mine"))  # now it knows what the store holds
    _, other = Claims(store, "other").claim(Job(trial=second, attempt=0, run="other"))
    store.write(make_trial_row(1, trial=second.id), [])
    other.end()
    store.upkeep.compact()
    assert not (store.root / "leases" / f"{second.id}-0").exists()
    assert isinstance(mine.claim(Job(trial=second, attempt=0, run="mine")), ClaimedElsewhere)
    lease.release()
