"""Simulated error rates of the test whether the exponents of two power laws differ.

    python bench/exponents.py [DRAWS]

Two series have the same sizes, each twice as large as the one before. A cell deviates from the law of its
series, and the seeds deviate from their cell. The script counts how often the test finds a difference of
equal exponents, how often the interval covers a difference of `DIFFERENCE`, and how often the test finds it.
"""

from __future__ import annotations

import sys

import numpy as np

from activemem.reporting.statistics.power_law import error_of_means, exponent_difference, fit_power_law

CELLS = (3, 4, 5, 7)
SEEDS = (1, 2, 3)
SPREADS = {"equal": (1.0, 1.0), "one 3 times": (1.0, 3.0)}
OF_CELLS, OF_SEEDS = 0.01, 0.01  # standard deviations of logarithms
DIFFERENCE, ALPHA = 0.05, 0.05


def rates(cells: int, seeds: int, spreads: tuple[float, float], draws: int) -> tuple[float, float, float]:
    """Return the shares of false findings, of intervals that cover the difference, and of true findings."""
    rng, found = np.random.default_rng(0), np.zeros(3)
    sizes = 1e4 * 2.0 ** np.arange(cells)
    for _ in range(draws):
        for kind, difference in enumerate((0.0, DIFFERENCE)):
            laws = []
            for exponent, spread in zip((-0.2, -0.2 - difference), spreads, strict=True):
                around = rng.normal(0, OF_CELLS * spread, cells)
                noise = around[:, None] + rng.normal(0, OF_SEEDS * spread, (cells, seeds))
                values = sizes[:, None] ** exponent * np.exp(noise)
                points = zip(sizes, np.exp(np.log(values).mean(1)), strict=True)
                laws.append(fit_power_law(list(points), error_of_means(values.tolist())))
            interval, p = exponent_difference(*laws)
            if kind:
                found += (0, interval.low <= difference <= interval.high, p < ALPHA)
            else:
                found[0] += p < ALPHA
    return tuple(found / draws)


def main() -> None:
    """Print the table."""
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    print(
        "| cells | seeds |"
        + "".join(f" wrong, {each} | covered, {each} | found, {each} |" for each in SPREADS)
    )
    print("| --: | --: |" + " --: |" * 3 * len(SPREADS))
    for cells in CELLS:
        for seeds in SEEDS:
            shares = [share for spreads in SPREADS.values() for share in rates(cells, seeds, spreads, draws)]
            print(f"| {cells} | {seeds} |" + "".join(f" {share:.1%} |" for share in shares), flush=True)


if __name__ == "__main__":
    main()
