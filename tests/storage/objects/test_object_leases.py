"""Leases in a bucket: one owner at a time, despite lost answers."""

import threading

import pytest

from activemem.storage import Store
from activemem.storage.leases import LEASE_S, Lease, Leases, LeaseState, Owner
from activemem.storage.store import open_layout

from ..factories import make_trial_id

TRIAL = make_trial_id(1)
KEY = f"some/results/leases/{TRIAL}-0"


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def elsewhere(address):
    """Return a function that makes leases as on another host."""

    def make(host):
        owner = Owner(host=host, pid=7, run=f"run on {host}", machine=f"boot of {host}", started="100")
        leases = Leases(open_layout(address), owner)
        leases.clock = Clock()
        return leases

    return make


def test_an_attempt_is_claimed_by_one_and_the_other_learns_by_whom(elsewhere):
    first, second = elsewhere("a"), elsewhere("b")
    lease = first.claim(TRIAL, 0)
    assert (lease.trial, lease.attempt, lease.is_lost()) == (TRIAL, 0, False)
    expected = LeaseState(trial=TRIAL, attempt=0, owner=first.owner, ended=False, gone=False, listed=True)
    assert second.claim(TRIAL, 0) == expected
    lease.end()
    assert second.find(TRIAL, 0).ended
    assert second.find(TRIAL, 0).lists_are_current


def test_one_of_many_simultaneous_claims_succeeds(elsewhere):
    several, claims = [elsewhere(f"host {number}") for number in range(4)], []
    start = threading.Barrier(4)

    def claim(leases):
        start.wait()
        claims.append(leases.claim(TRIAL, 0))

    threads = [threading.Thread(target=claim, args=(leases,)) for leases in several]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(isinstance(each, Lease) for each in claims) == 1


def test_silence_is_measured_on_the_clock_of_whoever_watches(elsewhere):
    first, second = elsewhere("a"), elsewhere("b")
    lease = first.claim(TRIAL, 0)
    assert not second.find(TRIAL, 0).gone
    second.clock.now = LEASE_S - 1
    lease.beat()
    assert not second.find(TRIAL, 0).gone
    second.clock.now += LEASE_S - 1
    assert not second.find(TRIAL, 0).gone
    second.clock.now += 1
    assert second.find(TRIAL, 0).gone


def test_a_lease_that_was_taken_over_is_lost_and_its_late_renewals_change_nothing(elsewhere):
    first, second = elsewhere("a"), elsewhere("b")
    late = first.claim(TRIAL, 0)
    second.find(TRIAL, 0)
    second.clock.now = LEASE_S
    lease = second.claim(TRIAL, 0)
    assert (lease.attempt, late.is_lost(), lease.is_lost()) == (1, True, False)
    late.beat()
    late.release()
    assert elsewhere("c").claim(TRIAL, 0) == LeaseState(
        trial=TRIAL, attempt=1, owner=second.owner, ended=False, gone=False, listed=True
    )


def test_a_renewal_does_not_write_over_what_somebody_else_has_put_there(server, elsewhere):
    lease = elsewhere("a").claim(TRIAL, 0)
    data, changed = server.objects[KEY]
    server.objects[KEY] = data.replace(b'"a"', b'"b"'), changed
    lease.beat()
    lease.end()
    assert b'"a"' not in server.objects[KEY][0].splitlines()[0]
    assert lease.is_lost()
    del server.objects[KEY]
    lease.beat()
    assert KEY not in server.objects


def test_lost_answers_neither_give_a_claim_away_nor_stop_its_renewals(server, elsewhere):
    server.lose.append(lambda method, key: (method, key) == ("PUT", KEY))
    lease = elsewhere("a").claim(TRIAL, 0)
    assert isinstance(lease, Lease)
    server.lose += [lambda method, key: (method, key) == ("PUT", KEY)] * 3  # as often as obstore tries
    lease.beat()
    lease.beat()
    assert (server.lose, lease.is_lost()) == ([], False)
    beats = server.objects[KEY][0].partition(b"\n")[2]
    lease.end()
    assert server.objects[KEY][0].partition(b"\n")[2] == beats + b"e"


def test_a_released_attempt_can_be_claimed_by_others(elsewhere):
    elsewhere("a").claim(TRIAL, 0).release()
    assert elsewhere("b").claim(TRIAL, 0).attempt == 0


def test_a_store_in_a_bucket_has_such_leases(address):
    leases = Store(address).leases("run")
    assert leases.claim(TRIAL, 0).attempt == 0
