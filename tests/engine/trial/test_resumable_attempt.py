"""An attempt: any course of a trial becomes one stored outcome, and work is never lost."""

import gc
import json
import os
import platform
import shutil

import optuna
import polars as pl
import pytest
import torch

from activemem.engine.trial import failures
from activemem.engine.trial.checkpoints import Checkpoint, dies_often
from activemem.engine.trial.failures import MAX_DEATHS, MAX_WORKER_DEATHS
from activemem.engine.trial.outcome import Job
from activemem.engine.trial.resumable_attempt import Attempt, store_pruned
from activemem.engine.trial.training import Training
from activemem.storage import Store
from activemem.storage.trial_files import STARTS_FILE
from activemem.studies import Trial
from activemem.studies.planning.trials_to_run import unfinished_trials
from activemem.studies.resolve.trial import ARITHMETIC

CPU = torch.device("cpu")


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "results")


@pytest.fixture
def task(settings):
    def make(number=0, run="run", gone=-1, **train):
        trial = Trial(study="tiny", levels={"mixer": "conv", "seed": 0}, settings=settings(**train))
        return Job(trial=trial, attempt=number, run=run, gone=gone)

    return make


def finish(attempt):
    events = []
    while not attempt.ended:
        events.append(attempt.advance())
    return events


def row(store, task):
    return store.trials().filter(trial=task.trial.id).to_dicts()[0]


def reached(store, task):
    """Return the displayed epoch, and the metrics."""
    far = store.files.checkpoint_note(task.trial.id)
    return None if far is None else (far.epoch, set(far.metrics))


def started_at(event):
    """Return the epoch after which a trial starts."""
    assert event.kind == "started"
    return event.run.epoch


def test_a_trial_starts_advances_by_epochs_and_ends(store, task):
    events = finish(Attempt(task(), store, CPU))
    assert [event.kind for event in events] == ["started", *["epoch"] * 4, "ended"]
    stored = row(store, task())
    assert (stored["status"], stored["reason"], stored["epochs"], stored["steps"]) == ("done", None, 4, 20)
    assert json.loads(stored["factors"]) == {"mixer": "conv", "seed": 0}
    assert json.loads(stored["settings"])["train"]["epochs"] == 4
    final = {each["name"]: each["value"] for each in stored["metrics"]}
    assert final == dict(events[-1].run.metrics)
    metrics = store.metrics([task().trial.id])
    assert metrics["epoch"].unique().sort().to_list() == [1, 2, 3, 4]
    assert set(metrics["name"]) == {"loss", "accuracy", "length", "max_length", "tokens_per_s"}
    assert stored["peak_mib"] > 1
    assert stored["flops"] > 0
    versions = (torch.__version__, "", platform.python_version())
    assert tuple(stored[name] for name in ("torch_version", "cuda_version", "python_version")) == versions
    assert (stored["optuna_version"], stored["arithmetic"]) == (optuna.__version__, ARITHMETIC)
    assert not store.files.checkpoint_dir(task().trial.id).exists()
    assert reached(store, task()) is None


def test_an_interrupted_trial_resumes_from_its_last_epoch(store, task, tmp_path):
    whole = Store(tmp_path / "whole")
    finish(Attempt(task(), whole, CPU))
    first = Attempt(task(), store, CPU)
    for _ in range(3):
        first.advance()  # start, two epochs; then it is forgotten, as by a kill
    assert reached(store, task()) == (2, {row["name"] for row in whole.metrics().to_dicts()})
    events = finish(Attempt(task(run="later", gone=0), store, CPU))
    assert started_at(events[0]) == 2
    columns = ["epoch", "name", "value"]
    ours, theirs = (each.metrics().select(columns).filter(name="loss") for each in (store, whole))
    assert ours.equals(theirs)


def is_saved(store, task):
    return (store.files.checkpoint_dir(task.trial.id) / "state.pt").is_file()


