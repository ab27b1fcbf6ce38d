"""Bayesian optimisation over recipes: a Gaussian process on their trees proposes what may be better.

As in NAS-BOWL (Ru et al. 2021): points are alike as the labels of Weisfeiler and Lehman of their trees are,
and candidates are changed ones of the best. Values count by their ranks: one that is far off bends nothing.
All that is known is what Optuna has been told, in the order in which points ended: a search of one worker
which is killed goes on as it would have.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from random import Random
from statistics import NormalDist
from typing import Any

import numpy as np
import optuna
from numpy.typing import NDArray
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial
from scipy.special import ndtri

from .....grammar.nodes import Dimension
from .....studies.schema.settings import Level
from .....studies.study import Study
from .evolution import change, cross
from .gaussian_process import GaussianProcess, likeliest, settings_grid, squared_distances
from .numbers import draw
from .optuna_space import WholePointSampler
from .prior import LASTING, Prior
from .recipe_features import PLACES, RecipeFeatures
from .told_points import BestAndLast, EndedPoint, KnownOfShown, ToldPoints, point_key

Numbers = NDArray[np.float64]
Values = dict[str, Level]

DRAWN = 10
"""So many points are drawn before any is chosen by what is known."""

PARENTS, CHILDREN, STRANGERS = 8, 24, 8
"""Of how many of the best points how many changed ones are candidates, and how many that are drawn."""

GRANDCHILDREN = 16
"""How many changed ones of the best candidates are candidates as well."""

CROSSOVER, ANOTHER_CHANGE = 0.25, 0.3
"""The share of candidates that have two parents, and of those that are changed once more."""

WINDOW, KEPT = 192, 64
"""Of more points so many are known to the process, these the best and the others the last."""

GROWTH, RENEWAL = 0.25, 64
"""The process is fitted anew when there are more ended points by that share, or by so many."""

LENGTHS, NOISES = (0.5, 1.0, 2.0, 4.0), (1e-2, 1e-1)
"""What is tried: lengths as multiples of the points' median distance, and the noise's share of the signal."""

_NORMAL = NormalDist()


class TreeSampler(WholePointSampler):
    """Proposes the points of the search of one study, which has one objective.

    With a belief in values expected improvements are multiplied by how much likelier it makes a point, to the
    power of 10 / n after n points (πBO, Hvarfner et al. 2022), and what is drawn is drawn by it.
    """

    def __init__(self, study: Study, *, seed: int, prior: Prior | None = None) -> None:
        super().__init__(study)
        self._choose, self._seed, self._prior = study.choose, seed, prior
        features = RecipeFeatures(study)
        self._beliefs = KnownOfShown(lambda shown: Beliefs(features, ToldPoints(shown)))

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """The values of the candidate from which most improvement is expected."""
        del search_space
        beliefs = self._beliefs.of(study)
        told = beliefs.told
        told.read(before=trial.number)
        rng = Random(f"{self._seed} {told.begun} {told.tries}")
        drawn = self._stranger(told.begun, rng)
        return drawn if len(told.ended) < DRAWN else self._best_candidate(beliefs, rng) or drawn

    def sample_independent(
        self, study: optuna.Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:  # noqa: ANN401 -- as Optuna has it
        """A value that no proposal has, of a point that is partly given: drawn evenly."""
        del study
        return draw(param_distribution, Random(f"{self._seed} {trial.number} {param_name}"))

    def _best_candidate(self, beliefs: Beliefs, rng: Random) -> Values | None:
        """The candidate from which most improvement is expected; None if all have been proposed."""
        beliefs.update()
        best = beliefs.best()
        points = [self._child(best, rng) for _ in range(CHILDREN)]
        points += [self._stranger(beliefs.told.begun, rng) for _ in range(STRANGERS)]
        promising = beliefs.ranked(points, self._likelihood(beliefs))
        children = [self._child(promising[:PARENTS] or best, rng) for _ in range(GRANDCHILDREN)]
        return next(iter(beliefs.ranked([*promising[:1], *children], self._likelihood(beliefs))), None)

    def _likelihood(self, beliefs: Beliefs) -> Callable[[Values], float]:
        """What improvements are multiplied by."""
        prior, power = self._prior, LASTING / max(1, beliefs.told.begun)
        if prior is None:
            return lambda _: 1.0
        return lambda values: math.exp(power * prior.log_ratio(values, self._space))

    def _stranger(self, begun: int, rng: Random) -> Values:
        """A point that is drawn, maybe by the belief."""
        if self._prior is None or rng.random() >= self._prior.trust(begun):
            return self._completed({}, rng)
        prior = self._prior
        return self._choose(lambda name, _: prior.draw(name, self._space[name], rng))

    def _child(self, parents: Sequence[Values], rng: Random) -> Values:
        """A changed one of the parents."""
        values: Mapping[str, Level] = rng.choice(parents)
        if rng.random() < CROSSOVER:
            values = cross(values, rng.choice(parents), rng)
        values = change(values, self._space, rng)
        while rng.random() < ANOTHER_CHANGE:
            values = change(values, self._space, rng)
        return self._completed(values, rng)

    def _completed(self, values: Mapping[str, Level], rng: Random) -> Values:
        """The point of these values: what it does not take left out, what it lacks drawn."""

        def value(name: str, dimension: Dimension) -> Level:
            del dimension
            return values[name] if name in values else draw(self._space[name], rng)

        return self._choose(value)


class Beliefs:
    """What is expected of points by those that have ended, those in training being taken as middling."""

    def __init__(self, features: RecipeFeatures, told: ToldPoints) -> None:
        self.told, self._features = told, features
        self._renewed, self._read = 0, 0
        self._members: list[EndedPoint] = []
        self._window = BestAndLast(best=KEPT, last=WINDOW - KEPT)
        self._process: GaussianProcess
        self._in_training = 0  # so many of the process's last points
        self._values = np.empty(0)
        self._highest = 0.0

    def best(self) -> list[Values]:
        """The best points that are known, the best one first."""
        ranked = sorted(self._members, key=lambda each: each.goodness, reverse=True)
        return [each.values for each in ranked[:PARENTS]]

    def update(self) -> None:
        """Learn from the points that have ended since the last time, and of those that are in training."""
        told, renewed = self.told, last_renewal(len(self.told.ended))
        if renewed != self._renewed:
            self._read = self._renewed = renewed
            self._members = self._window.of(told.ended[: self._read])
            self._process = self._fitted()
        else:
            self._process.forget_last(self._in_training)
        for each in told.ended[self._read :]:
            self._members.append(each)
            self._process.add(self._groups([each.values]))
        self._read = len(told.ended)
        scores = normal_scores([each.goodness for each in self._members])
        self._highest = float(self._process.smooth(scores).max())
        for values in told.training:
            self._process.add(self._groups([values]))
        self._in_training = len(told.training)
        self._values = np.concatenate([scores, np.zeros(self._in_training)])

    def ranked(self, points: Sequence[Values], likelihood: Callable[[Values], float]) -> list[Values]:
        """Those that have not been proposed, each once, those of which most improvement is expected first."""
        known = {point_key(each): each for each in points}
        new = [each for key, each in known.items() if key not in self.told]
        if not new:
            return []
        means, deviations = self._process.predict(self._groups(new), self._values)
        expected = [_improvement(*each) for each in zip(means - self._highest, deviations, strict=True)]
        expected = [gain * likelihood(point) for gain, point in zip(expected, new, strict=True)]
        return [new[place] for place in sorted(range(len(new)), key=expected.__getitem__, reverse=True)]

    def _fitted(self) -> GaussianProcess:
        """The process of the members under the settings under which their values are likeliest."""
        groups = self._groups([each.values for each in self._members])
        middles = [math.sqrt(float(np.median(squared_distances(each, each))) or 1.0) for each in groups]
        grid = settings_grid([[factor * middle for factor in LENGTHS] for middle in middles], NOISES)
        scores = normal_scores([each.goodness for each in self._members])
        return GaussianProcess(groups, likeliest(groups, scores, grid))

    def _groups(self, points: Sequence[Mapping[str, Any]]) -> list[Numbers]:
        """The numbers of points' trees and those of their values, a row for each."""
        rows = self._features.of(points)
        return [rows[:, :PLACES], rows[:, PLACES:]]


def last_renewal(ended: int) -> int:
    """After how many of the ended points the process was fitted last."""
    found = DRAWN
    while (after := found + min(math.ceil(found * GROWTH), RENEWAL)) <= ended:
        found = after
    return found


def normal_scores(ranked: Sequence[tuple[bool, int, float]]) -> Numbers:
    """The quantile of the normal distribution at each one's rank; equal ones share theirs."""
    numbers = np.array(ranked, dtype=np.float64)
    order = np.lexsort(numbers.T[::-1])
    rises = (numbers[order][1:] != numbers[order][:-1]).any(1)
    begins = np.flatnonzero(np.concatenate([[True], rises]))
    ends = np.append(begins[1:], len(numbers))
    found = np.empty(len(numbers))
    found[order] = np.repeat(ndtri((begins + ends) / 2 / len(numbers)), ends - begins)
    return found


def _improvement(ahead: float, deviation: float) -> float:
    """The expected improvement of what lies so far ahead of the best, with this deviation."""
    distance = ahead / deviation
    return ahead * _NORMAL.cdf(distance) + deviation * _NORMAL.pdf(distance)
