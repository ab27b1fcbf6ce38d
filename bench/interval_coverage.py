"""How often intervals of effects cover what they are about, and how often effects are found for nothing.

    python bench/interval_coverage.py [DRAWS]

Draws the values of a grid of a factor with three levels and two with two, with a few paired seeds, where no
factor does anything: all cells vary alike, one cell varies three times as much, or the cells of one level do.
Counts the tables in which any effect has a p below 0.05, the intervals of the first factor's first level and
of the second factor that cover 0, and how often an effect of the second factor of one standard deviation is
found.
"""

from __future__ import annotations

import itertools
import sys

import numpy as np

from activemem.reporting.statistics.factor_effects import FactorModel
from activemem.reporting.statistics.factor_terms import TermColumns

LEVEL = 0.05
SEEDS = (2, 3, 5, 10)
SEED_DEVIATION = 1.0
EFFECT = 1.0  # standard deviations of a value
CELLS = list(itertools.product(range(3), range(2), range(2)))
DEVIATIONS = {
    "equal": [1.0] * len(CELLS),
    "one cell 3 times": [3.0] + [1.0] * (len(CELLS) - 1),
    "one level 3 times": [3.0 if cell[0] == 0 else 1.0 for cell in CELLS],
}


def columns(seeds: int) -> TermColumns:
    """The terms of the grid with so many seeds."""
    cells = [cell for cell in CELLS for _ in range(seeds)]
    return TermColumns(
        levels={name: [cell[at] for cell in cells] for at, name in enumerate("abc")},
        seeds=[*range(seeds)] * len(CELLS),
        with_interactions=True,
    )


def draw(rng: np.random.Generator, seeds: int, spread: list[float], effect: float) -> list[float]:
    """The values of the grid, cell by cell, those at the second level of the second factor moved."""
    shared = rng.normal(0, SEED_DEVIATION, seeds)
    noise = rng.normal(0, 1, (len(CELLS), seeds)) * np.array(spread)[:, None]
    moved = np.array([effect * cell[1] for cell in CELLS])[:, None]
    return (shared + noise + moved).ravel().tolist()


def main() -> None:
    """Print the table."""
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
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
                level, difference = model.deviations("a")[0], effects[1].contrasts[0]
                found = FactorModel(terms, draw(rng, seeds, spread, EFFECT)).effects()
                counts += (
                    any(each.p is not None and each.p < LEVEL for each in effects),
                    level.low <= 0 <= level.high,
                    difference.low <= 0 <= difference.high,
                    found[1].p < LEVEL,
                )
            rates = " | ".join(f"{rate:.1%}" for rate in counts / draws)
            print(f"| {seeds} | {name} | {rates} |", flush=True)


if __name__ == "__main__":
    main()
