"""Many drivers on one store: each trial trains once, despite kills."""

import errno
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest
import torch

from activemem import StudyResults, load_study, run_study
from activemem.engine import Event, Machine, Run
from activemem.engine.run import driver
from activemem.engine.run.search.search import Search
from activemem.engine.run.worker import Worker
from activemem.engine.trial.checkpoints import Checkpoint
from activemem.engine.trial.failures import MAX_WORKER_DEATHS, MachineError
from activemem.engine.trial.outcome import Job
from activemem.engine.trial.resumable_attempt import Attempt, Claims, store_pruned
from activemem.storage import Store, files, leases
from activemem.studies.planning.trials_to_run import select_shard

from ...event_factories import make_event
from ...study_texts import study_text
from ...waiting import wait_for
from .four_drivers import STUDY, run_four_drivers

CPU = torch.device("cpu")


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "results")


def values(store):
    """Return the time-independent values."""
    rows = store.trials().select("trial", "status", "epochs", "steps", "flops").rows()
    metrics = store.metrics().filter(pl.col("name") != "tokens_per_s")
    return rows, metrics.drop("attempt").rows()


def table(study, store):
    """Return the study's table without the date of its latest trial."""
    day = str(store.trials()["finished"].max().date())
    return StudyResults(study, store).table().render("markdown").replace(day, "DAY")


@pytest.mark.heavy
@pytest.mark.parametrize(
    "shares",
    [pytest.param(False, id="all of it"), pytest.param(True, id="a share each", marks=pytest.mark.slow)],
)
def test_four_drivers_of_which_two_are_killed_train_each_trial_once(tmp_path, store, shares):
    run_four_drivers(tmp_path, STUDY, shares=shares)
    store.upkeep.compact()  # two drivers that end at the same moment leave two merged files
    stored = pl.read_parquet(tmp_path / "results/trials/**/*.parquet")  # as anybody reads it: no row twice
    assert sorted(stored["trial"]) == sorted(trial.id for trial in load_study(STUDY).trials)
    assert set(stored["status"]) == {"done"}
    assert not list((tmp_path / "results" / "checkpoints").iterdir())

    study, alone = load_study(STUDY), Store(tmp_path / "alone")
    run_study(study, alone, Machine(), local=True)
    assert values(store) == values(alone)
    assert table(study, store) == table(study, alone)


def claim_first(study, store, run="other"):
    """Claim the first trial as another driver, and train its first epoch."""
    attempt = Attempt(Job(trial=study.trials[0], attempt=0, run=run), store, CPU)
    attempt.advance()
    attempt.advance()
    return attempt


def test_an_outcome_whose_last_flush_failed_is_no_other_drivers_to_train(tiny, store, monkeypatch):
    first, second, *_ = load_study(tiny).trials
    claims, others = Claims(store, "one"), Claims(store, "other")
    others.claim(Job(trial=second, attempt=0, run="other"))  # which has read the store before
    attempt = Attempt(Job(trial=first, attempt=0, run="one"), store, CPU, claims=claims)
    while attempt.training is None or not attempt.training.finished:
        attempt.advance()
    real = files.sync

    def fail(path):
        if path.parent.name == "trials":
            raise OSError(errno.EIO, "Input/output error")
        real(path)

    monkeypatch.setattr(files, "sync", fail)
    failed = attempt.advance()
    assert failed.kind == "machine_failed"
    assert failed.reason.startswith(f"Input/output error: {store.root / 'trials' / 'tiny'}")
    attempt.release()
    taken = others.claim(Job(trial=first, attempt=0, run="other", gone=0))  # its owner has ended
    assert taken.status == "done"
    assert store.latest_attempts() == {first.id: ("done", 0)}


def test_a_trial_of_another_driver_is_left_to_it_awaited_and_reported(tiny, store, notes, monkeypatch):
    study, waits = load_study(tiny), []
    other = claim_first(study, store)

    def sleep(_):
        """End the other driver while this one waits."""
        while not other.ended:
            other.advance()

    notes.hear = lambda event: waits.append(event.runs) if event.kind == "waiting" else None
    monkeypatch.setattr(driver, "time", SimpleNamespace(sleep=sleep))
    summary = run_study(study, store, Machine(), notes, local=True)
    assert (summary.done, summary.ran, summary.left) == (8, 7, 0)
    (event,) = notes.of("elsewhere")
    run = event.run
    assert (run.trial, run.pid, run.status) == (study.trials[0].id, os.getpid(), "elsewhere")
    assert waits == [(run,)]
    assert set(pl.read_parquet(store.root / "trials")["attempt"]) == {0}


