"""Designs that train a part of a grid: fractions of two-level grids, and samples of any grid.

A plan lists which effects the cells cannot separate (aliases), so that nobody attributes one to the other.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, permutations, product
from typing import Any, Literal

import numpy as np
from pydantic import Field

from activemem import DesignFactors, PluginDesign, register_design

Cell = Mapping[str, Any]
Row = tuple[int, ...]
"""The index of each factor's level in a cell."""

MAX_FACTORS = 23
"""The maximum number of factors of a fraction."""


class Sampled(PluginDesign):
    """Base class of designs of a part of a grid, with the aliases of their cells."""

    def aliases(self, factors: DesignFactors, cells: Sequence[Cell]) -> Iterator[str]:
        """Yield the effects that the cells cannot separate.

        They are main effects and, of factors with two levels, interactions of two factors.
        """
        for first, *others in _groups(factors, cells):
            yield f"{' × '.join(first)} is aliased with {' and '.join(map(' × '.join, others))}"
        columns = _columns(factors, cells)
        for name, column in columns.items():
            if len(set(column)) == 1:
                yield f"{name} has the same level in all cells"
        effects = _contrasts(factors, cells)  # in the groups above
        for one, other in permutations(columns, 2):
            is_shown = (one,) in effects and (other,) in effects
            if not is_shown and _determines(columns[one], columns[other]):
                yield f"{other} is aliased with {one}, each level of which has one level of {other}"


def _columns(factors: DesignFactors, cells: Sequence[Cell]) -> dict[str, list[str]]:
    """Return the level of each cell as a text, for each factor with several levels."""
    varied = [name for name, levels in factors.levels.items() if len(levels) > 1]
    return {name: [repr(cell[name]) for cell in cells] for name in varied}


def _determines(one: Sequence[object], other: Sequence[object]) -> bool:
    """Return whether each entry of one column always has the same entry of another, which varies."""
    return len(set(zip(one, other, strict=True))) == len(set(one)) and len(set(other)) > 1


def _contrasts(factors: DesignFactors, cells: Sequence[Cell]) -> dict[tuple[str, ...], tuple[int, ...]]:
    """Return the effects of factors with two levels: for each cell 1 or −1."""
    found = dict[tuple[str, ...], tuple[int, ...]]()
    for name, column in _columns(factors, cells).items():
        if len(factors.levels[name]) == len(set(column)) == 2:
            found[(name,)] = tuple(1 if each == repr(factors.baseline(name)) else -1 for each in column)
    for one, two in list(combinations(found, 2)):
        found[*one, *two] = tuple(x * y for x, y in zip(found[one], found[two], strict=True))
    return found


def _groups(factors: DesignFactors, cells: Sequence[Cell]) -> list[list[tuple[str, ...]]]:
    """Return the groups of effects of factors with two levels whose contrasts differ only in sign."""
    groups = dict[tuple[bool, ...], list[tuple[str, ...]]]()
    for effect, signs in _contrasts(factors, cells).items():
        groups.setdefault(tuple(sign == signs[0] for sign in signs), []).append(effect)
    return [group for group in groups.values() if len(group) > 1]


