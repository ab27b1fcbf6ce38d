"""Simulated error rates of claims and of tables: false findings, what habits do to them, and power.

python bench/verdicts.py [DRAWS]

Each study has a few paired seeds of several cells, which do not differ unless a column says `found`. All
studies of a kind are drawn and tested at once; the first of them are also tested by the code of claims and
tables, which must agree. Claims compare two of eight cells, tables all cells with a baseline or the best one.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr

from activemem.reporting.claims.hypothesis_test import paired_test
from activemem.reporting.statistics.look_levels import look_level
from activemem.reporting.statistics.pooled_differences import (
    differences_between,
    permutation_decides,
    pooled_variance,
)
from activemem.studies.claims.interim_tests import looks

Array = NDArray[np.float64]

LEVEL = 0.05
CELLS = 8
EFFECT = 3.0  # standard deviations of a value
STEP = 2.0  # of values with ties, in standard deviations
FIRST, MOST = 3, (6, 12)  # seeds before any are added, and after all are
CHECKED = 25  # studies of each kind that are tested by the code itself

SPREADS = {
    "equal": [1.0] * CELLS,
    "one 3 times": [3.0] + [1.0] * (CELLS - 1),
    "half 3 times": [3.0] * (CELLS // 2) + [1.0] * (CELLS // 2),
    "1/e to e": np.exp(np.linspace(1, -1, CELLS)).tolist(),
}
"""The standard deviations of the cells."""

NOISY_PAIR = [20.0, 20.0] + [1.0] * (CELLS - 2)
"""The standard deviations where both compared cells vary, and the others are nearly constant."""

RNG = np.random.default_rng(0)


# --- the rule of claims and tables, for many studies at once: cells (studies, cells, seeds)


def pool_of(cells: Array) -> tuple[Array, Array]:
    """Return the pooled standard deviation of a difference and its degrees of freedom; NaN if unknown."""
    varying = (np.ptp(cells, axis=2) > 0)[..., None]
    count = varying.sum(axis=(1, 2))
    centred = (cells - cells.mean(axis=2, keepdims=True)) * varying
    middle = centred.sum(axis=1, keepdims=True) / np.maximum(count, 1)[:, None, None]
    squares = (((centred - middle) * varying) ** 2).sum(axis=(1, 2))
    degrees = np.where(count > 1, (count - 1) * (cells.shape[2] - 1), np.nan)
    return np.sqrt(2 * squares / degrees), degrees


def t_p(differences: Array, sd: Array, degrees: Array, rounding: float = 0.0) -> Array:
    """Return the p of differences (studies, seeds) by the larger of their own variance and the pooled one."""
    seeds = differences.shape[1]
    own = np.maximum(differences.std(axis=1, ddof=1), rounding)
    is_pooled = own <= np.nan_to_num(sd, nan=-1.0)
    error = np.where(is_pooled, sd, own) / math.sqrt(seeds)
    return 2 * stdtr(np.where(is_pooled, degrees, seeds - 1), -np.abs(differences.mean(axis=1)) / error)


def permutation_p(differences: Array) -> Array:
    """Return the p of differences (studies, seeds) by all flips of their signs."""
    signs = np.array([(1, *each) for each in product((1, -1), repeat=differences.shape[1] - 1)])
    flipped, seen = np.abs(differences @ signs.T), np.abs(differences.sum(axis=1, keepdims=True))
    return (flipped >= seen * (1 - 1e-9)).mean(axis=1)


def claim_p(cells: Array, rounding: float = 0.0, *, pooled: bool = True) -> Array:
    """Return the p of the first cell against the second one, as a claim tests it."""
    differences = cells[:, 0] - cells[:, 1]
    nothing = np.full(len(cells), np.nan)
    sd, degrees = pool_of(cells) if pooled else (nothing, nothing)
    if pooled and permutation_decides(cells.shape[2], 1):
        found = permutation_p(differences)
    else:
        found = t_p(differences, sd, degrees, rounding)
    for place, table in enumerate(cells[:CHECKED].tolist()):
        expected = paired_test(
            differences=dict(enumerate(differences[place].tolist())),
            region=(0.0, math.inf),
            rounding=rounding,
            test="pooled" if pooled else "t",
            complete=True,
            pool=pooled_variance([dict(enumerate(row)) for row in table]),
        ).p
        assert math.isclose(found[place], expected, rel_tol=1e-6, abs_tol=1e-9), (found[place], expected)
    return found


def look_p(cells: Array, count: int) -> Array:
    """Return the p of the first two cells with `count` seeds; all other cells have FIRST seeds."""
    differences = (cells[:, 0] - cells[:, 1])[:, :count]
    if permutation_decides(count, 1):
        return permutation_p(differences)
    own = ((differences - differences.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)
    first = differences[:, :FIRST] - differences[:, :FIRST].mean(axis=1, keepdims=True)
    sd, degrees = pool_of(cells[:, :, :FIRST])
    pairs = math.comb(CELLS, 2)
    # all pairs with FIRST seeds, but the compared pair with all of its seeds
    squares = sd**2 * pairs * (FIRST - 1) - (first**2).sum(axis=1) + own
    sd = np.sqrt(squares / ((pairs - 1) * (FIRST - 1) + count - 1))
    found = t_p(differences, sd, degrees + count - FIRST)
    for place, table in enumerate(cells[:CHECKED].tolist()):
        rows = [dict(enumerate(row[: count if at < 2 else FIRST])) for at, row in enumerate(table)]
        expected = paired_test(
            differences=dict(enumerate(differences[place].tolist())),
            region=(0.0, math.inf),
            rounding=0.0,
            test="pooled",
            complete=True,
            pool=pooled_variance(rows),
        ).p
        assert math.isclose(found[place], expected, rel_tol=1e-6, abs_tol=1e-9), (found[place], expected)
    return found


def column_p(cells: Array, base: NDArray[np.intp], *, pooled: bool = True) -> Array:
    """Return the p of each other cell against the cell `base` of its study, with Holm's correction."""
    studies, number, seeds = cells.shape
    others = np.array([[at for at in range(number) if at != one] for one in range(number)])[base]
    baseline = cells[np.arange(studies), base]
    sd, degrees = pool_of(cells)
    found = np.empty(others.shape)
    for at in range(number - 1):
        differences = cells[np.arange(studies), others[:, at]] - baseline
        if permutation_decides(seeds, number - 1 if pooled else 1):
            found[:, at] = permutation_p(differences)
        else:
            nothing = np.full(studies, np.nan)
            found[:, at] = t_p(differences, *((sd, degrees) if pooled else (nothing, nothing)))
    for place, table in enumerate(cells[:CHECKED].tolist() if pooled else ()):
        rows = [dict(enumerate(row)) for row in table]
        made = differences_between(rows, [(int(at), int(base[place])) for at in others[place]])
        assert np.allclose(found[place], [each.p for each in made if each], rtol=1e-6, atol=1e-9)
    order = np.argsort(found, axis=1)
    ranked = np.take_along_axis(found, order, axis=1) * np.arange(number - 1, 0, -1)
    corrected = np.empty_like(found)
    np.put_along_axis(corrected, order, np.minimum(np.maximum.accumulate(ranked, axis=1), 1.0), axis=1)
    return corrected


