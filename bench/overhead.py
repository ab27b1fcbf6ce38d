"""The engine's overhead per trial, measured with empty trials: leases, durable rows, Ray.

python bench/overhead.py [TRIALS]
"""

from __future__ import annotations

import logging
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import ray
import torch
from ray import tune

from activemem.engine.core.events import Event
from activemem.engine.core.process import Stop
from activemem.engine.core.resources import Machine
from activemem.engine.core.run import Run
from activemem.engine.run.ray_cluster import train_on_ray
from activemem.engine.run.ray_connection import RAY_ENVIRONMENT
from activemem.engine.run.trial_source import GridTrials
from activemem.engine.run.worker import Worker
from activemem.engine.trial.outcome import Job, trial_row
from activemem.engine.trial.training import BetweenSteps, Work
from activemem.storage import Store
from activemem.storage.leases import BEATS_PER_LEASE, LEASE_S, Lease
from activemem.studies.resolve.trial import Trial
from activemem.studies.schema.settings import TrialSettings

TURN = 20
"""The number of trials per turn of each variant."""

SETTINGS = {
    "model": {"recipe": "sa", "d_model": 8},
    "task": {"name": "not"},
    "train": {
        "optimizer": {"name": "adam", "lr": 1e-3},
        "batch_size": 1,
        "epochs": 1,
        "steps_per_epoch": 1,
        "curriculum": {"start": 5},
    },
}


class NoObjective:
    """The objective of a task without vocabulary and without outputs."""

    def symbols(self) -> None:
        """Return None: this task has no vocabulary."""

    def outputs(self) -> None:
        """Return no outputs."""


class NoOpTraining:
    """A training that ends immediately."""

    parameters = epoch = step = 0
    devices = 1
    peak_elsewhere_mib = 0.0
    finished = can_be_saved = True
    lacks_last_evaluation = False

    def __init__(self, settings: TrialSettings, device: torch.device, data: Path) -> None:
        del settings, device, data
        self.work, self.objective = Work(), NoObjective()

    def advance(self, between_steps: BetweenSteps) -> dict[str, float]:
        """Return no metrics."""
        del between_steps
        return {}

    def summary(self, last: dict[str, float]) -> dict[str, float]:
        """Return no metrics."""
        return last

    def state(self) -> dict[str, Any]:
        """Return an empty state."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Ignore the state."""

    def weights(self) -> dict[str, Any]:
        """Return no weights."""
        return {}


