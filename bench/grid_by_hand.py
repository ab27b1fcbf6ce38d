"""A grid of twelve trials beside the same trainings by hand, in one process and on Ray.

In one process: CPU milliseconds of a trial beside a plain loop that writes a row for each training. On Ray:
wall-clock milliseconds beside Ray Tune with a function of the same loop, the start of Ray included in both.

python bench/grid_by_hand.py
"""

from __future__ import annotations

import csv
import logging
import os
import tempfile
import time
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from statistics import median

import optuna_by_hand as by_hand
import ray
import torch
from ray import tune

from activemem import load_study, run_study
from activemem.engine.core.process import prepare_cpu
from activemem.engine.run.ray_connection import RAY_ENVIRONMENT

KERNELS, SEEDS, RATE, TURNS = (4, 8, 12, 16), (0, 1, 2), 2e-3, 3
TRIALS = len(KERNELS) * len(SEEDS)

STUDY = f"""\
{by_hand.SETTINGS.replace("RATE", str(RATE))}
[factors]
k = {list(KERNELS)}
seed = {list(SEEDS)}
"""


def engine_grid(folder: Path, *, local: bool) -> None:
    """Run the study, in this process or on Ray with a worker for each core."""
    summary = run_study(load_study(STUDY), folder, local=local)
    assert summary.done == TRIALS, summary


def plain_grid(folder: Path) -> None:
    """Train the same models one by one, and write a row behind each."""
    folder.mkdir()
    for k, seed in product(KERNELS, SEEDS):
        accuracy = by_hand.train(k, RATE, seed)
        with (folder / "results.csv").open("a", newline="") as file:
            csv.writer(file).writerow([k, seed, accuracy])
            file.flush()
            os.fsync(file.fileno())


def train_on_ray(config: dict[str, int]) -> None:
    """Train a model on a Ray worker, and report its accuracy."""
    torch.set_num_threads(1)
    tune.report({"accuracy": by_hand.train(config["k"], RATE, config["seed"])})


def tune_grid(folder: Path) -> None:
    """Run the same grid with Ray Tune."""
    ray.init(address="local", include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    space = {"k": tune.grid_search(list(KERNELS)), "seed": tune.grid_search(list(SEEDS))}
    run = tune.RunConfig(storage_path=str(folder), verbose=0)
    reused = tune.TuneConfig(reuse_actors=True)
    results = tune.Tuner(train_on_ray, param_space=space, tune_config=reused, run_config=run).fit()
    assert len(results) == TRIALS, results
    assert not results.errors, results
    ray.shutdown()


Grid = Callable[[Path], None]
"""A function that trains the grid, and keeps its results in a folder."""


def medians(ours: Grid, theirs: Grid, clock: Callable[[], float]) -> tuple[float, float]:
    """Return the milliseconds of a trial of both grids, which run in turns."""
    times = dict[Grid, list[float]]()
    with tempfile.TemporaryDirectory() as name:
        for turn, grid in product(range(TURNS), (ours, theirs)):
            started = clock()
            grid(Path(name) / f"{turn}-{grid is ours}")
            times.setdefault(grid, []).append(1e3 * (clock() - started) / TRIALS)
    return median(times[ours]), median(times[theirs])


def measure_in_process() -> tuple[float, float]:
    """Return the CPU milliseconds of a trial of our grid, and of one by hand; medians of turns."""
    return medians(partial(engine_grid, local=True), plain_grid, time.process_time)


def measure_on_ray() -> tuple[float, float]:
    """Return the milliseconds of a trial of our grid on Ray, and of Ray Tune's; medians of turns."""
    os.environ.update(RAY_ENVIRONMENT)
    logging.getLogger("ray.tune").setLevel(logging.CRITICAL)
    return medians(partial(engine_grid, local=False), tune_grid, time.perf_counter)


def main() -> None:
    """Print the figures."""
    prepare_cpu(1)
    for what, (ours, theirs) in (("in one process", measure_in_process()), ("on Ray", measure_on_ray())):
        print(f"{what}: {ours:.0f} ms a trial, by hand {theirs:.0f} ms, ratio {ours / theirs:.2f}")


if __name__ == "__main__":
    main()