# --- studies


def draw(studies: int, seeds: int, spread: Sequence[float], *, shuffled: bool = False) -> Array:
    """Draw cells that do not differ, each with its spread; if `shuffled`, in any order."""
    cells = RNG.normal(0, 1, (studies, 1, seeds))
    cells = cells + RNG.normal(0, 1, (studies, len(spread), seeds)) * np.array(spread)[:, None]
    order = np.argsort(RNG.random(cells.shape[:2]), axis=1)
    return np.take_along_axis(cells, order[..., None], axis=1) if shuffled else cells


def with_effect(cells: Array, effect: float) -> Array:
    """Add an effect to the first cell."""
    cells[:, 0] += effect
    return cells


def share(found: NDArray[np.bool_], digits: int = 1) -> str:
    """Format the share of studies in which something was found."""
    return f"{found.mean():.{digits}%}"


def fixed_rows(studies: int) -> Iterator[list[str]]:
    """Yield the rows on claims with a fixed number of seeds."""
    yield [
        "seeds",
        *SPREADS,
        "ties",
        "noisiest",
        "noisy pair",
        "found, 1 s.d.",
        "found, 3 s.d.",
        "3 s.d. alone",
    ]
    for seeds in (2, 3, 4, 5, 6, 8, 10):
        found = [claim_p(draw(studies, seeds, spread, shuffled=True)) for spread in SPREADS.values()]
        tied = np.round(draw(studies, seeds, SPREADS["equal"]) / STEP) * STEP
        found.append(claim_p(tied, STEP / math.sqrt(6)))
        found.append(claim_p(draw(studies, seeds, SPREADS["one 3 times"])))
        found.append(claim_p(draw(studies, seeds, NOISY_PAIR)))
        equal = [with_effect(draw(studies, seeds, SPREADS["equal"]), effect) for effect in (1.0, EFFECT)]
        found += [claim_p(equal[0]), claim_p(equal[1]), claim_p(equal[1], pooled=False)]
        yield [str(seeds), *(share(each <= LEVEL) for each in found)]


def look_rows(studies: int) -> Iterator[list[str]]:
    """Yield the rows on claims whose seeds are added until they are decided, by `max_seeds`."""
    effects = (0.5, 1.0, 2.0, EFFECT)
    yield ["at most", "looks", *SPREADS, *(f"found, {effect:g} s.d." for effect in effects)]
    for most in MOST:
        counts = looks(FIRST, most)
        level, cells = look_level(counts, LEVEL), list[str]()
        for spread, effect in (
            *((each, 0.0) for each in SPREADS.values()),
            *((SPREADS["equal"], effect) for effect in effects),
        ):
            drawn = with_effect(draw(studies, most, spread, shuffled=True), effect)
            decided = np.array([look_p(drawn, count) <= level for count in counts])
            ended = np.where(decided.any(axis=0), decided.argmax(axis=0), len(counts) - 1)
            seeds = np.array(counts)[ended].mean()
            cells.append(
                share(decided.any(axis=0), 0) + f" with {seeds:.1f}" if effect else share(decided.any(axis=0))
            )
        yield [str(most), ", ".join(map(str, counts)), *cells]