def test_short_epochs_that_a_kill_loses_are_trained_again_to_the_same_rows(store, task, tmp_path):
    whole = Store(tmp_path / "whole")
    finish(Attempt(task(), whole, CPU))
    first = Attempt(task(), store, CPU, save_after_s=3600.0)
    for _ in range(3):
        first.advance()  # start, two epochs; then it is forgotten, as by a kill
    assert not is_saved(store, task()) and reached(store, task()) is None
    second = Attempt(task(run="later", gone=0), store, CPU, save_after_s=3600.0)
    told = [second.advance() for _ in range(3)]
    assert [event.run.epoch for event in told] == [0, 1, 2]
    assert reached(store, task())[0] == 2  # a process has died of it
    events = finish(Attempt(task(run="last", gone=1), store, CPU, save_after_s=3600.0))
    assert started_at(events[0]) == 2
    columns = ["step", "epoch", "name", "value"]
    ours, theirs = (
        each.metrics().select(columns).filter(pl.col("name") != "tokens_per_s") for each in (store, whole)
    )
    assert ours.equals(theirs)


def test_a_trial_is_saved_after_so_much_training_and_where_it_is_given_back(store, task):
    attempt = Attempt(task(), store, CPU, save_after_s=30.0)
    attempt.advance()
    attempt.training.work.seconds += 30.0
    attempt.advance()
    assert reached(store, task())[0] == 1
    attempt.advance()
    assert reached(store, task())[0] == 1
    attempt.release()
    assert reached(store, task())[0] == 2


def test_a_trial_on_a_lost_gpu_is_returned_as_it_was_saved(store, task, monkeypatch):
    attempt = Attempt(task(), store, CPU, save_after_s=30.0)
    for _ in range(3):
        attempt.advance()
    monkeypatch.setattr(failures, "_lost", ["this process cannot use its GPU"])
    monkeypatch.setattr(Training, "state", lambda _: pytest.fail("its tensors cannot be read"))
    attempt.release()
    assert attempt.ended
    monkeypatch.undo()
    assert started_at(finish(Attempt(task(), store, CPU))[0]) == 0


def test_epochs_that_pass_a_time_limit_are_saved_though_they_are_short(store, task, golden):
    attempt = Attempt(task(), store, CPU, time_limit_s=1e-9, save_after_s=3600.0)
    golden(finish(attempt)[-1].run.reason)
    assert started_at(finish(Attempt(task(number=1), store, CPU))[0]) == 1


def test_a_loss_that_is_not_a_number_is_an_outcome(store, task, golden):
    wrong = task(optimizer={"name": "sgd", "lr": 1e30})
    finish(Attempt(wrong, store, CPU))
    assert row(store, wrong)["status"] == "failed"
    golden(row(store, wrong)["reason"])


def test_running_out_of_memory_is_an_outcome(store, task, golden):
    gc.freeze()  # each try collects garbage, and need not look through what earlier tests have left
    huge = task(batch_size=10**12)  # 40 TB of tokens
    finish(Attempt(huge, store, CPU))
    golden(row(store, huge)["reason"].splitlines()[0])


def test_a_model_that_is_too_large_is_an_outcome(store, task):
    large = task(recipe="10000 * ff(1048576)")
    finish(Attempt(large, store, CPU))
    assert row(store, large)["reason"].startswith("BuildError at epoch 1: the weights")
    assert row(store, large)["parameters"] == 0


def test_an_exception_is_an_outcome_with_its_traceback(store, task, golden):
    even = task(task="addition", curriculum={"start": 6})
    finish(Attempt(even, store, CPU))
    reason = row(store, even)["reason"].splitlines()
    golden(reason[0])
    assert reason[1] == "Traceback (most recent call last):"


def test_a_time_limit_is_an_outcome_and_a_longer_limit_continues_the_trial(store, task, golden):
    events = finish(Attempt(task(), store, CPU, time_limit_s=1e-9))
    golden(events[-1].run.reason)
    again = finish(Attempt(task(number=1), store, CPU, time_limit_s=60))
    assert started_at(again[0]) == 1
    assert store.latest_attempts() == {task().trial.id: ("done", 1)}


def test_a_trial_that_kills_its_workers_is_abandoned(store, task):
    for _ in range(MAX_WORKER_DEATHS):
        Attempt(task(), store, CPU).advance()  # starts, and its worker dies before the first epoch is over
    events = finish(Attempt(task(), store, CPU))
    (event,) = events
    assert (event.kind, event.run.status) == ("ended", "failed")
    assert event.run.reason == f"the worker died {MAX_WORKER_DEATHS} times at epoch 1"


