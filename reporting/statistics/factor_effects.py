"""The effect of each factor of a grid on a metric, from a linear model of the cells.

The model has the mean, the seeds as blocks, every factor, and every interaction of two factors that the cells
can estimate. It is fitted by least squares to the trials that have a value. With several seeds, the error is
the variance within cells after removing the seeds' effects. With one seed, the residuals are the error. If
the estimates of a term vary more than this error predicts, the error of the term is scaled up. So cells with
unequal variances raise no false findings (`bench/interval_coverage.py` simulates both).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from .estimates import LEVEL, holm_adjusted, t_quantile

_ROUNDING = 1e-12  # smaller deviations relative to the values count as zero


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """An estimate of a mean, or of a difference between levels.

    Its standard error and its interval are None if they are unknown.
    """

    value: float
    error: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TermEffect:
    """The effect of a term: a factor, or the interaction of two factors.

    A term that cannot be estimated has no contrasts. `contrasts` come from `TermColumns.contrasts`; there is
    a single contrast if every factor has two levels. `p` comes from the F test of all columns of the term,
    corrected over the terms by Holm's procedure. `share` is η²: the term's type III sum of squares, divided
    by the total sum of squares around the mean. `aliases` of an estimated term are terms outside the model
    that would bias it. `aliases` of another term are the terms that it is confounded with. `varies_more` is
    true if its intervals and its test have the variance of the effect itself, because it is larger.
    """

    term: Term
    contrasts: tuple[Contrast, ...] = ()
    p: float | None = None
    share: float | None = None
    aliases: tuple[Term, ...] = ()
    varies_more: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorVariance:
    """The error variance of the model, with its degrees of freedom.

    If `is_within_cells`, it is the noise within cells, with a residual for each trial. Otherwise it is the
    residual variance of the model.
    """

    variance: float
    degrees: int
    is_within_cells: bool
    residuals: Floats


class FactorModel:
    """A linear model of a metric's values, fitted by least squares.

    `estimable` are the factors and interactions that the observations can estimate. `error` is the error
    variance; None if no degrees of freedom are left or all values are equal. `shares` are the shares of
    the total variance that no factor explains, by their cause, as far as they are known.
    """

    def __init__(self, columns: TermColumns, values: Sequence[float]) -> None:
        """Fit the model. `values[i]` is the value of observation i in `columns`."""
        self.columns = columns
        self._y: Floats = np.asarray(values, dtype=float)
        mains, every, y = columns.mains, (*columns.mains, *columns.pairs), self._y
        pairs = estimable_terms(columns, columns.pairs, every)
        self.estimable = (*estimable_terms(columns, mains, mains), *pairs)
        self._terms = (*mains, *pairs)  # with factors that are confounded with each other
        self._model, self._places = columns.model(self._terms), columns.places(self._terms)
        # (X'X)⁻, the covariance of the coefficients, divided by the error variance: a pseudo-inverse, because
        # confounded factors make the matrix singular
        covariance = np.linalg.pinv(self._model.T @ self._model, rcond=1e-10, hermitian=True)
        self._inverse = covariance.astype(np.float64)
        self._coefficients = self._inverse @ self._model.T @ y
        within, rounding = _within_cells(columns, y), _ROUNDING**2 * float((y**2).sum())
        residuals, degrees = within or _residuals(y, columns.model(every))
        degrees -= 0 if within else len(y) - len(columns.firsts)
        squares, total = float((residuals**2).sum()), float(((y - y.mean()) ** 2).sum())
        self.error: ErrorVariance | None = None
        if degrees >= 1 and squares > rounding:
            self.error = ErrorVariance(
                variance=squares / degrees,
                degrees=degrees,
                is_within_cells=within is not None,
                residuals=residuals,
            )
        self._total, self.shares = 0.0, dict[str, float]()
        if total > rounding:
            left = float((_residuals(y, self._model)[0] ** 2).sum())
            noise = float((residuals[columns.trials] ** 2).sum()) if within else 0.0
            blocks = slice(1, 1 + columns.blocks.shape[1])
            self._total = total
            if blocks.stop > 1:
                self.shares["seeds"] = self._squares(blocks) / total
            self.shares["residual"] = max(0.0, left - noise) / total
            if within:
                self.shares["noise within cells"] = noise / total

    def effects(self) -> tuple[TermEffect, ...]:
        """Return the effect of every term, factors first, with p-values corrected for their number."""
        # the interactions that the model omits may bias its terms
        left_out = [pair for pair in self.columns.pairs if pair not in self.estimable]
        aliases = biases(self.columns, self._terms, left_out)
        found = [
            self._effect(term, aliases[term])
            if term in self.estimable
            else TermEffect(term=term, aliases=partners(self.columns, term))
            for term in (*self.columns.mains, *self.columns.pairs)
        ]
        tested = [term.p for term in found if term.p is not None]
        p_values = iter(holm_adjusted(tested))
        return tuple(term if term.p is None else replace(term, p=next(p_values)) for term in found)

    def means(self, term: Term) -> tuple[Contrast, ...]:
        """Return the mean at each level of a factor, or at each combination of two factors.

        All levels of the other factors have equal weight. If the interaction of two factors cannot be
        estimated, the effects of both factors are added. The interval does not include the variance between
        seeds. The result is empty for factors that cannot be estimated.
        """
        parts = [(name,) for name in term] + ([term] if len(term) > 1 and term in self.estimable else [])
        if any(part not in self.estimable for part in parts):
            return ()
        effects = {part: self.columns.effects(part) for part in parts}
        for part in parts:
            if len(part) < len(term):
                ones = {name: np.ones((self.columns.counts[name], 1)) for name in term}
                sides = (effects[part] if name == part[0] else ones[name] for name in term)
                effects[part] = np.kron(*sides).astype(np.float64)
        return self._contrasts(effects, mean=True)

    def deviations(self, factor: str) -> tuple[Contrast, ...]:
        """Return the mean at each level of an estimable factor, minus the mean over all levels."""
        return self._contrasts({(factor,): self.columns.effects((factor,))})

    @cached_property
    def _by_seed(self) -> Floats | None:
        """Return the coefficients of a fit to each seed alone; None if a seed is not enough for all terms."""
        seeds = np.asarray(self.columns.seeds)
        model = self.columns.model(self._terms, blocks=False)
        found, rank = list[Floats](), matrix_rank(model)
        for seed in range(seeds.max() + 1):
            own = model[seeds == seed]
            if matrix_rank(own) < rank:
                return None
            found.append(np.linalg.pinv(own, rcond=1e-8) @ self._y[seeds == seed])
        return np.array(found)

    def _effect(self, term: Term, aliases: tuple[Term, ...]) -> TermEffect:
        """Return the effect of a term: its estimates, its F test and its share of the variance.

        The F statistic is b'[(X'X)⁻]⁻¹b / (k s²) (Searle 1971, section 5.5).
        """
        squares, p, inflation = self._squares(self._places[term]), None, self._inflation(term)
        if self.error:
            from scipy.special import fdtrc  # noqa: PLC0415 -- a table without tests does not need it

            degrees = self.columns.degrees(term)
            f = squares / (degrees * self.error.variance * inflation)
            p = float(fdtrc(degrees, self.error.degrees, f))
        return TermEffect(
            term=term,
            contrasts=self._contrasts({term: self.columns.contrasts(term)}),
            p=p,
            share=squares / self._total if self._total else None,
            aliases=aliases,
            varies_more=inflation > 1.0 + _ROUNDING,
        )

    def _squares(self, place: slice) -> float:
        own = self._coefficients[place]
        return float(own @ np.linalg.pinv(self._inverse[place, place], hermitian=True) @ own)

    def _contrasts(self, parts: Mapping[Term, Floats], *, mean: bool = False) -> tuple[Contrast, ...]:
        """Return estimates from the rows of weights of the coefficients of each term, and of the mean."""
        rows = np.zeros((len(next(iter(parts.values()))), len(self._coefficients)))
        rows[:, 0] = mean
        for term, weights in parts.items():
            rows[:, self._places[term]] = weights
        inflation, found = max(map(self._inflation, parts)), list[Contrast]()
        for row in rows:
            value, error, half = float(row @ self._coefficients), None, 0.0
            if self.error is not None:
                once = float((self._weights(row) ** 2).sum())
                error = math.sqrt(
                    max(float(row @ self._inverse @ row) * inflation, once) * self.error.variance
                )
                half = error * t_quantile(LEVEL, self.error.degrees)
            low, high = (None, None) if error is None else (value - half, value + half)
            found.append(Contrast(value=value, error=error, low=low, high=high))
        return tuple(found)

    def _weights(self, rows: Floats) -> Floats:
        """Return the weight of each trial in an estimate, or in several, from the weights of coefficients."""
        found = np.zeros((len(self.columns.firsts), *rows.shape[:-1]))
        np.add.at(found, self.columns.trials, self._model @ self._inverse @ rows.T)
        return found.T

    def _inflation(self, term: Term) -> float:
        """Return how many times larger a term's variance is than in the linear model; at least 1.

        It is larger where cells share trials. The variance of the effects is also estimated in two ways: from
        the effects of each seed, and from the noise of the cells that each effect compares (White 1980). The
        squared residuals are scaled up for their degrees of freedom.
        """
        if self.error is None:
            return 1.0
        place, effects = self._places[term], self.columns.effects(term)
        expected = np.diag(effects @ self._inverse[place, place] @ effects.T) * self.error.variance
        rows = np.zeros((len(effects), len(self._coefficients)))
        rows[:, place] = effects
        squares = self._weights(rows) ** 2
        own = [squares.sum(axis=1) * self.error.variance]
        if self.error.is_within_cells:
            raised = len(self.error.residuals) / self.error.degrees
            own.append(squares @ self.error.residuals**2 * raised)
            if self._by_seed is not None:
                alone = self.columns.places(self._terms, blocks=False)[term]
                own.append((self._by_seed[:, alone] @ effects.T).var(axis=0, ddof=1) / len(self._by_seed))
        return max(1.0, float((np.array(own) / expected).max()))


def _within_cells(columns: TermColumns, y: Floats) -> tuple[Floats, int] | None:
    """Subtract the mean of its cell and the effect of its seed from each value.

    The second result is the number of degrees of freedom of these values. Return None if it is below 1. The
    values are the least-squares residuals of a model of cell means and seeds. A trial of several cells counts
    once.
    """
    levels, y = np.array(list(columns.levels.values()))[:, columns.firsts], y[columns.firsts]
    cells = np.unique(levels, axis=1, return_inverse=True)[1].ravel()
    counts = np.bincount(cells)

    def centred(numbers: Floats) -> Floats:
        sums = np.zeros((len(counts), numbers.shape[1]))
        np.add.at(sums, cells, numbers)  # unlike `sums[cells] += numbers`, adds rows of the same cell
        return numbers - (sums / counts[:, None])[cells]

    blocks = centred(columns.blocks[columns.firsts])
    rank = matrix_rank(blocks) if blocks.shape[1] else 0
    degrees = len(y) - len(counts) - rank
    if degrees < 1:
        return None
    left = centred(y[:, None])[:, 0]
    if rank:
        left = left - blocks @ np.linalg.lstsq(blocks, left, rcond=None)[0]
    return left, degrees


def _residuals(y: Floats, model: Floats) -> tuple[Floats, int]:
    fitted = model @ np.linalg.lstsq(model, y, rcond=1e-8)[0]
    return y - fitted, len(y) - matrix_rank(model)


Floats = NDArray[np.float64]
"""Numbers in rows and columns."""

Term = tuple[str, ...]
"""A factor, or the two factors of an interaction."""

_TOLERANCE = 1e-8  # rounding error of codes of 0 and 1


class TermColumns:
    """The columns of each term in the design matrix of the model.

    `counts` are the numbers of levels of the factors. `mains` has a term for each factor, and `pairs` one for
    the interaction of each pair of factors. `blocks` are the columns of the seeds; a single seed has none.
    `firsts` has the first observation of each trial.
    """

    def __init__(
        self,
        *,
        levels: Mapping[str, Sequence[int]],
        seeds: Sequence[int],
        trials: Sequence[int] | None = None,
    ) -> None:
        """Code the observations.

        `levels` has, for each factor, the level index of every observation. A factor has at least two
        observed levels. `seeds` has the block index of every observation. `trials` has the number of its
        trial, by default one of its own. A trial is in several cells if its recipe does not use a factor.
        """
        self.levels, self.seeds = levels, seeds
        numbers = range(len(seeds)) if trials is None else trials
        _, self.firsts, self.trials = np.unique(numbers, return_index=True, return_inverse=True)
        self.counts = {name: max(numbers) + 1 for name, numbers in levels.items()}
        self.mains: tuple[Term, ...] = tuple((name,) for name in levels)
        self.pairs: tuple[Term, ...] = tuple(combinations(levels, 2))
        self.blocks = _coded(seeds, max(seeds) + 1)

    def of(self, term: Term) -> Floats:
        """Return the columns of a term in the model's matrix, of shape (observations, degrees of freedom)."""
        found = np.ones((len(self.seeds), 1))
        for name in term:
            coded = _coded(self.levels[name], self.counts[name])
            found = (found[:, :, None] * coded[:, None, :]).reshape(len(found), -1)
        return found

    def model(self, terms: Sequence[Term], *, blocks: bool = True) -> Floats:
        """Return the matrix of a model: a constant column, then the columns of the seeds and of each term."""
        first = [np.ones((len(self.seeds), 1)), *([self.blocks] if blocks else [])]
        return np.hstack([*first, *map(self.of, terms)])

    def places(self, terms: Sequence[Term], *, blocks: bool = True) -> dict[Term, slice]:
        """Map each term to its columns in the matrix that `model` returns."""
        start, found = 1 + (self.blocks.shape[1] if blocks else 0), dict[Term, slice]()
        for term in terms:
            found[term] = slice(start, start + self.degrees(term))
            start = found[term].stop
        return found

    def degrees(self, term: Term) -> int:
        """Return the number of columns of a term."""
        return int(np.prod([self.counts[name] - 1 for name in term]))

    def contrasts(self, term: Term) -> Floats:
        """Return the matrix that converts a term's coefficients to displayed differences.

        A factor of two levels has one contrast: the second level minus the first. Two such factors also have
        one contrast: the difference of one factor at the second level of the other factor, minus its
        difference at the first level. The contrasts of all other terms are the effects of each level, or of
        each combination of levels.
        """
        if all(self.counts[name] == 2 for name in term):
            # the codes are 1 and −1, so the second level minus the first is −2 times the coefficient
            return np.array([[(-2.0) ** len(term)]])
        return self.effects(term)

    def effects(self, term: Term) -> Floats:
        """Return the matrix that converts a term's coefficients to effects of levels.

        For two factors, the result is the effect of each combination of levels.
        """
        found: Floats = np.ones((1, 1))
        for name in term:
            count = self.counts[name]
            found = np.kron(found, _codes(count)).astype(np.float64)
        return found

    @cached_property
    def cells(self) -> TermColumns:
        """Return the columns for one observation of each observed combination of levels, with one seed."""
        found = sorted(set(zip(*self.levels.values(), strict=True)))
        levels = {name: [cell[at] for cell in found] for at, name in enumerate(self.levels)}
        return TermColumns(levels=levels, seeds=[0] * len(found))