class EventClock:
    """A listener that records when each event arrives."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.ends: list[float] = []

    def __call__(self, event: Event) -> None:
        """Record the time."""
        self.times.append(time.perf_counter())
        self.ends += self.times[-1:] if event.kind == "ended" else []


def make_jobs(count: int) -> list[Job]:
    """Return this many different trials."""
    trials = (
        Trial(
            study="noop",
            levels={"seed": seed},
            settings=TrialSettings.model_validate(SETTINGS | {"seed": seed}),
        )
        for seed in range(count)
    )
    return [Job(trial=trial, attempt=0, run="bench") for trial in trials]


class NoLease:
    """An empty lease, which is never lost."""

    attempt = 0

    def is_lost(self) -> bool:
        """Return False."""
        return False

    def end(self) -> None:
        """Do nothing."""


class NoClaims:
    """Claims that write no files and do not check for other workers."""

    def claim(self, job: Job) -> NoLease:
        """Return a lease that does nothing."""
        return NoLease()


class FreeWorker(Worker):
    """A worker that assumes sole use of the store and takes no leases."""

    def __init__(self, *given: Any, **more: Any) -> None:  # noqa: ANN401 -- as of a worker
        super().__init__(*given, **more)
        self._claims_of = lambda _run: NoClaims()  # type: ignore[assignment]


def _run(worker: Worker, jobs: Sequence[Job], events: list[Event]) -> None:
    for job in jobs:
        events.extend(worker.train(job))
    events.extend(worker.flush())


def in_process(folder: Path, count: int) -> tuple[float, float, float]:
    """Return the median milliseconds per trial: of a worker, without leases, and for only writing rows.

    The three measurements alternate every few trials, so that a slow disk affects all of them alike.
    """
    store = Store(folder / "bare")
    workers = [
        kind(Store(folder / kind.__name__), Machine(), make_training=NoOpTraining)
        for kind in (Worker, FreeWorker)
    ]
    times: tuple[list[float], ...] = ([], [], [])
    jobs = make_jobs(count)
    for turn in (jobs[start : start + TURN] for start in range(0, count, TURN)):
        for worker, taken in zip(workers, times, strict=False):
            events = list[Event]()
            run = partial(_run, worker, turn, events)
            taken.append(_milliseconds(run) / len(turn))
            ended = [each.run.status for each in events if each.kind == "ended"]
            assert ended == ["done"] * len(turn), "an empty trial has failed"
        now = datetime.now(UTC)
        rows = [trial_row(job.trial, Run(status="done"), started=now) for job in turn]
        times[2].append(_milliseconds(lambda rows=rows: [store.write(row, []) for row in rows]) / len(turn))
    leased, free, bare = map(median, times)
    return leased, free, bare


def leasing(folder: Path, count: int) -> tuple[float, float, float, float]:
    """Return the milliseconds to claim a trial, and to check, renew and release its lease."""
    leases = Store(folder).leases("bench")
    trials, held = [job.trial.id for job in make_jobs(count)], list[Lease]()

    def claim() -> None:
        held.extend(lease for trial in trials if isinstance(lease := leases.claim(trial, 0), Lease))

    return (
        _milliseconds(claim) / count,
        _milliseconds(lambda: [lease.is_lost() for lease in held]) / count,
        _milliseconds(leases.beat) / count,
        _milliseconds(lambda: [lease.end() for lease in held]) / count,
    )


def _milliseconds(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return 1e3 * (time.perf_counter() - started)


def fsyncs(count: int, folder: Path) -> float:
    """Return the milliseconds to write two small files and to sync each of them and its directory."""
    folder.mkdir()
    started = time.perf_counter()
    for number in range(2 * count):
        with (folder / str(number)).open("wb") as file:
            file.write(b"x" * 4096)
            os.fsync(file.fileno())
        directory = os.open(folder, os.O_RDONLY)
        os.fsync(directory)
        os.close(directory)
    return 1e3 * (time.perf_counter() - started) / count


def on_ray(count: int, folder: Path) -> tuple[float, float]:
    """Return the milliseconds per trial on Ray: with the start of workers, and after the first end."""
    clock = EventClock()
    train_on_ray(
        GridTrials(make_jobs(count)), Store(folder), Machine(), clock, Stop(), make_training=NoOpTraining
    )
    last = clock.ends[-1]
    return 1e3 * (last - clock.times[0]) / count, 1e3 * (last - clock.ends[0]) / (count - 1)


class NoOpTrainable(tune.Trainable):
    """A Tune trial that does nothing."""

    def setup(self, config: dict[str, Any]) -> None:
        """Do nothing."""

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        """Return True: the actor can be reused."""
        return True

    def step(self) -> dict[str, Any]:
        """Return no metrics."""
        return {"done": True}

    def save_checkpoint(self, checkpoint_dir: str) -> None:
        """Do nothing."""


def bare_tune(count: int, folder: Path) -> float:
    """Return the milliseconds per trial of plain Tune with reused actors, after the first result."""
    times: list[float] = []

    class Note(tune.Callback):
        def on_trial_result(
            self, iteration: int, trials: list, trial: object, result: dict, **info: object
        ) -> None:  # type: ignore[type-arg]
            times.append(time.perf_counter())

    ray.init(address="local", include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    tune.Tuner(
        NoOpTrainable,
        param_space={"number": tune.grid_search(list(range(count)))},
        tune_config=tune.TuneConfig(reuse_actors=True),
        run_config=tune.RunConfig(storage_path=str(folder), callbacks=[Note()], verbose=0),
    ).fit()
    return 1e3 * (times[-1] - times[0]) / (len(times) - 1)


def main() -> None:
    """Print the figures."""
    os.environ.update(RAY_ENVIRONMENT)
    logging.getLogger("ray.tune").setLevel(logging.CRITICAL)
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        disk = fsyncs(count, folder / "disk")
        alone, free, write = in_process(folder / "alone", count)
        claim, look, beat, end = leasing(folder / "leases", count)
        whole, ray = on_ray(count, folder / "ray")
        bare = bare_tune(max(count // 8, 20), folder / "bare")
    print(f"a no-op trial, {count} of them, on {os.cpu_count()} cores")
    print(f"  in one process             {alone:7.2f} ms   of which the disk's syncs {disk:.2f} ms")
    print(f"  without leases             {free:7.2f} ms   {alone / free:.2f} × as long with leases")
    print(f"  the bare write of its row  {write:7.2f} ms   {alone / write:.2f} × as long for the whole trial")
    print(
        f"  a lease: claimed in        {claim:7.3f} ms   checked in {look:.3f} ms, released in {end:.3f} ms"
    )
    every_s = LEASE_S / BEATS_PER_LEASE
    share = beat / every_s / 10
    print(f"  its heartbeat              {beat:7.3f} ms   every {every_s:.0f} s, {share:.5f} % of the time")
    print(f"  on Ray                     {ray:7.2f} ms   {whole:.2f} ms with the start of workers")
    print(f"  bare Ray Tune, reused      {bare:7.2f} ms   a trial on Ray takes {ray / bare:.1f} × as long")


if __name__ == "__main__":
    main()
