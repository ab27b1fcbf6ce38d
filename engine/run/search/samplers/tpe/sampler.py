"""The tree-structured Parzen estimator (Bergstra et al. 2011) of one objective, with the kernels of Optuna's.

Whole points are drawn that are likely among the good ones; of those that are new the one is proposed that is
most likelier among the good points than among the others. The good ones are the best tenth, at most 25. Of
many points the best and the last ones are known, so that asking takes no longer after thousands. All that is
known is what Optuna has been told, in the order in which points ended, and each proposal has random numbers
of its own, by the points so far: a search of one worker which is killed goes on as it would have.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import numpy as np
import optuna
from numpy.typing import NDArray
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial

from ......studies.study import Study
from ..numbers import draw
from ..optuna_space import WholePointSampler
from ..told_points import BestAndLast, EndedPoint, KnownOfShown, ToldPoints, point_key, whole_study
from .forms import Forms, level_of
from .parzen import ParzenEstimator

Numbers = NDArray[np.float64]
Rank = tuple[tuple[float, tuple[bool, int, float]], int]

DRAWN = 10
"""So many points are drawn before any is chosen by what is known."""

GOOD, MOST_GOOD = 0.1, 25
"""The share of the points that are good, and how many at most."""

CANDIDATES = 24
"""Of so many points the best one is taken that is new."""

BEST, LAST, RENEWAL = 64, 192, 64
"""Of more points so many of the best are known and the last ones, and up to so many more."""


class TpeSampler(WholePointSampler):
    """Proposes the points of the search of one study.

    `multivariate` chooses dimensions together: those that all points take, with `group` all of them; the
    others each alone. With a `constant_liar` points in training count as not good.
    """

    def __init__(
        self, study: Study, *, seed: int, multivariate: bool, group: bool, constant_liar: bool
    ) -> None:
        super().__init__(study)
        self._choose, self._seed, self._constant_liar = study.choose, seed, constant_liar
        self._multivariate, self._group = multivariate, group
        self._forms = Forms(study, self._space)
        self._known = KnownOfShown(lambda shown: Members(ToldPoints(shown), self._space))
        self._lowest = [float(getattr(each, "low", 0)) for each in self._space.values()]
        self._densities = dict[tuple[int, ...], tuple[ParzenEstimator, ParzenEstimator]]()

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """The values of a point that is likely to be good; of a drawn one at the beginning."""
        del search_space
        known = self._known.of(whole_study(study))
        known.read(before=trial.number)
        key = f"tpe {self._seed} {known.told.begun} {known.told.tries}"
        rng = Random(key)
        if len(known.told.ended) < DRAWN:
            return self._choose(lambda name, _: draw(self._space[name], rng))
        generator = np.random.default_rng(rng.getrandbits(64))
        rows = self._candidates(known, generator)
        points = (self._values(row) for row in rows)
        new = (values for values in points if point_key(values) not in known.told)
        return next(new, self._values(rows[0]))

    def sample_independent(
        self, study: optuna.Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:  # noqa: ANN401 -- as Optuna has it
        """A value that no proposal has, of a point that is partly given: drawn evenly."""
        del study
        return draw(param_distribution, Random(f"{self._seed} {trial.number} {param_name}"))

    def _candidates(self, known: Members, rng: np.random.Generator) -> Numbers:
        """Points that are likely among the good ones, a row for each, those first that are likelier there."""
        good, others = known.split(with_training=self._constant_liar)
        rows, ratios = np.tile(self._lowest, (CANDIDATES, 1)), np.ones(CANDIDATES)
        parts = known.parts(multivariate=self._multivariate, group=self._group)
        densities = [self._densities_of(axes, good, others) for axes in parts]
        for axes, (likely, _) in zip(parts, densities, strict=True):
            rows[:, axes] = likely.draw(CANDIDATES, rng)
        rows[[~self._forms.taken(row) for row in rows.tolist()]] = math.nan
        for axes, (likely, unlikely) in zip(parts, densities, strict=True):
            ratios *= likely.density(rows[:, axes]) / unlikely.density(rows[:, axes])
        return rows[np.argsort(-ratios, kind="stable")]

    def _densities_of(
        self, axes: tuple[int, ...], good: Numbers, others: Numbers
    ) -> tuple[ParzenEstimator, ParzenEstimator]:
        """How dense good points and others are in some dimensions."""
        if axes not in self._densities:
            space = [each for axis, each in enumerate(self._space.values()) if axis in axes]
            self._densities[axes] = ParzenEstimator(space), ParzenEstimator(space)
        for density, rows in zip(self._densities[axes], (good, others), strict=True):
            density.learn(rows[:, axes])
        return self._densities[axes]

    def _values(self, row: Numbers) -> dict[str, Any]:
        """What a row stands for."""
        numbers = zip(self._space.items(), row.tolist(), strict=True)
        return {name: level_of(each, number) for (name, each), number in numbers if not math.isnan(number)}


class Members:
    """The points that are learnt from, with a row of numbers for each, NaN where it lacks a dimension."""

    def __init__(self, told: ToldPoints, space: Mapping[str, BaseDistribution]) -> None:
        self.told, self._space = told, space
        self._window = BestAndLast(best=BEST, last=LAST)
        self._ranks: list[Rank] = []  # of the points, by their places among the rows, the best last
        self._rows = np.empty((0, len(space)))
        self._read = self._renewed = 0
        self._always = set(space)  # the dimensions that all points take

    def read(self, before: int) -> None:
        """Take note of what is new among the trials of lower numbers."""
        self.told.read(before)
        ended = self.told.ended
        for each in ended[self._read :]:
            self._always &= each.values.keys()
        renewed = len(ended) // RENEWAL * RENEWAL
        if renewed != self._renewed:
            self._ranks, self._rows = [], self._rows[:0]
            self._add(self._window.of(ended[:renewed]))
            self._read = self._renewed = renewed
        self._add(ended[self._read :])
        self._read = len(ended)

    def parts(self, *, multivariate: bool, group: bool) -> list[tuple[int, ...]]:
        """The dimensions that are chosen together, by their places; what has one value is in none."""
        open_ = [(axis, name) for axis, (name, each) in enumerate(self._space.items()) if not each.single()]
        together = [axis for axis, name in open_ if multivariate and (group or name in self._always)]
        alone = [(axis,) for axis, _ in open_ if axis not in together]
        return [tuple(together), *alone] if together else alone

    def split(self, *, with_training: bool) -> tuple[Numbers, Numbers]:
        """The rows of the good points and of the others, each in the order in which they ended.

        Among the others those of good points are empty, so that all others stay where they are.
        """
        count = min(math.ceil(GOOD * len(self.told.ended)), MOST_GOOD)
        good = sorted(-place for _, place in self._ranks[-count:])
        training = self.told.training if with_training else []
        others = np.concatenate([self._rows, self._rows_of(training)])
        others[good] = math.nan
        return self._rows[good], others

    def _add(self, points: Sequence[EndedPoint]) -> None:
        """Learn from more points."""
        for each in points:
            insort(self._ranks, (each.worth, -len(self._ranks)))  # of equal ones the first is better
        if points:
            self._rows = np.concatenate([self._rows, self._rows_of([each.values for each in points])])

    def _rows_of(self, points: Sequence[Mapping[str, Any]]) -> Numbers:
        """The numbers that stand for points' values."""
        return np.array(
            [
                [
                    each.to_internal_repr(values[name]) if name in values else math.nan
                    for name, each in self._space.items()
                ]
                for values in points
            ]
        ).reshape(-1, len(self._space))