class TwoLevels(Sampled):
    """Base class of fractions of a grid of factors with two levels."""

    def runs(self, factors: int) -> Sequence[Row]:
        """Return the runs, each with 0 (the baseline's level) or 1 for each factor."""
        raise NotImplementedError

    def choose_cells(self, factors: DesignFactors) -> list[Cell]:
        """Return the cells of the runs."""
        ends = dict[str, list[Any]]()
        for name, levels in factors.levels.items():
            first = factors.baseline(name)
            ends[name] = [first, *(level for level in levels if repr(level) != repr(first))]
        varied = [name for name, levels in ends.items() if len(levels) == 2]
        start = {name: levels[0] for name, levels in ends.items()}
        runs = self.runs(len(varied))
        return [start | {name: ends[name][at] for name, at in zip(varied, run, strict=True)} for run in runs]

    def faults(self, factors: DesignFactors) -> Iterator[tuple[tuple[str, ...], str]]:
        """Yield a fault for each factor with more than two levels, and one for too many factors."""
        for name, levels in factors.levels.items():
            if len(levels) > 2:
                yield ("factors", name), f"{self.name} takes factors of two levels, got {len(levels)}"
        if (count := sum(len(levels) == 2 for levels in factors.levels.values())) > MAX_FACTORS:
            yield ("study", "design"), f"expected at most {MAX_FACTORS} factors of two levels, got {count}"

    def explain(self, factors: DesignFactors, cells: Sequence[Cell]) -> str:
        """Explain the number of cells, and how main effects and interactions are aliased."""
        effects = _contrasts(factors, cells)
        count = sum(len(effect) == 1 for effect in effects)
        if len(cells) >= 2**count:
            return f"all {2**count:,} combinations of two levels; every effect can be estimated"
        signs = np.array(list(effects.values()))
        shared = np.abs(signs @ signs.T) / len(cells) - np.eye(len(signs))
        partly, between = shared[:count, count:].max(initial=0), shared[count:, count:].max(initial=0)
        if partly == 1:
            told = "resolution III; main effects are not aliased with each other, but with interactions"
        elif partly > 0:
            told = (
                "main effects are not aliased with each other, but partly with interactions of two others "
                f"(correlation {partly:.2f}), which are assumed to be small"
            )
        elif between == 1:
            told = "resolution IV; main effects are not aliased, some interactions are with each other"
        else:
            told = "resolution V or more; no main effect or interaction of two factors is aliased"
        return f"{len(cells):,} of {2**count:,} combinations of {count} factors of two levels, {told}"


def fractional_runs(factors: int, resolution: int) -> list[Row]:
    """Return the runs of a regular fraction of this resolution, or of a higher one in as few runs."""
    found = smallest_fraction(factors, resolution)
    higher = smallest_fraction(factors, resolution + 1)
    return higher if len(higher) == len(found) else found


def smallest_fraction(factors: int, resolution: int) -> list[Row]:
    """Return the runs of the smallest regular fraction of at least this resolution that is found.

    A factor is a bit mask of the basic factors whose sum modulo 2 it is. No sum of fewer than `resolution`
    factors is zero, so a new factor is no sum of up to `resolution` − 2 others. Taking the smallest such mask
    each time needs no more runs than the fractions of Box and Hunter (1961).
    """
    for basic in range(factors + 1):
        masks = list[int]()
        sums = [{0}, *(set[int]() for _ in range(resolution - 2))]  # of 0, 1, 2, … factors
        for mask in [*(1 << bit for bit in range(basic)), *range(1, 1 << basic)]:
            if len(masks) < factors and not any(mask in each for each in sums):
                masks.append(mask)
                for size in reversed(range(1, len(sums))):
                    sums[size] |= {other ^ mask for other in sums[size - 1]}
        if len(masks) == factors:
            return [tuple((mask & run).bit_count() % 2 for mask in masks) for run in range(1 << basic)]
    raise AssertionError("as many basic factors as factors are always enough")


@register_design(
    "fractional",
    title="a fraction of a grid of factors with two levels",
    source="Box and Hunter 1961",
)
class Fractional(TwoLevels):
    """The smallest regular fraction of a resolution."""

    resolution: Literal["III", "IV", "V"]
    """III separates main effects from each other, IV also from two-factor interactions, V also these
    interactions from each other"""

    def runs(self, factors: int) -> list[Row]:
        """Return the runs of the fraction."""
        return fractional_runs(factors, {"III": 3, "IV": 4, "V": 5}[self.resolution])


