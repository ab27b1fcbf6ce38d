"""Regularised evolution (Real et al. 2019): the oldest point dies, and the best of a few is mutated.

With several objectives, points on the Pareto front survive first, and then points that are far apart. Points
beyond a limit lose to points within all limits. A point is a tree: below a choice are the dimensions of the
chosen option. A mutation of a dimension keeps all others; dimensions below a newly chosen option are drawn. A
proposal depends only on the ended points, in the order in which they ended, and on random numbers seeded by
the number of begun points. So a killed search continues as if it had not been killed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.trial import TrialState

from .....grammar.nodes import Dimension
from .....studies.resolve.search_source import SearchSource
from .....studies.schema.settings import Level
from .....studies.searches.points import crowding, ranks
from .search_observations import Proposals, Values, at, distribution, draw, place_of

if TYPE_CHECKING:
    from ..stored_points import PointEnd

Worth = tuple[float, ...]
"""The values by which points are compared; lower is better."""

CROSSOVER = 0.25
"""The share of proposals by crossover of two parents."""

STEP = 0.15
"""The standard deviation of a mutation of a number, relative to its range or its logarithmic range."""

TRIES_PER_CHANGE = 20
"""After this many proposals in a row of known points, a mutation changes one more dimension."""

_MAX_UNORDERED = 4
"""With at most this many whole numbers, a mutation draws any other one; with more, one nearby."""


class EvolutionSampler:
    """Sampler that mutates the best of a few points of the population.

    These are `sample` points, drawn at random. The first `population` points of a search are random. The
    population has the newest points that have ended. With several objectives, each point that ends beyond the
    population's size makes the worst point die, and the population has the survivors. Points are compared by
    their excess over the limits, then by their front, then by crowding distance (Deb et al. 2002). Pruned
    points belong to the population, but never win. Failed points do not belong to it.
    """

    def __init__(self, search: SearchSource, *, seed: int, population: int, sample: int) -> None:
        self._choose, self._seed, self._size, self._sample = search.choose, seed, population, sample
        self._space = {name: distribution(each) for name, each in search.dimensions.items()}
        self._changes = PointChanges(self._space)
        self._objectives = search.settings.objectives
        self._living: list[tuple[Values, PointEnd]] = []
        self._worths: list[Worth] = []  # of the living points, computed when needed

    def learn(self, values: Values, end: PointEnd) -> None:
        if end.state == TrialState.FAIL:
            return
        self._living.append((values, end))
        self._worths = []
        if len(self._living) > self._size:
            oldest_dies = len(self._objectives) == 1
            del self._living[0 if oldest_dies else max(range(len(self._living)), key=self._worth)]
            self._worths = []

    def propose(self, proposals: Proposals) -> Values:
        rng, values = proposals.random(self._seed), Values()
        if self._living and proposals.begun >= self._size:
            values = self._parent(rng)
            if rng.random() < CROSSOVER:
                values = cross(values, self._parent(rng), rng)
            for _ in range(1 + len(proposals.rejected) // TRIES_PER_CHANGE):
                values = self._changes.of(values, rng)

        def value(name: str, dimension: Dimension) -> Level:
            if name in values:
                return values[name]
            return draw(self._space[name], proposals.random(self._seed, name))

        return self._choose(value)

    def _parent(self, rng: Random) -> Values:
        drawn = rng.sample(range(len(self._living)), min(self._sample, len(self._living)))
        return self._living[min(drawn, key=self._worth)][0]

    def _worth(self, place: int) -> Worth:
        """Return the sort key of a member of the population, lowest for the best."""
        if not self._worths:
            self._worths = self._compare()
        return self._worths[place]

    def _compare(self) -> list[Worth]:
        """Return a sort key for each member: excess over limits, then loss, or front and crowding."""
        ends = [end for _, end in self._living]
        excess = [sum(max(0.0, each) for each in end.excess.values()) for end in ends]
        losses = [self._losses(end) for end in ends]
        if len(self._objectives) == 1:
            return [(over, *loss) for over, loss in zip(excess, losses, strict=True)]
        fronts: list[int] = ranks(losses)
        found: list[Worth] = [()] * len(losses)
        for rank in set(fronts):
            places = [place for place, each in enumerate(fronts) if each == rank]
            for place, room in zip(places, crowding([losses[each] for each in places]), strict=True):
                found[place] = (excess[place], rank, -room)
        return found

    def _losses(self, end: PointEnd) -> tuple[float, ...]:
        """Return the losses of a point, lower for better ones. Those of a pruned point are infinite."""
        if end.state != TrialState.COMPLETE:
            return (math.inf,) * len(self._objectives)
        return tuple(each.loss(value) for each, value in zip(self._objectives, end.values, strict=True))


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
    """Return a function that changes a value to another option, or to a number nearby."""
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
