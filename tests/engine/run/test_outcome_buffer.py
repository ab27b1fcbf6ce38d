"""Short trials are stored in groups, and reported as ended only afterwards."""

import errno
from dataclasses import replace

import pytest
import torch

from activemem.engine import Event, Machine
from activemem.engine.run.outcome_buffer import FLUSH_S, OutcomeBuffer
from activemem.engine.run.worker import Worker
from activemem.engine.trial.outcome import Job
from activemem.engine.trial.resumable_attempt import Attempt
from activemem.engine.trial.training import Work
from activemem.storage import Store
from activemem.studies import Trial

CPU = torch.device("cpu")


def sequentially(attempts):
    """Train one after the other; yield all events."""
    for attempt in attempts:
        while not attempt.ended:
            yield attempt.advance()


class Empty:
    """A training that ends immediately."""

    parameters = epoch = step = 0
    steps_left = 0
    finished = can_be_saved = True

    def __init__(self, settings, device, data):
        self.settings, self.work = settings, Work()

    def state(self):
        return {}


class Failing(Empty):
    """A training that raises."""

    finished = False

    def advance(self, between_steps):
        raise ValueError("no")


@pytest.fixture
def jobs(settings):
    plain = settings()
    trials = (
        Trial(study="tiny", levels={"seed": each}, settings=plain.model_copy(update={"seed": each}))
        for each in range(6)
    )
    return [Job(trial=trial, attempt=0, run="run") for trial in trials]


class Held(OutcomeBuffer):
    """Buffered outcomes of instant trainings, with a stopped clock."""

    def __init__(self, store):
        super().__init__(store, lambda: self.now)
        self.now, self.store = 0.0, store

    def all_stored(self, attempts):
        """Train one after the other; yield all events, each end once it is stored."""
        yield from self.stored(sequentially(attempts))
        yield from self.flush()

    def attempts(self, jobs, make_training=Empty):
        return [Attempt(job, self.store, CPU, make_training=make_training, buffer=self) for job in jobs]


def files(root, dataset="trials"):
    return sorted(path.name.partition("-")[0] for path in (root / dataset).rglob("*.parquet"))


def test_the_first_outcome_is_stored_at_once_and_each_is_reported_when_it_is_stored(tmp_path, jobs):
    held, told = Held(Store(tmp_path)), []
    for event in held.all_stored(held.attempts(jobs)):
        if event.kind == "ended":
            assert event.run.trial in Store(tmp_path).latest_attempts()
            assert not (tmp_path / "checkpoints" / event.run.trial).exists()
        told.append((event.kind, event.run.trial))
    assert files(tmp_path) == sorted([jobs[0].trial.id, "group"])
    first, *others = [job.trial.id for job in jobs]
    assert told == [
        *[("started", first), ("ended", first)],
        *(("started", trial) for trial in others),
        *(("ended", trial) for trial in others),
    ]
    assert all(state.ended for job in jobs if (state := held.store.leases("x").find(job.trial.id, 0)))


def test_buffered_outcomes_are_stored_between_the_steps_of_a_longer_trial(tmp_path, jobs):
    class Long(Empty):
        finished = False

        def advance(self, between_steps):
            held.now += FLUSH_S
            between_steps()
            stored.append(len(held.store.latest_attempts()))
            self.finished = True
            return {}

    held, stored = Held(Store(tmp_path)), []
    attempts = [*held.attempts(jobs[:3]), *held.attempts(jobs[3:4], Long)]
    assert sum(event.kind == "ended" for event in held.all_stored(attempts)) == 4
    assert stored == [3]


def test_a_worker_that_dies_leaves_what_it_held_to_be_trained_again_and_then_it_does_not_wait(tmp_path, jobs):
    held = Held(Store(tmp_path))
    events = held.all_stored(held.attempts(jobs[:3]))
    for _ in range(4):  # the second has ended and waits, the third has started
        next(events)
    assert len(Store(tmp_path).latest_attempts()) == 1
    later = Held(Store(tmp_path))
    later.flush_if_due()
    again = [replace(job, gone=0) for job in jobs[1:3]]
    told = list(later.all_stored(later.attempts(again)))
    assert [event.kind for event in told] == ["started", "ended", "started", "ended"]
    assert "group" not in files(tmp_path)
    assert {attempt for _, attempt in Store(tmp_path).latest_attempts().values()} == {0, 1}


def test_a_failure_is_stored_at_once_and_a_stop_reports_all_outcomes(tmp_path, jobs):
    held = Held(Store(tmp_path))
    attempts = [*held.attempts(jobs[:3]), *held.attempts(jobs[3:4], Failing)]
    told = [event.run.trial for event in held.stored(sequentially(attempts)) if event.kind == "ended"]
    assert told == [jobs[0].trial.id, jobs[3].trial.id]
    assert set(Store(tmp_path).latest_attempts()) == set(told)
    assert [event.run.trial for event in held.flush()] == [job.trial.id for job in jobs[1:3]]
    assert len(Store(tmp_path).latest_attempts()) == 4


def test_a_trial_that_another_process_has_taken_over_is_not_stored(tmp_path, jobs):
    held = Held(Store(tmp_path))
    events = held.all_stored(held.attempts(jobs[:3]))
    told = [next(events) for _ in range(4)]
    Store(tmp_path).leases("other").claim(jobs[1].trial.id, 0, gone=0)
    told += events
    assert [event.run.trial for event in told if event.kind == "elsewhere"] == [jobs[1].trial.id]
    assert set(Store(tmp_path).latest_attempts()) == {jobs[0].trial.id, jobs[2].trial.id}


def test_a_full_disk_is_reported_and_no_buffered_outcome_is(tmp_path, jobs, monkeypatch):
    def full(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device", "group")

    held = Held(Store(tmp_path))
    monkeypatch.setattr(held.store, "write_together", full)
    told = list(held.all_stored(held.attempts(jobs)))
    assert told[-1] == Event(kind="machine_failed", reason="No space left on device: group")
    assert not any(event.kind == "ended" for event in told)
    assert held.flush() == []


def test_short_trials_of_a_worker_share_files(tmp_path, jobs):
    worker = Worker(Store(tmp_path), Machine(), make_training=Empty)
    events = [event for job in jobs for event in worker.train(job)] + worker.flush()
    assert sum(event.kind == "ended" for event in events) == 6
    assert files(tmp_path).count("group") <= 2
    assert len(Store(tmp_path).latest_attempts()) == 6
