"""Regret of each sampler after each number of points, replayed from tables of trained points.

Run: python bench/search.py SPACE [SEEDS [WAY …]]

There are three spaces, whose tables `search_table.py` makes. `search_table` has 2,346 architectures of up to
three layers for sorting, `search_small` has 272 of up to two layers for addition. `search_numbers` varies
kernel, dropout and learning rate of one convolution; losses between grid points are interpolated.

A replay works like a search: it rejects known points, draws an unknown one after several rejections in a row,
and trains four points at once. Regret is the distance of the best point so far from the best of all, relative
to the distance of the median. The program prints means over seeds with normal 95 % intervals; `drawn` counts
the points that were drawn after rejections.
"""

from __future__ import annotations

import json
import math
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any

import numpy as np
import optuna
import polars as pl
from optuna.trial import TrialState

from activemem.engine.run.search.optuna_study import OptunaStudy
from activemem.engine.run.search.samplers.search_observations import Values
from activemem.engine.run.search.stored_points import PointEnd, SearchPoint
from activemem.studies.study import load_study

FOLDER = Path(__file__).parent
METRIC = "dev_loss"
TRIALS = 60
SHOWN = (10, 20, 40, 60)
PARALLEL = 4
WAYS: dict[str, dict[str, object]] = {
    "random": {"name": "random"},
    "tpe": {"name": "tpe"},
    "tpe, 4 drawn first": {"name": "tpe", "n_startup_trials": 4},
    "evolution": {"name": "evolution"},
    "gp_trees": {"name": "gp_trees"},
    "gp": {"name": "gp"},
}
NUMBERS_ALONE = ("gp",)
"""The samplers that do not support spaces of architectures."""

REALS = ('search.space.dropout="real(0.0, 0.4)"', 'search.space.lr="real(3e-4, 3e-2, log=true)"')

Point = Mapping[str, Any]


@dataclass
class Space:
    """A search study with known results for all points; a larger `worth` is better."""

    file: Path
    changes: tuple[str, ...]
    worth: Callable[[Point], float]
    best: float
    middle: float
    seconds: float = field(default=0.0, init=False)
    drawn: int = field(default=0, init=False)

    def search(self, sampler: Mapping[str, object], seed: int) -> list[float]:
        """Return the regret after each point that a sampler chooses."""
        text = ", ".join(f"{key} = {json.dumps(value)}" for key, value in sampler.items())
        changes = (
            f"search.sampler={{ {text} }}",
            f"search.seed={seed}",
            f"search.trials={TRIALS}",
            "search.direction=max",
        )
        asked = OptunaStudy(load_study(self.file, [*self.changes, *changes]))
        known, regrets = set[str](), list[float]()
        out: list[tuple[SearchPoint, optuna.Trial, float]] = []

        def accept(values: Values) -> SearchPoint | None:
            is_new = json.dumps(values) not in known
            known.add(json.dumps(values))
            return SearchPoint(values, ()) if is_new else None

        begun = time.process_time()
        while len(regrets) < TRIALS:
            while len(out) < PARALLEL:
                point, trial, source = asked.propose(accept, len(known))
                self.drawn += source != sampler["name"]
                out.append((point, trial, self.worth(point.values)))
            point, trial, worth = out.pop(0)
            asked.tell(point, PointEnd(TrialState.COMPLETE, 1, (worth,)), trial)
            regrets.append(min([(self.best - worth) / (self.best - self.middle), *regrets[-1:]]))
        self.seconds += time.process_time() - begun
        return regrets


def read_space(name: str) -> Space:
    """Return the space whose results are in the table of this name."""
    table = pl.read_parquet(FOLDER / f"{name}.parquet")
    worths = {point: -loss for point, loss in table["values", METRIC].iter_rows()}
    numbers = name == "search_numbers"
    worth = interpolated(worths) if numbers else lambda values: worths[json.dumps(values)]
    file, changes = FOLDER / f"{name}.toml", REALS if numbers else ()
    return Space(file, changes, worth, max(worths.values()), median(worths.values()))


def interpolated(worths: Mapping[str, float]) -> Callable[[Point], float]:
    """Return a function that interpolates the worth of a point, linear in dropout and log learning rate."""
    grid = {
        tuple(json.loads(text)[name] for name in ("kernel", "dropout", "lr")): worths[text] for text in worths
    }
    kernels, dropouts, rates = (sorted(set(axis)) for axis in zip(*grid, strict=True))
    table = {k: np.array([[grid[k, drop, rate] for rate in rates] for drop in dropouts]) for k in kernels}

    def worth(values: Point) -> float:
        by_rate = [np.interp(math.log(values["lr"]), np.log(rates), row) for row in table[values["kernel"]]]
        return float(np.interp(values["dropout"], dropouts, by_rate))

    return worth


def main() -> None:
    """Print a table of regrets."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
    space, seeds = read_space(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 50
    print(f"{sys.argv[1]}, {seeds} seeds, {PARALLEL} points at a time")
    head = "".join(f"{count:>16}" for count in SHOWN)
    print(f"{'regret after':<28}{head}{'drawn':>8}{'ms a point':>12}")
    ways = [way for way in WAYS if sys.argv[1] == "search_numbers" or way not in NUMBERS_ALONE]
    for way in sys.argv[3:] or ways:
        space.seconds, space.drawn = 0.0, 0
        runs = [space.search(WAYS[way], seed) for seed in range(seeds)]
        columns = [*zip(*runs, strict=True)]
        cells = "".join(f"{interval(columns[count - 1]):>16}" for count in SHOWN)
        milliseconds = 1000 * space.seconds / (seeds * TRIALS)
        print(f"{way:<28}{cells}{space.drawn / seeds:>8.1f}{milliseconds:>12.1f}", flush=True)


def interval(values: tuple[float, ...]) -> str:
    """Return the mean of values with its 95 % interval."""
    return f"{fmean(values):.3f} ± {1.96 * stdev(values) / math.sqrt(len(values)):.3f}"


if __name__ == "__main__":
    main()
