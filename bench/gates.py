"""Simulated error rates of gates: how often a ladder promotes a mixer although it is no better.

python bench/gates.py [DRAWS]

The script draws the values of a baseline and four mixers at three sizes, with a few paired seeds. At the
first two sizes each remaining mixer is compared with the baseline by the rule of claims, and continues only
if it is confirmed to be better. The level is 95 % for all eight claims together, as in `[[gate]]`, or for
each claim. With several looks, as with `max_seeds`, undecided claims are tested again with more seeds.
"""

from __future__ import annotations

import math
import sys

import numpy as np

from activemem.reporting.claims.hypothesis_test import PairedTest, paired_test
from activemem.reporting.statistics.decided_differences import look_level
from activemem.reporting.statistics.pooled_differences import Values, pooled_variance
from activemem.studies.claims.interim_tests import looks

MIXERS, STAGES = 4, 2
ALPHA = 0.05
LOOKS = ((2,), (3,), (5,), looks(3, 8))
EFFECT = 4.0  # in standard deviations of a value

SPREADS = {
    "equal": [1.0] * (MIXERS + 1),
    "baseline 3 times": [3.0] + [1.0] * MIXERS,
    "one mixer 3 times": [1.0] * MIXERS + [3.0],
}
"""The standard deviations of the baseline and of the mixers."""


def confirmed(table: np.ndarray, mixer: int, counts: tuple[int, ...], alpha: float) -> bool:
    """Return whether the mixer in this row is confirmed to be better than the baseline, which is row 0.

    The first look that decides the claim counts. `counts` are the seeds at the looks, and `alpha` is the
    level of all looks together.
    """
    level = look_level(counts, alpha)
    tests = (mixer_test(table[:, :seeds], mixer, level) for seeds in counts)
    return next((test.inside for test in tests if test.p <= level), False)


def mixer_test(table: np.ndarray, mixer: int, level: float) -> PairedTest:
    """Return the test, at this level, of the mixer in this row against the baseline, which is row 0."""
    cells: list[Values] = [dict(enumerate(row)) for row in table.tolist()]
    return paired_test(
        differences={seed: cells[mixer][seed] - cells[0][seed] for seed in cells[0]},
        region=(0.0, math.inf),
        rounding_sd=0.0,
        test="pooled",
        complete=True,
        pool=pooled_variance(cells),
        alpha=level,
    )


def climb(
    rng: np.random.Generator, counts: tuple[int, ...], spread: list[float], better: int, alpha: float
) -> tuple[bool, int]:
    """Simulate a study with gates; return its wrong and its right decisions.

    These are whether a mixer that is no better than the baseline passed a gate, and how many better mixers
    passed all gates.
    """
    left, wrong, seeds = set(range(1, MIXERS + 1)), False, counts[-1]
    for _ in range(STAGES):
        table = rng.normal(0, 1, seeds) + rng.normal(0, 1, (MIXERS + 1, seeds)) * np.array(spread)[:, None]
        table[1 : better + 1] += EFFECT
        rows = [0, *sorted(left)]
        found = {mixer for at, mixer in enumerate(rows) if at and confirmed(table[rows], at, counts, alpha)}
        left &= found
        wrong |= any(mixer > better for mixer in left)
        if not left:
            break
    return wrong, sum(mixer <= better for mixer in left)


def main() -> None:
    """Print the table."""
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    rng = np.random.default_rng(0)
    wrongs = [f"wrong, {name}" for name in SPREADS]
    print("| seeds | level | " + " | ".join([*wrongs, "wrong, half better", "better ones at the top"]) + " |")
    print("| --: | --: |" + " --: |" * (len(wrongs) + 2))
    for counts in LOOKS:
        seeds = ", ".join(map(str, counts))
        for alpha in (ALPHA / (MIXERS * STAGES), ALPHA):
            cells = [
                f"{sum(climb(rng, counts, spread, 0, alpha)[0] for _ in range(draws)) / draws:.1%}"
                for spread in SPREADS.values()
            ]
            half = [climb(rng, counts, SPREADS["equal"], MIXERS // 2, alpha) for _ in range(draws)]
            wrong, found = (sum(column) / draws for column in zip(*half, strict=True))
            cells += [f"{wrong:.1%}", f"{found / (MIXERS // 2):.0%}"]
            print(f"| {seeds} | {1 - alpha:.2%} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
