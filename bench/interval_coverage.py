"""Simulated coverage of confidence intervals, and the rate of false effects.

python bench/interval_coverage.py [DRAWS]

The first table is about effects. It draws grids of one factor with three levels and two with two levels,
without any effect, with a few paired seeds. All cells vary alike, or one cell or one level varies three times
as much. It counts tables with any p below 0.05, intervals that cover 0, and how often an effect of one
standard deviation is found.

The second table is about aggregates over tasks. It draws scores of a method, whose tasks lie one standard
deviation apart, and of a baseline that is one lower on each task. It counts the intervals that cover the
value for infinitely many seeds, also of the probability of improvement.
"""

from __future__ import annotations

import itertools
import math
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl

from activemem import load_plugin

LEVEL = 0.05
SEEDS = (2, 3, 5, 10)
SEED_DEVIATION = 1.0
EFFECT = 1.0  # standard deviations of a value
CELLS = list(itertools.product(range(3), range(2), range(2)))
TASKS = (1, 3, 6)
STATISTICS = ("interquartile mean", "mean", "median")
RESAMPLES = 1_000
MANY = 100_000  # seeds that approximate infinitely many
P_BETTER = (1 + math.erf(0.5)) / 2  # P(N(1, 1) > N(0, 1))
DEVIATIONS = {
    "equal": [1.0] * len(CELLS),
    "one cell 3 times": [3.0] + [1.0] * (len(CELLS) - 1),
    "one level 3 times": [3.0 if cell[0] == 0 else 1.0 for cell in CELLS],
}


def fit(plugin: Any, values: list[float], seeds: int) -> Any:  # noqa: ANN401 -- the plug-in's module and model
    """Fit the model of the plug-in `effects` to values, cell by cell."""
    cells = [cell for cell in CELLS for _ in range(seeds)]
    frame = pl.DataFrame(
        {
            "trial": [str(at) for at in range(len(cells))],
            **{name: [str(cell[at]) for cell in cells] for at, name in enumerate("abc")},
            "seed": [*range(seeds)] * len(CELLS),
            "value": values,
        }
    )
    levels = {name: {str(each): "" for each in range(3 if name == "a" else 2)} for name in "abc"}
    results = SimpleNamespace(factors=levels, values=lambda _metric: frame)
    return plugin.FactorModel(results, "loss")


def draw(rng: np.random.Generator, seeds: int, spread: list[float], effect: float) -> list[float]:
    """Return random values, cell by cell; only the second level of the second factor has an effect."""
    shared = rng.normal(0, SEED_DEVIATION, seeds)
    noise = rng.normal(0, 1, (len(CELLS), seeds)) * np.array(spread)[:, None]
    moved = np.array([effect * cell[1] for cell in CELLS])[:, None]
    return (shared + noise + moved).ravel().tolist()


def print_effects(draws: int) -> None:
    """Print the table of effects."""
    rng = np.random.default_rng(0)
    print("| seeds | deviations | any found | level covered | difference covered | found |")
    print("| --: | :-- | --: | --: | --: | --: |")
    plugin = load_plugin("effects")
    for seeds in SEEDS:
        for name, spread in DEVIATIONS.items():
            counts = np.zeros(4)
            for _ in range(draws):
                model = fit(plugin, draw(rng, seeds, spread, 0.0), seeds)
                found = fit(plugin, draw(rng, seeds, spread, EFFECT), seeds)
                counts += (
                    any(p < LEVEL for p in model.p.values()),
                    covers(model.deviations("a")["0"], 0.0),
                    covers(model.difference(("b",)), 0.0),
                    found.p["b",] < LEVEL,
                )
            rates = " | ".join(f"{rate:.1%}" for rate in counts / draws)
            print(f"| {seeds} | {name} | {rates} |", flush=True)


def covers(found: Any, truth: float) -> bool:  # noqa: ANN401 -- a plug-in's estimate or cell
    """Return whether an interval contains a number."""
    return found.low is not None and found.high is not None and found.low <= truth <= found.high


def print_aggregates(draws: int) -> None:
    """Print the table of aggregates; the last column is the share of draws that have an interval."""
    rng, plugin = np.random.default_rng(1), load_plugin("aggregate")
    plugin.RESAMPLES = RESAMPLES
    print(f"| tasks | seeds | {' | '.join(STATISTICS)} | better | better, none |")
    print("| --: " * (len(STATISTICS) + 4) + "|")
    for tasks, seeds in itertools.product(TASKS, SEEDS):
        places = np.arange(tasks, dtype=float)
        truths = plugin.centers(*(rng.normal(place, 1, MANY) for place in places))
        degrees = [(seeds - 1) * each for each in (-(-tasks // 2), tasks, 2 - tasks % 2)]
        covered, better, unknown = np.zeros(len(STATISTICS)), 0, 0
        for _ in range(draws):
            runs, baseline = (
                [rng.normal(place - lower, 1, seeds).tolist() for place in places] for lower in (0, 1)
            )
            found = plugin.intervals(runs, plugin.centers, degrees, (-math.inf, math.inf))
            covered += [covers(each, truth) for each, truth in zip(found, truths, strict=True)]
            chance = plugin.improvement(runs, baseline, 1)
            better += covers(chance, P_BETTER)
            unknown += chance.low is None
        rates = [*(covered / draws), better / max(1, draws - unknown), unknown / draws]
        print(f"| {tasks} | {seeds} | {' | '.join(f'{rate:.1%}' for rate in rates)} |", flush=True)


def main() -> None:
    """Print both tables."""
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 4_000
    print_effects(draws)
    print()
    print_aggregates(draws)


if __name__ == "__main__":
    main()