def estimable_terms(columns: TermColumns, terms: Sequence[Term], among: Sequence[Term]) -> tuple[Term, ...]:
    """Return the terms that can be estimated in a model with all terms in `among`."""
    model, places = columns.model(among), columns.places(among)
    # a coefficient can be estimated if pinv(X) X maps it to itself, that is, if its row is the identity's
    kept = np.linalg.pinv(model, rcond=_TOLERANCE) @ model
    lost = np.abs(np.eye(len(kept)) - kept).max(axis=1)
    return tuple(term for term in terms if lost[places[term]].max() < _TOLERANCE * 100)


def partners(columns: TermColumns, term: Term) -> tuple[Term, ...]:
    """Return the terms that the observations cannot tell apart from `term`.

    Each of them is confounded with `term` on its own. Terms that are confounded with it only together are not
    returned.
    """
    cells = columns.cells
    own = [(name,) for name in term] if len(term) > 1 else []
    others = [each for each in cells.mains if each not in (*own, term)]
    found = tuple(each for each in others if _are_confounded(cells, own, term, each))
    if found or len(term) == 1:
        return found
    mains = list(cells.mains)
    return tuple(each for each in cells.pairs if each != term and _are_confounded(cells, mains, term, each))


def biases(
    columns: TermColumns, kept: Sequence[Term], left_out: Sequence[Term]
) -> dict[Term, tuple[Term, ...]]:
    """Map each term to the omitted terms that bias its estimate (Box and Hunter 1961)."""
    cells = columns.cells
    model, places = cells.model(kept), cells.places(kept)
    if not left_out:
        return dict.fromkeys(kept, ())
    fit = np.linalg.pinv(model, rcond=_TOLERANCE)
    # an omitted term biases the coefficients that its columns change in the fit (alias matrix)
    moved = {each: np.abs(fit @ cells.of(each)).max(axis=1) for each in left_out}
    return {
        term: tuple(each for each in left_out if moved[each][places[term]].max() > _TOLERANCE * 100)
        for term in kept
    }


def _are_confounded(cells: TermColumns, given: Sequence[Term], one: Term, other: Term) -> bool:
    """Return whether a linear model with the terms `given` cannot separate two further terms."""
    # the ranks of separable terms add up
    base = matrix_rank(cells.model(given))
    parts = sum(matrix_rank(cells.model([*given, each])) - base for each in (one, other))
    return matrix_rank(cells.model([*given, one, other])) - base < parts


def matrix_rank(model: Floats) -> int:
    """Return the rank of a model's matrix; 0 without columns."""
    return int(np.linalg.matrix_rank(model, tol=_TOLERANCE * max(model.shape))) if model.size else 0


def _coded(numbers: Sequence[int], count: int) -> Floats:
    """Return a factor's columns in the matrix of a linear model (sum coding).

    A column is 1 for its own level, −1 for the last level, and 0 for the others.
    """
    return _codes(count)[np.asarray(numbers)]


def _codes(count: int) -> Floats:
    return np.vstack([np.eye(count - 1), -np.ones((1, count - 1))])