@register_design(
    "plackett_burman",
    title="the fewest cells of two-level factors that show all main effects",
    source="Plackett and Burman 1946",
)
class PlackettBurman(TwoLevels):
    """Screening designs of 12, 20 and 24 runs, and fractions where a power of two suffices."""

    def runs(self, factors: int) -> list[Row]:
        """Return the runs: shifts of the quadratic residues of a prime (Paley 1933), and the baseline."""
        prime = 4 * (factors // 4 + 1) - 1
        if factors < 3:
            return list(product((0, 1), repeat=factors))
        if prime & (prime + 1) == 0:
            return fractional_runs(factors, 3)
        residues = {number * number % prime for number in range(prime)}
        shifts = [
            tuple(int((at - shift) % prime in residues) for at in range(factors)) for shift in range(prime)
        ]
        return [(0,) * factors, *shifts]


class Drawn(Sampled):
    """Base class of samples of different cells of a grid."""

    cells: int = Field(ge=1, le=100_000)
    """the number of cells drawn from the grid"""
    seed: int = Field(default=0, ge=0, lt=2**63)
    """the seed of the draw"""

    def faults(self, factors: DesignFactors) -> Iterator[tuple[tuple[str, ...], str]]:
        """Yield a fault if there are fewer cells than requested."""
        path, size = ("study", "design", "cells"), grid_size(factors)
        if self.cells > size:
            yield path, f"expected at most {size:,}, all cells of the grid, got {self.cells:,}"
        elif (found := len(self.choose_cells(factors))) < self.cells:
            yield path, f"expected fewer cells, got {self.cells:,}: only {found:,} different ones were found"

    def explain(self, factors: DesignFactors, cells: Sequence[Cell]) -> str:
        """Explain how many cells are drawn, and whether they show main effects."""
        if len(cells) == (size := grid_size(factors)):
            return f"all {size:,} combinations, as in a grid: nothing is drawn"
        drawn = f"{len(cells):,} of {size:,} combinations, drawn with seed {self.seed}"
        columns = list(_columns(factors, cells).values())
        are_constant = any(len(set(column)) == 1 for column in columns)
        if are_constant or any(_determines(*pair) for pair in permutations(columns, 2)):
            return f"{drawn}; they cannot separate all main effects"
        if any(len(group[0]) == 1 for group in _groups(factors, cells)):
            return f"{drawn}; main effects are aliased with interactions, which are assumed to be zero"
        return f"{drawn}; they find the most important factors, not small effects or interactions"


def grid_size(factors: DesignFactors) -> int:
    """Return the number of cells of the grid."""
    return math.prod(map(len, factors.levels.values()))


@register_design("random", title="different cells of the grid, drawn at random", has_conditions=True)
class Random(Drawn):
    """Cells that are drawn independently; more cells only add to fewer ones."""

    def choose_cells(self, factors: DesignFactors) -> list[Cell]:
        """Return the drawn cells: without repetition, also in factors that a cell does not have."""
        found = dict[str, Cell]()
        for number in range(64 * self.cells):
            cell = {
                name: levels[self._draw(name, number) % len(levels)]
                for name, levels in factors.levels.items()
            }
            found.setdefault(repr(factors.with_absent(cell)), cell)
            if len(found) == self.cells:
                break
        return list(found.values())

    def _draw(self, *what: object) -> int:
        """Return a pseudo-random number that is the same on every machine, for every set of factors."""
        text = " ".join(map(str, (self.seed, *what)))
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])


@register_design(
    "latin_hypercube",
    title="cells drawn so that each factor's levels occur almost equally often",
    source="McKay, Beckman and Conover 1979",
)
class LatinHypercube(Drawn):
    """A sample in which the levels of each factor are balanced."""

    def choose_cells(self, factors: DesignFactors) -> list[Cell]:
        """Return the first of several hypercubes whose main effects are not aliased, or else the last."""
        levels, draws = list(factors.levels.values()), list[np.ndarray]()
        if self.cells == grid_size(factors):
            return [dict(zip(factors.levels, cell, strict=True)) for cell in product(*levels)]
        for attempt in range(20):
            rows = self._draw(np.random.default_rng([self.seed, attempt]), [*map(len, levels)])
            if rows is None:
                continue
            draws.append(rows)
            if not any(_determines(*pair) for pair in permutations(rows.T.tolist(), 2)):
                break
        return [
            {name: factors.levels[name][at] for name, at in zip(factors.levels, row, strict=True)}
            for row in (draws[-1] if draws else ())
        ]

    def _draw(self, rng: np.random.Generator, counts: list[int]) -> np.ndarray | None:
        """Return the level numbers of different cells, or None if no such cells are found."""
        from scipy.stats import qmc  # noqa: PLC0415 -- it takes long to import

        # the middles of the strata: with random points in them, the frequencies could differ by two
        points = qmc.LatinHypercube(len(counts), scramble=False, rng=rng).random(self.cells)
        rows = np.floor(points * counts).astype(int)
        for _ in range(200):
            _, first = np.unique(rows, axis=0, return_index=True)
            if len(first) == self.cells:
                return rows
            for at in np.setdiff1d(
                np.arange(self.cells), first
            ):  # two cells swap a level, so each stays as frequent
                other, column = rng.integers(self.cells), rng.integers(len(counts))
                rows[[at, other], column] = rows[[other, at], column]
        return None
