"""Simulated coverage of the confidence intervals of speedups.

    python bench/speedup_coverage.py [DRAWS]

Four cells take a time to a target that is lognormal over seeds: the seeds share a part of it, and the spread
of the rest is `SPREAD`. The fastest takes half as long as the baseline. Trainings are evaluated a number of
times until the baseline's median, so that a time is rounded up to the next evaluation. The script counts how
often the interval of the fastest cell's speedup covers 2.
"""

from __future__ import annotations

import math
import sys

import numpy as np

from activemem.reporting.statistics.speedup import TargetCosts, speedups

SEEDS = (2, 3, 5, 10)
EVALUATIONS = (10, 40, 1000)
SPREADS = {"equal": (0.1, 0.1, 0.1, 0.1), "fastest 3 times": (0.1, 0.3, 0.1, 0.1)}
MEDIANS = (1.0, 0.5, 0.8, 1.2)
SHARED = 0.05  # spread of the part that cells of a seed have in common
TRUTH = MEDIANS[0] / MEDIANS[1]


def coverage(seeds: int, evaluations: int, spreads: tuple[float, ...], draws: int) -> float:
    """Return how often the interval of the second cell's speedup over the first contains the true speedup."""
    rng, covered = np.random.default_rng(0), 0
    resolution = MEDIANS[0] / evaluations
    for _ in range(draws):
        shared = rng.normal(0, SHARED, seeds)
        cells: list[TargetCosts] = []
        for median, spread in zip(MEDIANS, spreads, strict=True):
            times = median * np.exp(shared + rng.normal(0, spread, seeds))
            seen = {seed: math.ceil(time / resolution) * resolution for seed, time in enumerate(times)}
            cells.append(TargetCosts(reached=seen, limits={}, resolution=dict.fromkeys(seen, resolution)))
        found = speedups(cells, 0)[1]
        assert found is not None
        assert found.low is not None
        assert found.high is not None
        covered += found.low <= TRUTH <= found.high
    return covered / draws


def main() -> None:
    """Print the table."""
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    print(f"| seeds | spreads | {' | '.join(f'{count} evaluations' for count in EVALUATIONS)} |")
    print("| --: | :-- |" + " --: |" * len(EVALUATIONS))
    for seeds in SEEDS:
        for name, spreads in SPREADS.items():
            rates = [coverage(seeds, count, spreads, draws) for count in EVALUATIONS]
            print(f"| {seeds} | {name} | {' | '.join(f'{rate:.1%}' for rate in rates)} |", flush=True)


if __name__ == "__main__":
    main()