def test_a_trial_is_saved_within_its_epoch_and_deaths_at_another_place_are_others(store, task, monkeypatch):
    take_steps, whole = Training.take_steps, Store(store.root.parent / "whole")
    finish(Attempt(task(), whole, CPU))
    for steps in range(1, MAX_DEATHS + 2):

        def die(training, count, between_steps, steps=steps):
            def between():
                between_steps()
                if training.step == steps:
                    raise KeyboardInterrupt

            take_steps(training, count, between)

        monkeypatch.setattr(Training, "take_steps", die)
        attempt = Attempt(task(run="same", gone=0), store, CPU, checkpoint_every_s=1e-9)
        assert attempt.advance().run.epoch == max(steps - 2, 0) // 5  # the last step of an epoch is amid it
        with pytest.raises(KeyboardInterrupt):
            for _ in range(2):
                attempt.advance()
        attempt.release()
    monkeypatch.setattr(Training, "take_steps", take_steps)
    assert finish(Attempt(task(run="same", gone=0), store, CPU))[-1].run.status == "done"
    columns = ["step", "epoch", "name", "value"]
    ours, theirs = (
        each.metrics().select(columns).filter(pl.col("name") != "tokens_per_s") for each in (store, whole)
    )
    assert ours.equals(theirs)


def test_runs_that_are_killed_do_not_count_as_deaths_of_a_worker(store, task):
    for number in range(MAX_WORKER_DEATHS + 1):
        Attempt(task(run=f"run {number}", gone=number), store, CPU).advance()
    assert finish(Attempt(task(run="last", gone=MAX_WORKER_DEATHS + 1), store, CPU))[-1].run.status == "done"


def test_a_trial_that_kills_whoever_runs_it_is_abandoned_in_the_end(store, task):
    for number in range(MAX_DEATHS):
        Attempt(task(run=f"run {number}", gone=number), store, CPU).advance()
    (ended,) = finish(Attempt(task(run="last", gone=MAX_DEATHS + 1), store, CPU))
    assert ended.run.reason == f"the worker died {MAX_DEATHS} times at epoch 1"


def test_runs_that_are_stopped_in_order_are_no_deaths(store, task):
    for number in range(MAX_DEATHS + 1):
        Attempt(task(run=f"run {number}", gone=number), store, CPU).advance()
        Checkpoint(store, task().trial.id).record_stop()
    assert finish(Attempt(task(run="last", gone=MAX_DEATHS + 1), store, CPU))[-1].run.status == "done"


def test_a_pruned_trial_keeps_what_it_reached(store, task):
    attempt = Attempt(task(), store, CPU)
    for _ in range(3):
        attempt.advance()
    assert store_pruned(task(), store, "pruned by asha").run.status == "pruned"
    stored = row(store, task())
    assert (stored["status"], stored["reason"], stored["epochs"]) == ("pruned", "pruned by asha", 2)
    assert not store.files.checkpoint_dir(task().trial.id).exists()


def test_a_checkpoint_that_is_cleared_away_is_written_again(store, task):
    attempt = Attempt(task(), store, CPU)
    attempt.advance()
    attempt.advance()
    shutil.rmtree(store.files.checkpoint_dir(task().trial.id))
    assert finish(attempt)[-1].kind == "ended"
    assert row(store, task())["status"] == "done"


def test_unfinished_trials_are_found_by_their_checkpoints(store, task):
    attempt = Attempt(task(), store, CPU)
    attempt.advance()
    folder = store.files.checkpoint_dir(task().trial.id)
    assert [trial.id for trial in unfinished_trials(folder.parent)] == [task().trial.id]
    (folder / STARTS_FILE).write_text("", encoding="utf-8")  # killed before the first line was written
    assert unfinished_trials(folder.parent) == []
    (folder / STARTS_FILE).unlink(missing_ok=True)
    os.mkfifo(folder / STARTS_FILE)  # which nobody waits for
    assert unfinished_trials(folder.parent) == []
    assert not dies_often(folder)
    assert Checkpoint(store, folder.name).load() is None
