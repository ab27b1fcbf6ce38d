"""A trial that has lost its worker continues with another one, a limited number of times."""

import pickle
from types import SimpleNamespace

import pytest
import torch
from ray.exceptions import ActorDiedError, ActorUnavailableError

from activemem import load_study
from activemem.engine.core.events import NOBODY
from activemem.engine.core.process import Stop
from activemem.engine.run.ray_cluster import MAX_WORKER_LOSSES, EventCallback, TrialSearcher
from activemem.engine.run.trial_source import GridTrials
from activemem.engine.trial.failures import MAX_WORKER_DEATHS
from activemem.engine.trial.outcome import Job
from activemem.engine.trial.resumable_attempt import Attempt
from activemem.storage import Store

UNAVAILABLE = ActorUnavailableError("RpcError: Socket closed", b"\0" * 16)
FINISHED = TrialSearcher.FINISHED


def died(reason):
    """Return the error that Ray raises for a dead actor."""
    error = ActorDiedError()
    error.error_msg += f"\n{reason}"
    return error


class Run:
    """The searcher and the callbacks of a run, with one trial of a study."""

    def __init__(self, folder, tiny):
        self.store, self.path = Store(folder / "results"), folder / "error.pkl"
        self.job = Job(trial=load_study(tiny).trials[0], attempt=0, run="run")
        self.searcher = TrialSearcher(GridTrials([self.job]), Stop(), NOBODY)
        self.callback = EventCallback(self.searcher, self.store)

    def lose_worker(self, name, error):
        """Tell the run, as Tune does, that the worker of a trial was lost."""
        self.path.write_bytes(pickle.dumps(error))
        self.searcher.on_trial_complete(name, error=True)
        trial = SimpleNamespace(trial_id=name, pickled_error_file=str(self.path))
        self.callback.on_trial_error(0, [trial], trial)

    def start(self):
        """Start the trial as a new worker does, and return the first event."""
        return Attempt(self.job, self.store, torch.device("cpu")).advance()


@pytest.fixture
def run(tmp_path, tiny):
    return Run(tmp_path, tiny)


def test_the_trial_of_a_lost_worker_is_suggested_again_and_the_run_does_not_end_before(run):
    given = run.searcher.suggest("first")
    assert run.searcher.suggest("none") is None
    run.lose_worker("first", UNAVAILABLE)
    assert run.searcher.suggest("second") == given
    run.searcher.on_trial_complete("second", {"events": []})
    assert (run.searcher.suggest("none"), run.searcher.errors) == (FINISHED, [])


def test_a_lost_node_is_one_line_and_a_dead_worker_none(run, caplog):
    run.searcher.suggest("first")
    run.lose_worker("first", UNAVAILABLE)
    run.searcher.suggest("second")
    run.lose_worker("second", died("the process was killed"))
    assert caplog.messages == [f"a node is lost; another worker continues trial {run.job.trial.id}"]


def test_a_trial_that_always_loses_its_worker_is_given_up_with_the_last_reason(run):
    for number in range(MAX_WORKER_LOSSES + 1):
        assert isinstance(run.searcher.suggest(f"try {number}"), dict)
        assert run.searcher.errors == []
        run.lose_worker(f"try {number}", died(f"loss {number}"))
    assert run.searcher.suggest("none") == FINISHED
    assert run.searcher.errors == [f"loss {MAX_WORKER_LOSSES}"]


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (UNAVAILABLE, "running"),
        (died("The actor died because its node has died. Node Id: 1"), "running"),
        (died("The actor is dead because its worker process has died."), "failed"),
    ],
    ids=["unavailable", "dead node", "dead worker"],
)
def test_only_a_worker_that_dies_alone_counts_against_its_trial(run, error, status):
    for number in range(MAX_WORKER_DEATHS):
        run.searcher.suggest(f"try {number}")
        assert run.start().kind == "started"
        run.lose_worker(f"try {number}", error)
    assert run.start().run.status == status