def test_a_trial_that_another_driver_returns_is_resumed(tiny, store, notes, monkeypatch):
    study = load_study(tiny)
    other = claim_first(study, store)
    monkeypatch.setattr(driver, "time", SimpleNamespace(sleep=lambda _: other.release()))
    summary = run_study(study, store, Machine(), notes, local=True)
    assert (summary.done, summary.ran) == (8, 8)
    epochs = [event.run.epoch for event in notes.of("epoch") if event.run.trial == study.trials[0].id]
    assert epochs == [2, 3, 4]


def test_a_limit_counts_what_is_trained_here(tiny, store, notes):
    study = load_study(tiny)
    other = claim_first(study, store)
    assert run_study(study, store, Machine(), notes, local=True, max_trials=3).ran == 3
    assert not other.ended


def test_a_driver_that_planned_before_another_had_ended_repeats_nothing(tiny, store, notes):
    study = load_study(tiny)

    def end_it_elsewhere(event):
        if event.kind == "ended" and len(notes.of("ended")) == 1:
            run_study(study, store, Machine(), local=True, max_trials=3)

    notes.hear = end_it_elsewhere
    summary = run_study(study, store, Machine(), notes, local=True)
    assert (summary.done, summary.ran, len(notes.of("ended"))) == (8, 5, 5)
    assert [event.run.status for event in notes.of("elsewhere")] == ["done"] * 3
    assert set(store.last_numbers().values()) == {0}


POINT = study_text(
    study={"name": "pair", "title": "A point of two seeds"},
    model={"recipe": "conv(k={k}) >> ff(8)"},
    task={"name": "addition"},
    train={"batch_size": 4, "epochs": 2, "steps_per_epoch": 1},
    factors={"seed": [0, 1]},
    search={"sampler": "random", "trials": 1, "metric": "loss", "scheduler": "median"},
    space={"k": "integer(2, 9)"},
)


@pytest.mark.parametrize("seed", [0, 1])
def test_a_point_of_a_search_that_another_driver_has_is_left_again_and_again_and_has_not_died(
    store, notes, seed
):
    study = load_study(POINT)
    first = Search(study, store, "first", notes)
    trials = [first.next_job().trial for _ in range(2)]
    for trial in trials:
        Checkpoint(store, trial.id).record_start(trial.to_json(), "first", "0")
    other = Attempt(Job(trial=trials[seed], attempt=0, run="other"), store, CPU)
    other.advance()
    for number in range(2 * MAX_WORKER_DEATHS):
        source, worker, left = Search(study, store, f"mine {number}", notes), Worker(store, Machine()), set()
        while (job := source.next_job()) is not None:
            events = [*worker.train(job), *worker.flush()]
            paused = [event.run.epoch for event in events if event.kind == "paused"]
            events += source.job_ended(job, paused_at=paused[0] if paused else None)
            left |= {event.run.trial for event in events if event.kind == "elsewhere"}
        assert left >= {trials[seed].id}
        assert not store.latest_attempts()
    other.release()
    assert run_study(study, store, Machine(), notes, local=True).done == 2


def test_a_trial_that_cannot_begin_on_a_full_disk_is_the_machines_failure(tiny, store, monkeypatch):
    def claim(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Claims, "claim", claim)
    job = Job(trial=load_study(tiny).trials[0], attempt=0, run="mine")
    assert list(Worker(store, Machine()).train(job)) == [
        Event(kind="machine_failed", reason="No space left on device")
    ]
    with pytest.raises(MachineError, match="No space left on device"):
        store_pruned(job, store, "given up")


@pytest.mark.parametrize(("run", "gone"), [("later", 0), ("other", -1)], ids=["another run", "its own run"])
def test_a_late_writer_whose_trial_was_taken_over_stores_nothing(tiny, store, caplog, run, gone, golden):
    study = load_study(tiny)
    late = claim_first(study, store)
    later = Attempt(Job(trial=study.trials[0], attempt=0, run=run, gone=gone), store, CPU)
    while not later.ended:
        later.advance()
    event = late.advance()
    assert (event, late.ended) == (
        make_event("elsewhere", trial=study.trials[0].id, attempt=1, status="elsewhere"),
        True,
    )
    golden(caplog.messages)
    assert pl.read_parquet(store.root / "trials")["attempt"].to_list() == [1]
    assert not store.files.checkpoint_dir(study.trials[0].id).exists()


def test_a_driver_that_planned_before_another_ended_and_removed_its_leases_trains_nothing_again(tiny, store):
    study = load_study(tiny)
    first, second = (Job(trial=trial, attempt=0, run="early") for trial in study.trials[:2])
    claims = Claims(store, "early")
    lease = claims.claim(second)  # by when it has read the store
    run_study(study, store, Machine(), local=True, trial_ids={first.trial.id})
    store.upkeep.compact()
    assert {path.name for path in (store.root / "leases").iterdir()} == {f"{second.trial.id}-0", "sweeps"}
    assert claims.claim(first) == Run(trial=first.trial.id, attempt=0, status="done")
    lease.release()


