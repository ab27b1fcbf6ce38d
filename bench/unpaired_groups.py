"""How often groups without any effect differ, and how often an effect of two standard deviations is found.

python bench/unpaired_groups.py [TABLES]    prints a row for each design, by default with 10,000 tables each

A table has arms with some runs each. All are compared with the first by the rule of `activemem judge`, by
Welch's test and by the pooled variance, at p < .05 without a correction. The rank-sum test is simulated with
the share of diverged runs in the last column.
"""

from __future__ import annotations

import sys

import numpy as np

from activemem.reporting.statistics.estimates import t_test_p
from activemem.reporting.statistics.groups import Group, larger_error, own_error, pool_groups, rank_sum_p

DESIGNS = {
    "2 arms of 3": ((3, 3), (1, 1)),
    "2 arms of 5": ((5, 5), (1, 1)),
    "8 arms of 3": ((3,) * 8, (1,) * 8),
    "8 arms of 3, one varies 3 times as much": ((3,) * 8, (1, 3, *(1,) * 6)),
    "3 (varies 3 times as much) against 8": ((8, 3), (1, 3)),
    "4 and 3 and 3": ((4, 3, 3), (1, 1, 1)),
}
EFFECT = 2.0


def rejections(cells: list[list[float]]) -> tuple[bool, bool, bool]:
    """Return whether the first two cells differ: by the larger variance, by Welch's, by the pooled one."""
    pool = pool_groups(cells)
    groups = [Group(weight=w, values=cell, pool=pool) for w, cell in zip((1.0, -1.0), cells, strict=False)]
    apart = sum(cells[0]) / len(cells[0]) - sum(cells[1]) / len(cells[1])
    larger, own = larger_error(groups), own_error(groups)
    assert pool is not None and larger is not None and own is not None, "values vary"
    shared = pool.sd * (1 / len(cells[0]) + 1 / len(cells[1])) ** 0.5
    errors = ((larger.sd, larger.degrees), (own.sd, own.degrees), (shared, pool.degrees))
    found = [t_test_p(apart / sd, degrees) < 0.05 for sd, degrees in errors]
    return found[0], found[1], found[2]


def main() -> None:
    """Print the share of rejections of each design."""
    tables = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    rng = np.random.default_rng(0)
    print("| design | larger variance | Welch | pooled | power at 2 s.d. (larger, Welch, pooled) |")
    print("| :-- | --: | --: | --: | --: |")
    for name, (sizes, sds) in DESIGNS.items():
        shares = []
        for effect in (0.0, EFFECT):
            counts = np.zeros(3)
            for _ in range(tables):
                cells = [list(rng.normal(0, sd, n)) for n, sd in zip(sizes, sds, strict=True)]
                cells[1] = [value + effect for value in cells[1]]
                counts += rejections(cells)
            shares.append(counts / tables)
        null, power = shares
        print(f"| {name} | {' | '.join(f'{each:.3f}' for each in null)} | "
              f"{' '.join(f'{each:.2f}' for each in power)} |")  # fmt: skip
    print("\n| rank sums | share of p < .05 without an effect |\n| :-- | --: |")
    for n, share in ((4, 0.25), (5, 0.25), (5, 0.5), (8, 0.25)):
        values = rng.normal(size=(tables, 2, n))
        values[rng.random(values.shape) < share] = np.inf
        count = sum(rank_sum_p(list(one), list(other))[0] < 0.05 for one, other in values)
        print(f"| {n} and {n} runs, {share:.0%} diverged | {count / tables:.3f} |")


if __name__ == "__main__":
    main()
