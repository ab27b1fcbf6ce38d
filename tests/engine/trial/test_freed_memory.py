"""An ended trial's memory is freed without garbage collection; compiled code does not accumulate."""

import gc
import subprocess
import sys
import weakref
from contextlib import contextmanager

import pytest
import torch
import torch._dynamo  # the first optimiser of a process imports it, in frames that stay for a while
from torch._dynamo.testing import CompileCounter

from activemem.engine.trial.outcome import Job
from activemem.engine.trial.resumable_attempt import Attempt
from activemem.engine.trial.training import Training
from activemem.storage import Store
from activemem.storage.leases import Lease
from activemem.studies import Trial

CPU = torch.device("cpu")
OF_TORCH = torch._dynamo.config.patch(
    recompile_limit=8, accumulated_recompile_limit=256, fail_on_recompile_limit_hit=True
)
"""Torch's limits around a test; exceeding them raises."""


@contextmanager
def no_search_for_cycles():
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@pytest.fixture(name="watched")
def _watched(tmp_path, settings):
    """Return an attempt at a trial in this store, and weak references to its contents."""

    def watched(**given):
        held = []

        class Watched(Training):
            def __init__(self, *given, **parts):
                super().__init__(*given, **parts)
                held.extend(weakref.ref(each) for each in (self, self.model, self.optimizer))
                held.extend(map(weakref.ref, self.model.parameters()))

        trial = Trial(study="tiny", levels={"seed": 0}, settings=settings(epochs=2, **given))
        job = Job(trial=trial, attempt=0, run="run")
        return Attempt(job, Store(tmp_path), CPU, make_training=Watched.begin), held

    return watched


def are_freed(held):
    return len(held) > 5 and [each() for each in held if each() is not None] == []


@pytest.mark.parametrize("recipe", ["sa >> ff(16)", "lstm >> ff(16)", "conv(k=3) + cgru(k=3)"])
@pytest.mark.parametrize("schedule", ["constant", "plateau"])
def test_the_model_and_the_optimiser_of_an_ended_trial_are_freed_at_once(watched, recipe, schedule):
    attempt, held = watched(recipe=recipe, schedule={"name": schedule})
    with no_search_for_cycles():
        while not attempt.ended:
            attempt.advance()
        assert are_freed(held)


def test_those_of_a_trial_that_another_process_takes_over_are_freed_at_once(tmp_path, watched):
    attempt, held = watched(recipe="sa >> ff(16)")
    with no_search_for_cycles():
        assert attempt.advance().kind == "started"
        assert isinstance(Store(tmp_path).leases("other").claim(attempt.job.trial.id, 1), Lease)
        assert attempt.advance().kind == "elsewhere"
        assert are_freed(held)


TRIALS = """
import sys, tempfile
from pathlib import Path
import torch
from activemem.engine.core.resources import Machine
from activemem.engine.run.worker import Worker
from activemem.engine.trial.outcome import Job
from activemem.storage import Store
from activemem.studies.resolve.trial import Trial
from activemem.studies.schema.settings import TrialSettings

def job(seed):
    train = {"optimizer": {"name": "adam", "lr": 0.001}, "batch_size": 2, "epochs": 1, "steps_per_epoch": 2,
             "curriculum": {"start": 5}}
    model = {"recipe": "4 * (sa >> ff(2048))", "d_model": 512}
    given = {"model": model, "task": {"name": "not"}, "train": train, "seed": seed}
    settings = TrialSettings.model_validate(given)
    return Job(trial=Trial(study="s", levels={"seed": seed}, settings=settings), attempt=0, run="run")

with tempfile.TemporaryDirectory() as folder:
    store = Store(folder)
    worker = Worker(store, Machine(gpus=0.0))
    for seed in range(int(sys.argv[1])):
        list(worker.train(job(seed)))
    worker.flush()
    print(max(store.trials()["peak_mib"]))
"""


@pytest.mark.slow  # seventeen trainings of 12.6 million parameters
def test_a_worker_of_sixteen_trials_holds_little_more_than_one():
    def peak(count):
        words = [sys.executable, "-c", TRIALS, str(count)]
        return float(subprocess.run(words, capture_output=True, check=True, text=True).stdout)

    assert peak(16) < 1.2 * peak(1)


def count_programs(monkeypatch):
    """Let torch's compiler only count its programs, which is quick; return the counter."""
    compiled, counted = torch.compile, CompileCounter()

    def count(call, *, mode, dynamic=None):
        return compiled(call, dynamic=dynamic, backend=counted)

    monkeypatch.setattr(torch, "compile", count)
    return counted


@pytest.mark.heavy
@pytest.mark.filterwarnings("ignore:The .grad attribute:UserWarning")  # which dynamo looks at
@OF_TORCH
def test_the_ninth_model_of_a_process_is_compiled_like_the_first(settings, monkeypatch):
    counted = count_programs(monkeypatch)
    frames = []
    for seed in range(10):
        training = Training.begin(settings(seed=seed, compile=True, epochs=1, steps_per_epoch=1), CPU)
        training.advance()
        frames.append(counted.frame_count)
    added = [after - before for before, after in zip([0, *frames], frames, strict=False)]
    assert min(added) > 0
    assert len(set(added)) == 1


@pytest.mark.heavy
@pytest.mark.filterwarnings("ignore:The .grad attribute:UserWarning")  # which dynamo looks at
@OF_TORCH
def test_more_lengths_are_compiled_than_torch_makes_programs_of_by_itself(settings, monkeypatch):
    counted = count_programs(monkeypatch)
    train = {"curriculum": None, "lengths": [1, 12], "compile": True, "epochs": 1, "steps_per_epoch": 60}
    training, lengths = Training.begin(settings("lstm", **train), CPU), set()
    training.model.body.register_forward_pre_hook(lambda _, given: lengths.add(given[0].shape[1]))
    training.advance()
    assert len(lengths) == 12
    assert counted.frame_count >= 12
