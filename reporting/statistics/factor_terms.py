"""The terms of a linear model of factors: their columns, and which terms a design confounds.

Levels are coded so that their effects add up to 0. Each level but the last has a column that is 1 at this
level and −1 at the last. An interaction has the products of its factors' columns. So an effect is an effect
on the mean over all combinations of the other levels, each counted once (Searle 1987, chapter 9: the
Σ-restricted model).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
"""Numbers in rows and columns."""

Term = tuple[str, ...]
"""A factor, or the two factors of an interaction."""

_TOLERANCE = 1e-8  # of what is nothing but rounding, beside codes of 0 and 1


@dataclass(frozen=True)
class TermColumns:
    """The columns of every term over observations, by the numbers of their levels.

    `levels` has, for each factor, the number of every observation's level. A factor has at least two levels,
    each with an observation. `seeds` has the number of every observation's block.
    """

    levels: Mapping[str, Sequence[int]]
    seeds: Sequence[int]
    with_interactions: bool

    @cached_property
    def counts(self) -> dict[str, int]:
        """Return how many levels each factor has."""
        return {name: max(numbers) + 1 for name, numbers in self.levels.items()}

    @cached_property
    def mains(self) -> tuple[Term, ...]:
        """Return each factor."""
        return tuple((name,) for name in self.levels)

    @cached_property
    def pairs(self) -> tuple[Term, ...]:
        """Return each two factors, in the order of the factors."""
        return tuple(combinations(self.levels, 2)) if self.with_interactions else ()

    @cached_property
    def blocks(self) -> Floats:
        """Return the columns of the seeds; none if there is one."""
        return _coded(self.seeds, max(self.seeds) + 1)

    def of(self, term: Term) -> Floats:
        """Return the columns of a term, (observations, degrees of freedom)."""
        found = np.ones((len(self.seeds), 1))
        for name in term:
            coded = _coded(self.levels[name], self.counts[name])
            found = (found[:, :, None] * coded[:, None, :]).reshape(len(found), -1)
        return found

    def model(self, terms: Sequence[Term], *, blocks: bool = True) -> Floats:
        """Return the columns of a model: 1, then the seeds, then the terms."""
        first = [np.ones((len(self.seeds), 1)), *([self.blocks] if blocks else [])]
        return np.hstack([*first, *map(self.of, terms)])

    def places(self, terms: Sequence[Term], *, blocks: bool = True) -> dict[Term, slice]:
        """Return the slice of each term's columns in `model`."""
        start, found = 1 + (self.blocks.shape[1] if blocks else 0), dict[Term, slice]()
        for term in terms:
            found[term] = slice(start, start + self.degrees(term))
            start = found[term].stop
        return found

    def degrees(self, term: Term) -> int:
        """Return how many columns a term has."""
        return int(np.prod([self.counts[name] - 1 for name in term]))

    def contrasts(self, term: Term) -> Floats:
        """Return the rows that turn the coefficients of a term's columns into its contrasts.

        A factor of two levels has one contrast: the second level minus the first. Two such factors have one:
        the difference of one factor at the second level of the other, minus its difference at the first.
        Other terms have the effect of each level, or of each combination of levels.
        """
        if all(self.counts[name] == 2 for name in term):
            return np.array([[(-2.0) ** len(term)]])
        return self.effects(term)

    def effects(self, term: Term) -> Floats:
        """Return the effect of each level of a term, or of each combination."""
        found: Floats = np.ones((1, 1))
        for name in term:
            count = self.counts[name]
            found = np.kron(found, _codes(count)).astype(np.float64)
        return found

    @cached_property
    def cells(self) -> TermColumns:
        """Return the same with each combination of levels once, without seeds."""
        found = sorted(set(zip(*self.levels.values(), strict=True)))
        levels = {name: [cell[at] for cell in found] for at, name in enumerate(self.levels)}
        return TermColumns(levels=levels, seeds=[0] * len(found), with_interactions=self.with_interactions)

    def is_complete(self, term: Term) -> bool:
        """Return whether all combinations of a term's levels are observed."""
        seen = set(zip(*(self.levels[name] for name in term), strict=True))
        return seen == set(product(*(range(self.counts[name]) for name in term)))


def estimable_terms(columns: TermColumns, terms: Sequence[Term], among: Sequence[Term]) -> tuple[Term, ...]:
    """Return the terms whose coefficients can all be estimated in a model with the terms `among`."""
    model, places = columns.model(among), columns.places(among)
    kept = np.linalg.pinv(model, rcond=_TOLERANCE) @ model
    lost = np.abs(np.eye(len(kept)) - kept).max(axis=1)
    return tuple(term for term in terms if lost[places[term]].max() < _TOLERANCE * 100)


def partners(columns: TermColumns, term: Term) -> tuple[Term, ...]:
    """Return the terms that are each, alone, confounded with this one.

    There are none where only several terms together are confounded with it.
    """
    cells = columns.cells
    own = [(name,) for name in term] if len(term) > 1 else []
    others = [each for each in cells.mains if each not in (*own, term)]
    found = tuple(each for each in others if _are_confused(cells, own, term, each))
    if found or len(term) == 1:
        return found
    mains = list(cells.mains)
    return tuple(each for each in cells.pairs if each != term and _are_confused(cells, mains, term, each))


def biases(
    columns: TermColumns, kept: Sequence[Term], left_out: Sequence[Term]
) -> dict[Term, tuple[Term, ...]]:
    """Return the terms that a model leaves out (Box and Hunter 1961)."""
    cells = columns.cells
    model, places = cells.model(kept), cells.places(kept)
    if not left_out:
        return dict.fromkeys(kept, ())
    fit = np.linalg.pinv(model, rcond=_TOLERANCE)
    moved = {each: np.abs(fit @ cells.of(each)).max(axis=1) for each in left_out}
    return {
        term: tuple(each for each in left_out if moved[each][places[term]].max() > _TOLERANCE * 100)
        for term in kept
    }


def _are_confused(cells: TermColumns, given: Sequence[Term], one: Term, other: Term) -> bool:
    """Return whether two terms are confounded beside the given ones."""
    base = matrix_rank(cells.model(given))
    parts = sum(matrix_rank(cells.model([*given, each])) - base for each in (one, other))
    return matrix_rank(cells.model([*given, one, other])) - base < parts


def matrix_rank(model: Floats) -> int:
    """Return the number of linearly independent columns of a model; 0 without columns."""
    return int(np.linalg.matrix_rank(model, tol=_TOLERANCE * max(model.shape))) if model.size else 0


def _coded(numbers: Sequence[int], count: int) -> Floats:
    """Return the columns of a factor: 1 at a level, −1 at the last."""
    return _codes(count)[np.asarray(numbers)]


def _codes(count: int) -> Floats:
    return np.vstack([np.eye(count - 1), -np.ones((1, count - 1))])