class LostCheckpoint(Checkpoint):
    """A checkpoint whose trial is taken over and ended by another process during a save."""

    def __init__(self, job, store):
        super().__init__(store, job.trial.id)
        self.job, self.store = job, store

    def save(self, saved):
        later = Attempt(replace(self.job, run="later", gone=0), self.store, CPU)
        while not later.ended:
            later.advance()
        raise FileNotFoundError(errno.ENOENT, "No such file or directory", str(self.folder))


def test_a_failure_of_a_trial_that_was_taken_over_is_not_a_machine_failure(tiny, store):
    job = Job(trial=load_study(tiny).trials[0], attempt=0, run="late")
    checkpoint = LostCheckpoint(job, store)
    late = Attempt(job, store, CPU, checkpoint=checkpoint)
    events = []
    while not late.ended:
        events.append(late.advance())
    assert events[-1] == make_event("elsewhere", trial=job.trial.id, attempt=1, status="elsewhere")
    assert not any(event.kind in ("machine_failed", "ended") for event in events)
    assert store.trials()["attempt"].to_list() == [1]


SEARCH = """
[study]
name = "shared"
title = "Points of two seeds"

[model]
recipe = "{mixer} >> ff(32)"
d_model = 32

[task]
name = "reverse"

[train]
batch_size = 16
epochs = 6
steps_per_epoch = 8
curriculum = { start = 5 }
optimizer = { name = "adam", lr = 0.01 }

[factors]
mixer = ["conv(k=5)", "conv(k=3)"]
seed = [0, 1]

[search]
metric = "loss"
trials = 2
"""


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("text", "shares"),
    [
        pytest.param(STUDY, False, id="grid"),
        pytest.param(STUDY, True, id="shards", marks=pytest.mark.slow),
        pytest.param(SEARCH, False, id="search"),
    ],
)
def test_a_driver_that_is_suspended_for_longer_than_its_lease_drops_what_it_lost_and_continues(
    tmp_path, text, shares
):
    (tmp_path / "shared.toml").write_text(text, encoding="utf-8")
    command = [sys.executable, str(Path(__file__).with_name("forked_drivers.py"))]
    environment = {**os.environ, "LEASE_S": "1.5"}
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as drivers:

        def start(line):
            drivers.stdin.write(f"{line}\n")
            drivers.stdin.flush()
            return int(drivers.stdout.readline())

        def lines(name):
            log = tmp_path / f"{name}.log"
            text = log.read_text() if log.is_file() else ""
            assert "Traceback" not in text, text
            return [line.split() for line in text.splitlines()]

        share = " 1/2" if shares else ""
        suspended = start(f"suspended{share}")
        wait_for(lambda: any(line[0] == "epoch" for line in lines("suspended")))
        os.kill(suspended, signal.SIGSTOP)
        try:
            start(f"other{share}")
            wait_for(lambda: _has_ended(tmp_path, text, shares))
        finally:
            os.kill(suspended, signal.SIGCONT)
        well, _ = drivers.communicate(timeout=600)
    assert set(well.split()) == {"suspended", "other"}, [*lines("suspended"), *lines("other")]
    rows = pl.read_parquet(tmp_path / "results/trials/**/*.parquet")
    assert set(rows["status"]) == {"done"}
    assert rows["trial"].n_unique() == len(rows)


def _has_ended(folder, text, shares):
    """Return whether all trials of a driver are stored."""
    study = load_study(text)
    wanted = len(select_shard(study, "1/2")) if shares else 4 if study.search else len(study.trials)
    return len(Store(folder / "results").trials()) == wanted


def test_a_trial_that_ends_while_a_run_is_planned_is_not_trained_again(tiny, store, notes, monkeypatch):
    study = load_study(tiny)
    other = claim_first(study, store)

    def end_before(settings):
        """End the other driver after this one has listed the missing trials."""
        while not other.ended:
            other.advance()

    monkeypatch.setattr(driver, "check_plugin_modules", end_before)
    summary = run_study(study, store, Machine(), notes, local=True)
    assert (summary.done, summary.ran) == (8, 7)


def test_a_lease_that_seems_to_have_ended_without_a_row_holds_nothing_up_for_ever(
    tiny, store, notes, monkeypatch
):
    monkeypatch.setattr(leases, "LEASE_S", 0.5)
    study = load_study(tiny)
    path = store.root / "leases" / f"{study.trials[0].id}-0"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"what once was an owner\ne")
    summary = run_study(study, store, Machine(), notes, local=True)
    assert (summary.done, summary.ran) == (8, 8)