def habit_rows(studies: int) -> Iterator[list[str]]:
    """Yield what habits do to the share of studies in which a false claim is confirmed."""

    def confirmed(cells: Array, level: float = LEVEL) -> NDArray[np.bool_]:
        return (claim_p(cells) <= level) & (cells[:, 0].mean(axis=1) > cells[:, 1].mean(axis=1))

    def tried(times: int, level: float = LEVEL) -> NDArray[np.bool_]:
        return np.any(
            [confirmed(draw(studies, FIRST, SPREADS["equal"]), level) for _ in range(times)], axis=0
        )

    def grown(counts: Sequence[int], level: float) -> NDArray[np.bool_]:
        cells = draw(studies, counts[-1], SPREADS["equal"])
        means = [(cells[:, 0] - cells[:, 1])[:, :count].mean(axis=1) for count in counts]
        found = [(look_p(cells, count), mean) for count, mean in zip(counts, means, strict=True)]
        return np.any([(p <= level) & (mean > 0) for p, mean in found], axis=0)

    def best_seeds(of: int) -> Array:
        cells = draw(studies, of, SPREADS["equal"])
        order = np.argsort(cells[:, 1] - cells[:, 0], axis=1)[:, None, :FIRST]
        return np.take_along_axis(cells, order, axis=2)

    def best_cell(*, is_worst: bool) -> Array:
        """Return studies whose first cell is the best, and whose second one is the worst or any other."""
        cells = draw(studies, FIRST, SPREADS["equal"])
        order = np.argsort(-cells.mean(axis=2), axis=1)
        others = order[:, :0:-1] if is_worst else RNG.permuted(order[:, 1:], axis=1)
        order = np.concatenate([order[:, :1], others], axis=1)
        return np.take_along_axis(cells, order[..., None], axis=1)

    rule = looks(FIRST, 12)
    yield ["what is done", "a false claim is confirmed"]
    yield ["states one claim, trains three seeds", share(tried(1))]
    yield [
        f"`max_seeds = 12`: tests at {', '.join(map(str, rule))} seeds",
        share(grown(rule, look_level(rule, LEVEL))),
    ]
    yield [
        "adds seeds by hand from 3 to 12, tests after each, stops when it holds",
        share(grown(range(FIRST, 13), LEVEL)),
    ]
    for times in (2, 4, 12):
        yield [f"repeats the study with fresh seeds up to {times} times, shows the best", share(tried(times))]
    yield [
        "the same 12 times; p is multiplied by 12, as the seal counts 36 trials for 3",
        share(tried(12, LEVEL / 12)),
    ]
    yield ["keeps the best 3 of 6 seeds", share(confirmed(best_seeds(6)))]
    yield ["keeps the best 3 of 12 seeds", share(confirmed(best_seeds(12)))]
    for is_worst, other in ((False, "another one"), (True, "the worst one")):
        found = share(confirmed(best_cell(is_worst=is_worst)))
        yield [f"claims after the results that the best of eight cells beats {other}", found]


def table_rows(studies: int) -> Iterator[list[str]]:
    """Yield the rows on tables: columns with a wrong star or a cell wrongly without ≈, and power."""

    def patterns(changes: int) -> dict[str, list[float]]:
        half = -(-changes // 2)
        return {
            "equal": [1.0] * (changes + 1),
            "baseline 3 times": [1.0] * changes + [3.0],
            "one change 3 times": [3.0] + [1.0] * changes,
            "half of them 3 times": [3.0] * half + [1.0] * (changes + 1 - half),
        }

    yield [
        "seeds",
        "changes",
        *patterns(1),
        "without ≈, equal",
        "without ≈, one 3 times",
        "found, pooled",
        "found, alone",
    ]
    for seeds, changes in product((2, 3, 5, 10), (1, 2, 4, 8)):
        last = np.full(studies, changes)
        spreads = patterns(changes)
        cells = [
            share((column_p(draw(studies, seeds, each), last) < LEVEL).any(axis=1))
            for each in spreads.values()
        ]
        for name in ("equal", "one change 3 times"):
            drawn = draw(studies, seeds, spreads[name])
            found = column_p(drawn, drawn.mean(axis=2).argmax(axis=1))
            cells.append(share((found < LEVEL).any(axis=1)))
        drawn = with_effect(draw(studies, seeds, spreads["equal"]), EFFECT)
        cells += [share(column_p(drawn, last, pooled=pooled)[:, 0] < LEVEL, 0) for pooled in (True, False)]
        yield [str(seeds), str(changes), *cells]


def main() -> None:
    """Print the four tables."""
    studies = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    for rows in (fixed_rows, look_rows, habit_rows, table_rows):
        for place, row in enumerate(rows(studies)):
            print("| " + " | ".join(row) + " |", flush=True)
            if not place:
                print("|" + (" :-- |" if rows is habit_rows else " --: |") + " --: |" * (len(row) - 1))
        print()


if __name__ == "__main__":
    main()
