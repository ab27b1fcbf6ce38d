"""The tree-structured Parzen estimator (Bergstra et al. 2011) of one objective, with the kernels of Optuna's.

Of some values of dimensions that the same points take, which are likely among the good points, those are
proposed that are least likely among the others. The good ones are the best tenth, at most 25. Of many points
the best and the last ones are known, so that asking takes no longer after thousands. All that is known is
what Optuna has been told, in the order in which points ended, and each proposal has random numbers of its
own, by the points so far: a search of one worker which is killed goes on as it would have.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from heapq import nlargest
from random import Random
from typing import Any

import numpy as np
import optuna
from numpy.typing import NDArray
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from optuna.trial import FrozenTrial

from ......grammar.nodes import Dimension
from ......studies.schema.settings import Level
from ......studies.study import Study
from ..numbers import draw
from ..optuna_space import WholePointSampler
from ..told_points import BestAndLast, EndedPoint, KnownOfShown, ToldPoints, whole_study
from .parzen import ParzenEstimator

Numbers = NDArray[np.float64]
Worth = tuple[float, tuple[bool, int, float]]

DRAWN = 10
"""So many points are drawn before any is chosen by what is known."""

GOOD, MOST_GOOD = 0.1, 25
"""The share of the points that are good, and how many at most."""

CANDIDATES = 24
"""Of so many values of dimensions that are chosen together the best ones are taken."""

BEST, LAST, RENEWAL = 64, 192, 64
"""Of more points so many of the best are known and the last ones, and up to so many more."""


class TpeSampler(WholePointSampler):
    """Proposes the points of the search of one study.

    `multivariate` chooses dimensions together, those alone that all points take unless they are in a `group`
    with others that the same points take. With a `constant_liar` points in training count as not good.
    """

    def __init__(
        self, study: Study, *, seed: int, multivariate: bool, group: bool, constant_liar: bool
    ) -> None:
        super().__init__(study)
        self._choose, self._seed, self._constant_liar = study.choose, seed, constant_liar
        self._multivariate, self._group = multivariate, group
        self._axes = {name: axis for axis, name in enumerate(self._space)}
        self._known = KnownOfShown(lambda shown: Members(ToldPoints(shown), self._space))

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
        groups = known.groups(multivariate=self._multivariate, group=self._group)
        good, others = known.split(with_training=self._constant_liar)
        generator, values = np.random.default_rng(rng.getrandbits(64)), dict[str, Level]()

        def value(name: str, dimension: Dimension) -> Level:
            del dimension
            if name not in groups:
                return draw(self._space[name], rng)
            if name not in values:
                values.update(self._likely(groups[name], good, others, generator))
            return values[name]

        return self._choose(value)

    def sample_independent(
        self, study: optuna.Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:  # noqa: ANN401 -- as Optuna has it
        """A value that no proposal has, of a point that is partly given: drawn evenly."""
        del study
        return draw(param_distribution, Random(f"{self._seed} {trial.number} {param_name}"))

    def _likely(
        self, names: Sequence[str], good: Numbers, others: Numbers, rng: np.random.Generator
    ) -> dict[str, Level]:
        """Values of dimensions that are likelier among the good points than among the others."""
        space, axes = [self._space[name] for name in names], [self._axes[name] for name in names]
        taken = (rows[:, axes] for rows in (good, others))
        likely, unlikely = (ParzenEstimator(space, rows[~np.isnan(rows).any(1)]) for rows in taken)
        candidates = likely.draw(CANDIDATES, rng)
        chosen = candidates[np.argmax(likely.density(candidates) / unlikely.density(candidates))]
        return {
            name: _value(each, number)
            for name, each, number in zip(names, space, chosen.tolist(), strict=True)
        }


class Members:
    """The points that are learnt from, with a row of numbers for each, NaN where it lacks a dimension."""

    def __init__(self, told: ToldPoints, space: Mapping[str, BaseDistribution]) -> None:
        self.told, self._space = told, space
        self._window = BestAndLast(best=BEST, last=LAST)
        self._worths: list[Worth] = []
        self._rows = np.empty((0, len(space)))
        self._read = self._renewed = 0
        self._forms = dict[frozenset[str], None]()  # the dimensions that points take

    def read(self, before: int) -> None:
        """Take note of what is new among the trials of lower numbers."""
        self.told.read(before)
        ended = self.told.ended
        self._forms |= dict.fromkeys(frozenset(each.values) for each in ended[self._read :])
        renewed = len(ended) // RENEWAL * RENEWAL
        if renewed != self._renewed:
            self._worths, self._rows = [], self._rows[:0]
            self._add(self._window.of(ended[:renewed]))
            self._read = self._renewed = renewed
        self._add(ended[self._read :])
        self._read = len(ended)

    def groups(self, *, multivariate: bool, group: bool) -> dict[str, list[str]]:
        """By each dimension that points have those that are chosen with it, itself among them, in order."""
        found: dict[object, list[str]] = {}
        for name, dimension in self._space.items():
            taken = tuple(name in form for form in self._forms)
            if any(taken) and not dimension.single():
                is_alone = not multivariate or not (group or all(taken))
                found.setdefault(name if is_alone else taken, []).append(name)
        return {name: names for names in found.values() for name in names}

    def split(self, *, with_training: bool) -> tuple[Numbers, Numbers]:
        """The rows of the good points and of the others, each in the order in which they ended."""
        count = min(math.ceil(GOOD * len(self.told.ended)), MOST_GOOD)
        is_good = np.zeros(len(self._worths), dtype=bool)
        is_good[nlargest(count, range(len(self._worths)), key=self._worths.__getitem__)] = True
        others = self._rows[~is_good]
        if with_training and self.told.training:
            others = np.concatenate([others, self._rows_of(self.told.training)])
        return self._rows[is_good], others

    def _add(self, points: Sequence[EndedPoint]) -> None:
        """Learn from more points."""
        if points:
            self._worths += [each.worth for each in points]
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
        )


def _value(dimension: BaseDistribution, number: float) -> Level:
    """What a number stands for."""
    if isinstance(dimension, CategoricalDistribution):
        found = dimension.choices[int(number)]
        assert found is not None, "no option of a choice is None"
        return found
    return int(number) if isinstance(dimension, IntDistribution) else number
