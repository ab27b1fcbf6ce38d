"""Leases: one process owns an attempt at a time, as long as it lives."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from activemem.storage import leases as module
from activemem.storage.leases import KEPT_S, LEASE_S, SWEEPS, Lease, Leases, LeaseState, Owner, this_process
from activemem.storage.store import open_layout

from ..waiting import wait_for
from .factories import make_metric_rows, make_trial_id, make_trial_row

TRIAL = make_trial_id(1)


class Clock:
    """The monotonic clock of one host, unrelated to other hosts' clocks."""

    def __init__(self, now):
        self.now = now

    def __call__(self):
        return self.now


@pytest.fixture
def layout(root):
    return open_layout(root)


def elsewhere(layout, host, now=0.0, **options):
    """Return leases as made by a process on another host."""
    owner = Owner(host=host, pid=7, run=f"run on {host}", machine=f"boot of {host}", started="100")
    return Leases(layout, owner, clock=Clock(now), **options)


def test_an_attempt_is_claimed_by_one_and_the_other_learns_by_whom(layout):
    first, second = elsewhere(layout, "a"), elsewhere(layout, "b")
    lease = first.claim(TRIAL, 0)
    assert (lease.trial, lease.attempt) == (TRIAL, 0)
    found = second.claim(TRIAL, 0)
    assert found == LeaseState(trial=TRIAL, attempt=0, owner=first.owner, ended=False, gone=False)
    assert isinstance(second.claim(make_trial_id(2), 0), Lease)


@pytest.mark.parametrize("put", [os.mkfifo, Path.mkdir, lambda path: path.symlink_to("nothing")])
def test_an_irregular_lease_file_runs_out_and_ends_the_lease(layout, put):
    held, watcher = elsewhere(layout, "a").claim(TRIAL, 0), elsewhere(layout, "b")
    path = layout.lease(TRIAL, 0)
    path.unlink()
    put(path)
    assert held.is_lost()
    held.beat()
    assert not watcher.claim(TRIAL, 0).gone
    watcher.clock.now += LEASE_S
    assert watcher.claim(TRIAL, 0).attempt == 1


