"""Regularised evolution (Real et al. 2019).

The oldest point dies, and the best of a few is changed a little. With several objectives the points on the
front live, and of the others those that are far apart; points beyond a limit lose to those within all
limits.

A point is a tree: below a choice are the dimensions of the option taken. Changing a dimension keeps all
others; the dimensions below a newly taken option are drawn. A proposal depends only on Optuna's points, in
the order in which they ended, and on random numbers seeded by the points so far: a search that was killed
continues as it would have.
"""

from __future__ import annotations

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
from optuna.trial import FrozenTrial

from .numbers import at, draw, place_of
from .population import Population
from .told_points import KnownOfStudy

CROSSOVER = 0.25
"""The share of points that have two parents."""

STEP = 0.15
"""The standard deviation of a step of a number, as a share of its range, or of its range in logarithms."""

TRIES_PER_CHANGE = 20
"""After so many proposals in a row that are known already, one dimension more is changed."""

_MAX_UNORDERED = 4
"""Of so many whole numbers another one is drawn evenly; of more one nearby."""


class EvolutionSampler(optuna.samplers.BaseSampler):
    """Draws the first `population` points; then changes the best of `sample` that are drawn from the last.

    Points that were given up are members of the population that never win; failed ones are in none.
    """

    def __init__(self, *, seed: int, population: int, sample: int) -> None:
        self._seed, self._population, self._sample = seed, population, sample
        self._known = KnownOfStudy(lambda shown: Population(shown, population))

    def infer_relative_search_space(
        self, study: optuna.Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """Return the dimensions of all points so far."""
        return dict(self._population_before(study, trial).space)

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Return the values of a changed point; nothing for the first points, whose values are all drawn."""
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
        """Return a uniformly drawn value for a dimension that no parent has."""
        known = self._population_before(study, trial)
        begun, tries = known.proposals.begun, known.proposals.tries
        return draw(param_distribution, self._random(begun, tries, param_name))

    def _population_before(self, study: optuna.Study, trial: FrozenTrial) -> Population:
        """Return the population at the time when a point is requested."""
        known = self._known.of(study)
        known.learn(trial.number)
        return known

    def _parent(self, known: Population, rng: Random) -> FrozenTrial:
        """Return the best of a few points that live."""
        drawn = rng.sample(range(len(known.living)), min(self._sample, len(known.living)))
        return known.living[min(drawn, key=known.worth)]

    def _random(self, *key: object) -> Random:
        """Random numbers that depend on the seed and on these alone."""
        return Random(" ".join(map(str, (self._seed, *key))))


def cross(first: Mapping[str, Any], second: Mapping[str, Any], rng: Random) -> dict[str, Any]:
    """Return each value from one parent or the other.

    A value that only one parent has is used where its option is taken.
    """
    shared = [name for name in sorted(first) if name in second]
    both = {name: first[name] if rng.random() < 0.5 else second[name] for name in shared}
    return {**second, **first, **both}


class PointChanges:
    """Changes points of a space, each in one dimension."""

    def __init__(self, space: Mapping[str, BaseDistribution]) -> None:
        self._neighbours = {
            name: _neighbours(space[name]) for name in sorted(space) if not space[name].single()
        }

    def of(self, values: Mapping[str, Any], rng: Random) -> dict[str, Any]:
        """Return the values with one dimension changed; unchanged if none has another value."""
        free = [name for name in self._neighbours if name in values]
        if not free:
            return dict(values)
        name = rng.choice(free)
        return {**values, name: self._neighbours[name](values[name], rng)}


def _neighbours(distribution: BaseDistribution) -> Callable[[Any, Random], Any]:
    """Return a function that draws another value.

    It draws any option, or a number by a normal step of it or of its logarithm.
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
    """Any other one of some options."""
    return rng.choice([each for each in options if each != value])


def _nearby(numbers: IntDistribution | FloatDistribution, value: float, rng: Random) -> float:
    """Another number, by a normal step."""
    place, found = place_of(numbers, value), value
    while found == value:
        found = at(numbers, _reflected(place + rng.gauss(0, STEP)))
    return found


def _reflected(place: float) -> float:
    """Return a place beyond an end of the range reflected into it."""
    inside = place % 2
    return 2 - inside if inside > 1 else inside
