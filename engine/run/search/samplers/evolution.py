"""Regularised evolution (Real et al. 2019): the oldest point dies, and the best of a few is mutated.

With several objectives, points on the Pareto front survive first, and then points that are far apart. Points
beyond a limit lose to points within all limits. A point is a tree: below a choice are the dimensions of the
chosen option. A mutation of a dimension keeps all others; dimensions below a newly chosen option are drawn. A
proposal depends only on Optuna's points, in the order in which they ended, and on random numbers seeded by
these points. So a killed search continues as if it had not been killed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from random import Random
from typing import Any

import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from .....studies.searches.points import crowding, ranks
from .search_observations import ENDED, PerStudyCache, Proposals, at, draw, place_of, when_ended

Worth = tuple[float, ...]
"""The values by which points are compared; lower is better."""


class Population:
    """The population of the evolution: the newest search points that have ended.

    With several objectives, each point that ends beyond the population's size makes the worst point die, and
    the population has the survivors. Points are compared by their excess over the limits, then by their
    front, then by crowding distance (Deb et al. 2002). `proposals` counts points on any rung; `space` has the
    dimensions of all ended points.
    """

    def __init__(self, study: optuna.Study, size: int) -> None:
        self.study, self.space = study, dict[str, BaseDistribution]()
        self.proposals = Proposals(study)
        self.living: list[FrozenTrial] = []
        self._size = size
        self._signs = [-1.0 if each == StudyDirection.MAXIMIZE else 1.0 for each in study.directions]
        self._before = -1
        self._worths: list[Worth] = []  # values of the living points, computed when needed

    def learn(self, before: int) -> None:
        """Add newly ended Optuna trials to the population.

        Only trials with a number below `before` are added.
        """
        if before == self._before:
            return
        self._before = before
        for trial in sorted(self.proposals.read(before), key=when_ended):
            if trial.state in ENDED:
                self._add(trial)

    def worth(self, place: int) -> Worth:
        """Return the sort key of one member, lowest for the best.

        `place` is the index of the point in the population.
        """
        if not self._worths:
            self._worths = self._compare()
        return self._worths[place]

    def _add(self, trial: FrozenTrial) -> None:
        self.space |= trial.distributions
        self.living.append(trial)
        self._worths = []
        if len(self.living) > self._size:
            oldest_dies = len(self._signs) == 1
            del self.living[0 if oldest_dies else max(range(len(self.living)), key=self.worth)]
            self._worths = []

    def _compare(self) -> list[Worth]:
        """Return a sort key for each member, lowest for the best.

        A key has the distance beyond the limits, and then the loss or, with several objectives, the front
        and the crowding distance.
        """
        excess = [sum(max(0.0, each) for each in trial.constraints.values()) for trial in self.living]
        losses = [self._losses(trial) for trial in self.living]
        if len(self._signs) == 1:
            return [(over, *loss) for over, loss in zip(excess, losses, strict=True)]
        fronts: list[int] = ranks(losses)
        found: list[Worth] = [()] * len(losses)
        for rank in set(fronts):
            places = [place for place, each in enumerate(fronts) if each == rank]
            for place, room in zip(places, crowding([losses[each] for each in places]), strict=True):
                found[place] = (excess[place], rank, -room)
        return found

    def _losses(self, trial: FrozenTrial) -> tuple[float, ...]:
        """Return the values of a point's objectives, signed so that lower is better.

        For a pruned point they are infinite.
        """
        if trial.state != TrialState.COMPLETE or trial.values is None:
            return (math.inf,) * len(self._signs)
        return tuple(sign * each for sign, each in zip(self._signs, trial.values, strict=True))


CROSSOVER = 0.25
"""The share of proposals by crossover of two parents."""

STEP = 0.15
"""The standard deviation of a mutation of a number, relative to its range or its logarithmic range."""

TRIES_PER_CHANGE = 20
"""After this many proposals in a row of known points, a mutation changes one more dimension."""

_MAX_UNORDERED = 4
"""With at most this many whole numbers, a mutation draws any other one; with more, one nearby."""


class EvolutionSampler(optuna.samplers.BaseSampler):
    """Sampler that mutates the best of a few points of the population.

    These are `sample` points, drawn at random. The first `population` points of a search are random. Pruned
    points belong to the population, but never win. Failed points do not belong to it.
    """

    def __init__(self, *, seed: int, population: int, sample: int) -> None:
        self._seed, self._population, self._sample = seed, population, sample
        self._known = PerStudyCache(lambda shown: Population(shown, population))

    def infer_relative_search_space(
        self, study: optuna.Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        return dict(self._population_before(study, trial).space)

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        known = self._population_before(study, trial)
        if not known.living or known.proposals.begun < self._population:
            return {}
        tries = known.proposals.tries
        rng = self._random(known.proposals.begun, tries)
        values = dict(self._parent(known, rng).params)
        if rng.random() < CROSSOVER:
            values = cross(values, self._parent(known, rng).params, rng)
        changes = PointChanges(search_space)
        for _ in range(1 + tries // TRIES_PER_CHANGE):
            values = changes.of(values, rng)
        return values

    def sample_independent(
        self, study: optuna.Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:  # noqa: ANN401 -- as Optuna has it
        known = self._population_before(study, trial)
        begun, tries = known.proposals.begun, known.proposals.tries
        return draw(param_distribution, self._random(begun, tries, param_name))

    def _population_before(self, study: optuna.Study, trial: FrozenTrial) -> Population:
        known = self._known.of(study)
        known.learn(trial.number)
        return known

    def _parent(self, known: Population, rng: Random) -> FrozenTrial:
        drawn = rng.sample(range(len(known.living)), min(self._sample, len(known.living)))
        return known.living[min(drawn, key=known.worth)]

    def _random(self, *key: object) -> Random:
        return Random(" ".join(map(str, (self._seed, *key))))


def cross(first: Mapping[str, Any], second: Mapping[str, Any], rng: Random) -> dict[str, Any]:
    """Cross two search points: each value comes from either parent.

    A value that only one parent has is used if the option above it is chosen.
    """
    # sorted, so that the order of the names does not change what is drawn
    shared = [name for name in sorted(first) if name in second]
    both = {name: first[name] if rng.random() < 0.5 else second[name] for name in shared}
    return {**second, **first, **both}


class PointChanges:
    """Mutations of search points; each changes the value of one dimension."""

    def __init__(self, space: Mapping[str, BaseDistribution]) -> None:
        self._neighbours = {
            name: _neighbours(space[name]) for name in sorted(space) if not space[name].single()
        }

    def of(self, values: Mapping[str, Any], rng: Random) -> dict[str, Any]:
        """Mutate one dimension of a point. If no dimension can change, return the same values."""
        free = [name for name in self._neighbours if name in values]
        if not free:
            return dict(values)
        name = rng.choice(free)
        return {**values, name: self._neighbours[name](values[name], rng)}


def _neighbours(distribution: BaseDistribution) -> Callable[[Any, Random], Any]:
    """Return a function that changes the value of one dimension.

    It returns another option or, for a range of numbers, a number near the old one. The distance to the old
    number is normally distributed. The step is on the logarithmic scale if the range has one.
    """
    if isinstance(distribution, CategoricalDistribution):
        return partial(_another, distribution.choices)
    assert isinstance(distribution, IntDistribution | FloatDistribution), f"no search has {distribution!r}"
    if isinstance(distribution, IntDistribution):
        numbers = range(distribution.low, distribution.high + 1, distribution.step)
        if len(numbers) <= _MAX_UNORDERED:
            return partial(_another, numbers)
    return partial(_nearby, distribution)


def _another(options: Sequence[Any], value: Any, rng: Random) -> Any:  # noqa: ANN401 -- as above
    return rng.choice([each for each in options if each != value])


def _nearby(numbers: IntDistribution | FloatDistribution, value: float, rng: Random) -> float:
    place, found = place_of(numbers, value), value
    # rounding to a step may give the old number again
    while found == value:
        found = at(numbers, _reflected(place + rng.gauss(0, STEP)))
    return found


def _reflected(place: float) -> float:
    # reflect at both ends: clipping would make the ends likelier than all other numbers
    inside = place % 2
    return 2 - inside if inside > 1 else inside
