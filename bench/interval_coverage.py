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

import numpy as np

from activemem.reporting.statistics.estimates import Interval
from activemem.reporting.statistics.factor_effects import Contrast, FactorModel, TermColumns
from activemem.reporting.statistics.stratified_bootstrap import (
    INTERQUARTILE_MEAN,
    MEAN,
    MEDIAN,
    aggregate_all,
    probability_of_improvement,
)

LEVEL = 0.05
SEEDS = (2, 3, 5, 10)
SEED_DEVIATION = 1.0
EFFECT = 1.0  # standard deviations of a value
CELLS = list(itertools.product(range(3), range(2), range(2)))
TASKS = (1, 3, 6)
STATISTICS = {"interquartile mean": INTERQUARTILE_MEAN, "mean": MEAN, "median": MEDIAN}
RESAMPLES = 1_000
MANY = 100_000  # seeds that approximate infinitely many
P_BETTER = (1 + math.erf(0.5)) / 2  # P(N(1, 1) > N(0, 1))
DEVIATIONS = {
    "equal": [1.0] * len(CELLS),
    "one cell 3 times": [3.0] + [1.0] * (len(CELLS) - 1),
    "one level 3 times": [3.0 if cell[0] == 0 else 1.0 for cell in CELLS],
}


def columns(seeds: int) -> TermColumns:
    """Return the columns of all terms (factors and interactions) of the grid with this number of seeds."""
    cells = [cell for cell in CELLS for _ in range(seeds)]
    return TermColumns(
        levels={name: [cell[at] for cell in cells] for at, name in enumerate("abc")},
        seeds=[*range(seeds)] * len(CELLS),
    )


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
    for seeds in SEEDS:
        terms = columns(seeds)
        for name, spread in DEVIATIONS.items():
            counts = np.zeros(4)
            for _ in range(draws):
                model = FactorModel(terms, draw(rng, seeds, spread, 0.0))
                effects = model.effects()
                found = FactorModel(terms, draw(rng, seeds, spread, EFFECT)).effects()[1].p
                counts += (
                    any(each.p is not None and each.p < LEVEL for each in effects),
                    covers(model.deviations("a")[0], 0.0),
                    covers(effects[1].contrasts[0], 0.0),
                    found is not None and found < LEVEL,
                )
            rates = " | ".join(f"{rate:.1%}" for rate in counts / draws)
            print(f"| {seeds} | {name} | {rates} |", flush=True)


def covers(found: Contrast | Interval, truth: float) -> bool:
    """Return whether an interval contains a number."""
    return found.low is not None and found.high is not None and found.low <= truth <= found.high


def print_aggregates(draws: int) -> None:
    """Print the table of aggregates; the last column is the share of draws that have an interval."""
    rng = np.random.default_rng(1)
    print(f"| tasks | seeds | {' | '.join(STATISTICS)} | better | better, none |")
    print("| --: " * (len(STATISTICS) + 4) + "|")
    for tasks, seeds in itertools.product(TASKS, SEEDS):
        centers = np.arange(tasks, dtype=float)
        endless = [rng.normal(center, 1, MANY)[None, :] for center in centers]
        truths = {name: float(statistic.of(endless)[0]) for name, statistic in STATISTICS.items()}
        covered, better, unknown = dict.fromkeys(STATISTICS, 0), 0, 0
        for seed in range(draws):
            runs, baseline = (
                [rng.normal(center - lower, 1, seeds).tolist() for center in centers] for lower in (0, 1)
            )
            found = aggregate_all(runs, STATISTICS, resamples=RESAMPLES, seed=seed)
            for name, truth in truths.items():
                covered[name] += covers(found[name], truth)
            chance = probability_of_improvement(runs, baseline, resamples=RESAMPLES, seed=seed)
            better += covers(chance, P_BETTER)
            unknown += chance.low is None
        rates = [count / draws for count in covered.values()]
        rates += [better / max(1, draws - unknown), unknown / draws]
        print(f"| {tasks} | {seeds} | {' | '.join(f'{rate:.1%}' for rate in rates)} |", flush=True)


def main() -> None:
    """Print both tables."""
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 4_000
    print_effects(draws)
    print()
    print_aggregates(draws)


if __name__ == "__main__":
    main()
