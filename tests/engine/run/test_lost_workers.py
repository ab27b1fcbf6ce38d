"""A group of trials that has lost its worker continues with another one, a limited number of times."""

import pytest
import torch
from ray.exceptions import ActorDiedError, ActorUnavailableError

from activemem import load_study
from activemem.engine import Started
from activemem.engine.core import NOBODY, Stop
from activemem.engine.run import MAX_COHORT_LOSSES, GridCohorts, Handouts
from activemem.engine.trial import MAX_WORKER_DEATHS, Attempt, Job
from activemem.storage import Store

UNAVAILABLE = ActorUnavailableError("RpcError: Socket closed", b"\0" * 16)


def died(reason):
    """Return the error that Ray raises for a dead actor."""
    error = ActorDiedError()
    error.error_msg += f"\n{reason}"
    return error


class Run:
    """A run with one trial of a study."""

    def __init__(self, folder, tiny):
        self.store, self.stop = Store(folder / "results"), Stop()
        self.job = Job(trial=load_study(tiny).trials[0], attempt=0, run="run")
        self.handouts = Handouts(GridCohorts([self.job]), self.store, self.stop, NOBODY)

    def lose_worker(self, error):
        """Hand out the trial, start it as a worker does, and lose the worker; return the first event."""
        cohort = self.handouts.next(1)
        event = Attempt(self.job, self.store, torch.device("cpu")).advance()
        self.handouts.lose(cohort, error)
        return event


@pytest.fixture
def run(tmp_path, tiny):
    return Run(tmp_path, tiny)


def test_the_trials_of_a_lost_worker_are_handed_out_again(run):
    cohort = run.handouts.next(1)
    assert run.handouts.next(1) is None
    run.handouts.lose(cohort, UNAVAILABLE)
    assert run.handouts.next(1).jobs == cohort.jobs
    run.handouts.end(cohort, completed=True)
    assert (run.handouts.next(1), run.handouts.errors) == (None, [])


def test_trials_that_always_lose_their_worker_are_given_up_with_the_last_reason(run):
    for number in range(MAX_COHORT_LOSSES + 1):
        assert run.handouts.errors == []
        run.handouts.lose(run.handouts.next(1), died(f"loss {number}"))
    assert run.handouts.next(1) is None
    assert run.handouts.errors == [f"loss {MAX_COHORT_LOSSES}"]


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (UNAVAILABLE, None),
        (died("The actor died because its node has died. Node Id: 1"), None),
        (died("The actor is dead because its worker process has died."), "failed"),
    ],
    ids=["unavailable", "dead node", "dead worker"],
)
def test_only_a_worker_that_dies_alone_counts_against_its_trial(run, error, status):
    for _ in range(MAX_WORKER_DEATHS):
        assert isinstance(run.lose_worker(error), Started)
    assert getattr(run.lose_worker(error), "status", None) == status
