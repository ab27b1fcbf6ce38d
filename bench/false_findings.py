"""How often a table of changes finds a difference where there is none, and how often one that there is.

    python bench/false_findings.py [DRAWS]

Draws columns of values, a baseline and several changes with a few paired seeds, and counts the columns in
which any difference is starred. In the last two columns of the table the first change differs by three
standard deviations: it is found with the variance of all cells, or with that of its own pairs alone, both
with Holm's correction.
"""

from __future__ import annotations

import sys

import numpy as np

from activemem.reporting.statistics.pooled_differences import (
    all_pairs,
    corrected,
    differences_between,
    differences_from,
)

LEVEL = 0.05
SEEDS = (2, 3, 5, 10)
CHANGES = (1, 2, 4, 8)
SEED_DEVIATION = 1.0
EFFECT = 3.0  # standard deviations of a value


def deviations(changes: int) -> dict[str, list[float]]:
    """The standard deviation of the baseline and of each change, for every way in which they may differ."""
    half = -(-changes // 2)
    return {
        "equal": [1.0] * (changes + 1),
        "baseline 3 times": [3.0] + [1.0] * changes,
        "one change 3 times": [1.0, 3.0] + [1.0] * (changes - 1),
        "half of them 3 times": [1.0] + [3.0] * half + [1.0] * (changes - half),
    }


def draw(rng: np.random.Generator, seeds: int, spread: list[float], effect: float) -> list[dict[int, float]]:
    """Values by seed of the baseline and of each change, the first of which differs by an effect."""
    shared = rng.normal(0, SEED_DEVIATION, seeds)
    cells = [shared + rng.normal(0, deviation, seeds) for deviation in spread]
    cells[1] += effect
    return [dict(enumerate(cell.tolist())) for cell in cells]


def found(cells: list[dict[int, float]], *, pooled: bool) -> list[bool]:
    """Which changes are starred: with the variance of all, or each with its own."""
    if pooled:
        differences = differences_from(cells[0], cells[1:]).each
    else:
        differences = tuple(differences_from(cells[0], [cell]).each[0] for cell in cells[1:])
    return [p is not None and p < LEVEL for p in corrected(differences)]


def not_bold(cells: list[dict[int, float]]) -> bool:
    """Whether any cell is significantly worse than another."""
    compared = differences_between(cells, all_pairs(len(cells)))
    return any(p is not None and p < LEVEL for p in corrected(compared.each))


def main() -> None:
    """Print the table."""
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    rng = np.random.default_rng(0)
    print(
        "| seeds | changes | "
        + " | ".join(deviations(1))
        + " | not bold, equal | not bold, one 3 times | found, pooled | found, alone |"
    )
    print("| --: | --: |" + " --: |" * 8)
    for seeds in SEEDS:
        for changes in CHANGES:
            rates = [
                sum(any(found(draw(rng, seeds, spread, 0.0), pooled=True)) for _ in range(draws)) / draws
                for spread in deviations(changes).values()
            ]
            equal = deviations(changes)["equal"]
            rates.append(sum(not_bold(draw(rng, seeds, equal, 0.0)) for _ in range(draws)) / draws)
            worst = deviations(changes)["one change 3 times"]
            rates.append(sum(not_bold(draw(rng, seeds, worst, 0.0)) for _ in range(draws)) / draws)
            power = [
                sum(found(draw(rng, seeds, equal, EFFECT), pooled=pooled)[0] for _ in range(draws)) / draws
                for pooled in (True, False)
            ]
            cells = [f"{rate:.1%}" for rate in rates] + [f"{each:.0%}" for each in power]
            print(f"| {seeds} | {changes} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
