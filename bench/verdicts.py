"""Simulated error rates of claims about two cells: false decisions, and power.

python bench/verdicts.py [DRAWS]

The script draws the values of eight comparable cells with a few paired seeds. It compares two of them by the
rule of claims (`reporting/claims/hypothesis_test.py`) or by their own differences. A second table adds seeds
to the two cells until a claim is decided, like `study run --until-decided`.
"""

from __future__ import annotations

import math
import sys

import numpy as np

from activemem.reporting.claims.hypothesis_test import paired_test
from activemem.reporting.statistics.look_levels import look_level
from activemem.reporting.statistics.pooled_differences import Values, pooled_variance
from activemem.studies.claims.interim_tests import looks

LEVEL = 0.05
SEEDS = (2, 3, 5, 10)
CELLS = 8
FIRST, MOST = 3, (6, 12, 24)  # seeds before any are added, and after all are
EFFECT = 3.0  # standard deviations of a value

SPREADS = {
    "equal": [1.0] * CELLS,
    "one 3 times": [3.0] + [1.0] * (CELLS - 1),
    "half 3 times": [3.0] * (CELLS // 2) + [1.0] * (CELLS // 2),
    "1/e to e": np.exp(np.linspace(1, -1, CELLS)).tolist(),
}
"""The standard deviations of the cells."""

NOISY_PAIR = [20.0, 20.0] + [1.0] * (CELLS - 2)
"""The standard deviations where both compared cells vary, and the others are nearly constant."""


def decided(
    rng: np.random.Generator, seeds: int, spread: list[float], effect: float, pair: tuple[int, int] | None
) -> tuple[bool, bool]:
    """Return whether two cells differ significantly, tested with the pooled variance and with their own.

    `pair` has the places of the two cells; None for any two.
    """
    table = rng.normal(0, 1, seeds) + rng.normal(0, 1, (CELLS, seeds)) * np.array(spread)[:, None]
    first, second = pair or rng.choice(CELLS, 2, replace=False)
    table[first] += effect
    cells: list[Values] = [dict(enumerate(row)) for row in table.tolist()]
    differences = {seed: cells[first][seed] - cells[second][seed] for seed in range(seeds)}
    pooled, alone = (
        paired_test(
            differences=differences,
            region=(0.0, math.inf),
            rounding=0.0,
            test=test,
            complete=True,
            pool=pooled_variance(cells),
        ).p
        for test in ("pooled", "t")
    )
    return pooled <= LEVEL, alone <= LEVEL


def rate(
    rng: np.random.Generator,
    draws: int,
    seeds: int,
    spread: list[float],
    effect: float = 0.0,
    *,
    pair: tuple[int, int] | None = None,
) -> tuple[str, str]:
    """Return the share of significant draws, tested with the pooled variance and with the cells' own."""
    found = [decided(rng, seeds, spread, effect, pair) for _ in range(draws)]
    pooled, alone = (sum(column) / draws for column in zip(*found, strict=True))
    return f"{pooled:.1%}", f"{alone:.1%}"


def decided_at(rng: np.random.Generator, most: int, spread: list[float], effect: float) -> tuple[int, bool]:
    """Add seeds to two cells until a test decides; return the number of seeds, and whether a test decided."""
    counts = looks(FIRST, most)
    level = look_level(counts, LEVEL)
    table = rng.normal(0, 1, most) + rng.normal(0, 1, (CELLS, most)) * np.array(spread)[:, None]
    first, second = rng.choice(CELLS, 2, replace=False).tolist()
    table[first] += effect
    for count in counts:
        lengths = [count if cell in (first, second) else FIRST for cell in range(CELLS)]
        cells: list[Values] = [
            dict(enumerate(row[:length])) for row, length in zip(table.tolist(), lengths, strict=True)
        ]
        test = paired_test(
            differences={seed: cells[first][seed] - cells[second][seed] for seed in range(count)},
            region=(0.0, math.inf),
            rounding=0.0,
            test="pooled",
            complete=True,
            pool=pooled_variance(cells),
        )
        if test.p <= level:
            return count, True
    return most, False


def print_added(rng: np.random.Generator, draws: int) -> None:
    """Print the table with added seeds."""
    effects = (0.5, 1.0, 2.0, 3.0)
    print("| at most | looks | " + " | ".join(f"wrong, {name}" for name in SPREADS), end=" | ")
    print(" | ".join(f"found, {effect:g} s.d." for effect in effects) + " |")
    print("| --: | :-- |" + " --: |" * (len(SPREADS) + len(effects)))
    for most in MOST:
        wrong = [
            sum(decided_at(rng, most, spread, 0.0)[1] for _ in range(draws)) / draws
            for spread in SPREADS.values()
        ]
        cells = [f"{each:.1%}" for each in wrong]
        for effect in effects:
            found = [decided_at(rng, most, SPREADS["equal"], effect) for _ in range(draws)]
            share, mean = (
                sum(column) / draws for column in zip(*[(hit, n) for n, hit in found], strict=True)
            )
            cells.append(f"{share:.0%} with {mean:.1f}")
        print(
            f"| {most} | {', '.join(map(str, looks(FIRST, most)))} | " + " | ".join(cells) + " |", flush=True
        )


def main() -> None:
    """Print the tables."""
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    rng = np.random.default_rng(0)
    print_fixed(rng, draws)
    print()
    print_added(rng, draws)


def print_fixed(rng: np.random.Generator, draws: int) -> None:
    """Print the table with a fixed number of seeds."""
    print(
        "| seeds | "
        + " | ".join(f"any two, {name}" for name in SPREADS)
        + " | noisiest | noisy pair | found, pooled | found, alone |"
    )
    print("| --: |" + " --: |" * (len(SPREADS) + 4))
    for seeds in SEEDS:
        wrong = [rate(rng, draws, seeds, spread)[0] for spread in SPREADS.values()]
        wrong.append(rate(rng, draws, seeds, SPREADS["one 3 times"], pair=(0, CELLS - 1))[0])
        found = rate(rng, draws, seeds, SPREADS["equal"], EFFECT)
        other = np.random.default_rng(seeds)
        wrong.append(rate(other, draws, seeds, NOISY_PAIR, pair=(0, 1))[0])
        print(f"| {seeds} | " + " | ".join([*wrong, *found]) + " |", flush=True)


if __name__ == "__main__":
    main()
