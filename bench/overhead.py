"""What the engine adds to a trial that does nothing, beside a bare Ray Tune run of such trials, in one run.

python bench/overhead.py [TRIALS]
"""

from __future__ import annotations

import logging
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import ray
import torch
from ray import tune

from activemem.engine.core.events import Event, Listener
from activemem.engine.core.resources import Machine
from activemem.engine.run.cohort_sources import GridCohorts
from activemem.engine.run.cohorts import Worker, sequentially
from activemem.engine.run.interrupts import Stop
from activemem.engine.run.ray_cluster import RAY_ENVIRONMENT, run_cohorts
from activemem.engine.trial.outcome import Job
from activemem.storage import Store
from activemem.studies.resolve.trial import Trial
from activemem.studies.schema.settings import TrialSettings

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


class NoOpTraining:
    """A training that is over before it begins."""

    parameters = epoch = step = 0
    seconds = flops = 0.0
    finished = True

    def __init__(self, settings: TrialSettings, device: torch.device, data: Path) -> None:
        del settings, device, data

    def advance(self) -> dict[str, float]:
        """Nothing."""
        return {}

    def summary(self, last: dict[str, float]) -> dict[str, float]:
        """Nothing."""
        return last

    def state(self) -> dict[str, Any]:
        """Nothing."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Nothing."""

    def weights(self) -> dict[str, Any]:
        """Nothing."""
        return {}


class EventClock(Listener):
    """Notes when each event arrives."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def on_event(self, event: Event) -> None:
        """Note the time."""
        del event
        self.times.append(time.perf_counter())


def make_jobs(count: int) -> list[Job]:
    """That many different trials."""
    trials = (
        Trial(
            study="noop",
            levels={"seed": seed},
            settings=TrialSettings.model_validate(SETTINGS | {"seed": seed}),
        )
        for seed in range(count)
    )
    return [Job(trial=trial, attempt=0, run="bench") for trial in trials]


def in_process(count: int, folder: Path) -> float:
    """Milliseconds a trial of one worker, without Ray."""
    worker = Worker(Store(folder), Machine(), make_training=NoOpTraining)
    started = time.perf_counter()
    for _ in sequentially(worker.attempts(make_jobs(count))):
        pass
    return 1e3 * (time.perf_counter() - started) / count


def fsyncs(count: int, folder: Path) -> float:
    """Milliseconds of the disk for what durability asks: two small files, each synced with its directory."""
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


def on_ray(count: int, folder: Path) -> float:
    """Milliseconds a trial over a whole study, all workers together, from its first to its last event."""
    clock = EventClock()
    run_cohorts(
        GridCohorts(make_jobs(count)), Store(folder), Machine(), clock, Stop(), make_training=NoOpTraining
    )
    return 1e3 * (clock.times[-1] - clock.times[0]) / count


class NoOpTrainable(tune.Trainable):
    """A Tune trial that does nothing."""

    def setup(self, config: dict[str, Any]) -> None:
        """Nothing."""

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        """Nothing."""
        return True

    def step(self) -> dict[str, Any]:
        """Nothing."""
        return {"done": True}

    def save_checkpoint(self, checkpoint_dir: str) -> None:
        """Nothing."""


def bare_tune(count: int, folder: Path) -> float:
    """Milliseconds a trial of Tune alone with reused actors and without loggers, after the first result."""
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
        alone = in_process(count, folder / "alone")
        ray = on_ray(count, folder / "ray")
        bare = bare_tune(max(count // 8, 20), folder / "bare")
    print(f"a no-op trial, {count} of them, on {os.cpu_count()} cores")
    print(f"  inside a cohort            {alone:7.2f} ms   of which the disk's syncs {disk:.2f} ms")
    print(f"  on Ray, all told           {ray:7.2f} ms   workers start included")
    print(f"  bare Ray Tune, reused      {bare:7.2f} ms   {bare / alone:.0f} × a trial inside a cohort")


if __name__ == "__main__":
    main()
