"""Simulated error rates of tables that compare changes with a baseline: false findings, and power.

python bench/false_findings.py [DRAWS]

The script draws a baseline and several changes with a few paired seeds, and counts the columns with any
significant difference. The columns on ≈ count the tables in which some cell
seems separable from the best one. In the last two columns the first change has an effect of three standard
deviations. It is tested with the pooled variance and with the variance of its own pairs, both with Holm's
correction.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np

from activemem.reporting.statistics.estimates import holm_adjusted
from activemem.reporting.statistics.pooled_differences import (
    Difference,
    differences_between,
)

LEVEL = 0.05
SEEDS = (2, 3, 5, 10)
CHANGES = (1, 2, 4, 8)
SEED_DEVIATION = 1.0
EFFECT = 3.0  # standard deviations of a value


def deviations(changes: int) -> dict[str, list[float]]:
    """Return for each pattern the standard deviation of the baseline, then those of the changes."""
    half = -(-changes // 2)
    return {
        "equal": [1.0] * (changes + 1),
        "baseline 3 times": [3.0] + [1.0] * changes,
        "one change 3 times": [1.0, 3.0] + [1.0] * (changes - 1),
        "half of them 3 times": [1.0] + [3.0] * half + [1.0] * (changes - half),
    }


def draw(rng: np.random.Generator, seeds: int, spread: list[float], effect: float) -> list[dict[int, float]]:
    """Draw a value for each seed of the baseline and of each change; only the first change has an effect."""
    shared = rng.normal(0, SEED_DEVIATION, seeds)
    cells = [shared + rng.normal(0, deviation, seeds) for deviation in spread]
    cells[1] += effect
    return [dict(enumerate(cell.tolist())) for cell in cells]


def _corrected(differences: Sequence[Difference | None]) -> list[float | None]:
    """Return the p values of a column of differences with Holm's correction (Holm 1979)."""
    adjusted = iter(holm_adjusted([each.p for each in differences if each and each.p is not None]))
    return [None if each is None or each.p is None else next(adjusted) for each in differences]


def found(cells: list[dict[int, float]], *, pooled: bool) -> list[bool]:
    """Return which changes are significant, with the pooled variance or with each change's own variance."""
    if pooled:
        pairs = [(number, 0) for number in range(1, len(cells))]
        differences = differences_between(cells, pairs)
    else:
        differences = tuple(differences_between([cells[0], cell], [(1, 0)])[0] for cell in cells[1:])
    return [p is not None and p < LEVEL for p in _corrected(differences)]


def separable(cells: list[dict[int, float]]) -> bool:
    """Return whether any cell is significantly worse than the best, so that it has no ≈."""
    best = max(range(len(cells)), key=lambda cell: sum(cells[cell].values()))
    compared = differences_between(cells, [(best, cell) for cell in range(len(cells)) if cell != best])
    return any(p is not None and p < LEVEL for p in _corrected(compared))


def main() -> None:
    """Print the tables."""
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    rng = np.random.default_rng(0)
    print_fixed(rng, draws)


def print_fixed(rng: np.random.Generator, draws: int) -> None:
    """Print the table of studies with a fixed number of seeds."""
    print(
        "| seeds | changes | "
        + " | ".join(deviations(1))
        + " | without ≈, equal | without ≈, one 3 times | found, pooled | found, alone |"
    )
    print("| --: | --: |" + " --: |" * 8)
    for seeds in SEEDS:
        for changes in CHANGES:
            rates = [
                sum(any(found(draw(rng, seeds, spread, 0.0), pooled=True)) for _ in range(draws)) / draws
                for spread in deviations(changes).values()
            ]
            equal = deviations(changes)["equal"]
            rates.append(sum(separable(draw(rng, seeds, equal, 0.0)) for _ in range(draws)) / draws)
            worst = deviations(changes)["one change 3 times"]
            rates.append(sum(separable(draw(rng, seeds, worst, 0.0)) for _ in range(draws)) / draws)
            power = [
                sum(found(draw(rng, seeds, equal, EFFECT), pooled=pooled)[0] for _ in range(draws)) / draws
                for pooled in (True, False)
            ]
            cells = [f"{rate:.1%}" for rate in rates] + [f"{each:.0%}" for each in power]
            print(f"| {seeds} | {changes} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