def test_one_of_many_simultaneous_claims_succeeds(layout):
    claims, start = [], threading.Barrier(8)

    def claim(number):
        leases = elsewhere(layout, f"host {number}")
        start.wait()
        claims.append(leases.claim(TRIAL, 0))

    threads = [threading.Thread(target=claim, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(type(each).__name__ for each in claims) == ["Lease", *["LeaseState"] * 7]


def test_an_ended_trial_is_not_claimed_by_a_process_that_planned_it_earlier(layout):
    first, second = elsewhere(layout, "a"), elsewhere(layout, "b")
    first.claim(TRIAL, 0).end()
    assert second.claim(TRIAL, 0).ended
    assert second.claim(TRIAL, 1).attempt == 1  # who knows of the outcome may try again


def test_a_released_attempt_has_the_same_number_again(layout):
    first, second = elsewhere(layout, "a"), elsewhere(layout, "b")
    first.claim(TRIAL, 0).release()
    assert second.find(TRIAL, 0) is None
    assert second.claim(TRIAL, 0).attempt == 0


@pytest.mark.parametrize("ahead_s", [-1e6, 0.0, 1e6])
def test_a_silent_owner_elsewhere_is_taken_over_by_the_watchers_own_clock(layout, ahead_s):
    first = elsewhere(layout, "a", now=1e9)
    lease = first.claim(TRIAL, 0)
    second = elsewhere(layout, "b", now=1e9 + ahead_s)
    for _ in range(3):
        assert not second.find(TRIAL, 0).gone
        second.clock.now += 0.9 * LEASE_S
        first.beat()
    assert isinstance(second.claim(TRIAL, 0), LeaseState)
    second.clock.now += 1.1 * LEASE_S
    assert not lease.is_lost()
    taken = second.claim(TRIAL, 0)
    assert taken.attempt == 1
    assert lease.is_lost()
    assert not taken.is_lost()


def test_a_process_that_wakes_up_after_a_takeover_does_not_touch_the_lease(layout):
    first, second, third = (elsewhere(layout, host) for host in "abc")
    lease = first.claim(TRIAL, 0)
    taken = second.claim(TRIAL, 0, gone=0)
    first.beat()
    lease.release()
    assert third.claim(TRIAL, 0).attempt == 1
    assert not taken.is_lost()


def test_the_length_of_a_lease_is_its_owners(layout):
    elsewhere(layout, "a", lease_s=1.0).claim(TRIAL, 0)
    second = elsewhere(layout, "b")
    assert not second.find(TRIAL, 0).gone
    second.clock.now += 1.0
    assert second.find(TRIAL, 0).gone


def test_workers_of_one_run_take_over_from_each_other(layout):
    first = elsewhere(layout, "a")
    second = Leases(layout, Owner(host="b", pid=8, run=first.owner.run, machine="m", started="1"))
    lease = first.claim(TRIAL, 0)
    assert second.claim(TRIAL, 0).attempt == 1
    assert lease.is_lost()


def test_a_process_of_this_machine_that_was_killed_is_seen_at_once(root, layout):
    script = (
        "import sys, time; from activemem.storage import Store; "
        f"lease = Store({str(root)!r}).leases('other').claim({TRIAL!r}, 0); print('claimed', flush=True); "
        "time.sleep(600)"
    )
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "claimed\n"
    ours = Leases(layout, this_process("ours"))
    found = ours.claim(TRIAL, 0)
    assert (found.owner.pid, found.gone) == (process.pid, False)
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it is still there, as a zombie
    assert ours.claim(TRIAL, 0).attempt == 1
    process.communicate()


def test_another_process_that_has_the_number_of_a_dead_one_is_not_taken_for_it(layout):
    first = this_process("other")
    before = Owner(host=first.host, pid=first.pid, run="other", machine=first.machine, started="1")
    Leases(layout, before).claim(TRIAL, 0)
    assert Leases(layout, this_process("ours")).claim(TRIAL, 0).attempt == 1


def test_a_lease_without_a_readable_owner_runs_out_like_any_other(layout):
    layout.leases.mkdir(parents=True)
    layout.lease(TRIAL, 0).touch()  # its owner died before the first line
    second = elsewhere(layout, "b")
    assert not second.claim(TRIAL, 0).gone
    second.clock.now += LEASE_S
    assert second.claim(TRIAL, 0).attempt == 1


def test_leases_are_renewed_by_a_thread_that_ends_with_the_last_lease(layout):
    before = threading.enumerate()
    leases = elsewhere(layout, "a", lease_s=0.06)
    lease = leases.claim(TRIAL, 0)
    size = layout.lease(TRIAL, 0).stat().st_size
    wait_for(lambda: layout.lease(TRIAL, 0).stat().st_size > size + 1)
    (thread,) = (each for each in threading.enumerate() if each not in before)
    lease.end()
    assert not thread.is_alive()


def test_a_lease_that_nobody_refers_to_is_renewed_no_more(layout):
    leases = elsewhere(layout, "a")
    lease = leases.claim(TRIAL, 0)
    size = layout.lease(TRIAL, 0).stat().st_size
    del lease
    leases.beat()
    assert layout.lease(TRIAL, 0).stat().st_size == size


def test_a_lease_whose_file_is_gone_is_lost(layout):
    lease = elsewhere(layout, "a").claim(TRIAL, 0)
    layout.lease(TRIAL, 0).unlink()
    lease.beat()
    assert lease.is_lost()
    other = elsewhere(layout, "b").claim(TRIAL, 0)
    assert lease.is_lost()
    assert not other.is_lost()


def test_old_leases_are_cleared_when_all_of_a_trial_are_old(store, layout):
    store.make()
    leases = elsewhere(layout, "a")
    kept = [leases.claim(make_trial_id(number), 0) for number in (1, 2, 3)]
    kept[0].end()
    kept.append(leases.claim(make_trial_id(3), 1))
    long_ago = time.time() - KEPT_S - 60
    for number in (1, 3):
        os.utime(layout.lease(make_trial_id(number), 0), (long_ago, long_ago))
    store.upkeep.compact()
    left = sorted(path.name for path in layout.leases.iterdir() if path.name != SWEEPS)
    assert left == [f"{make_trial_id(2)}-0", f"{make_trial_id(3)}-0", f"{make_trial_id(3)}-1"]
    assert list(layout.unfinished.iterdir()) == []


def test_a_folder_in_place_of_the_record_of_removals_keeps_the_leases_of_ended_trials(store, layout):
    store.write(make_trial_row(1), make_metric_rows())
    elsewhere(layout, "a").claim(TRIAL, 0).end()
    (layout.leases / SWEEPS).mkdir()
    store.upkeep.compact()
    assert layout.lease(TRIAL, 0).exists()
    (layout.leases / SWEEPS).rmdir()
    store.upkeep.compact()
    assert not layout.lease(TRIAL, 0).exists()


def test_a_system_without_process_information_waits_for_leases_to_run_out(layout, monkeypatch):
    monkeypatch.setattr(module, "this_machine", lambda: None)
    Leases(layout, this_process("other")).claim(TRIAL, 0)
    assert not Leases(layout, this_process("ours")).claim(TRIAL, 0).gone
