"""The points of a space that are left: drawn evenly, or in order, without those that are known to be taken.

What is drawn follows from the seed of the search and from how many points it knows: a search that was killed
goes on as it would have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from random import Random

from ....grammar.nodes import Dimension
from ....studies.resolve.search_points import enumerate_points, is_enumerable
from ....studies.schema.settings import Level
from ....studies.study import Study
from .samplers.numbers import draw
from .samplers.optuna_space import distribution
from .samplers.told_points import PointKey, point_key

DRAWN, DRAWN_OF_REALS = 200, 2_000
"""So many points are drawn before others are taken in order, or given up where there are real dimensions."""

MAX_ENUMERATED_POINTS = 100_000
"""There are no more if none of this many points in order is new and within the budget."""


class UnseenPoints:
    """The points of a study's space without those that were noted."""

    def __init__(self, study: Study, seed: int) -> None:
        self._choose, self._seed = study.choose, seed
        self._space = {name: distribution(each) for name, each in study.dimensions.items()}
        self._is_enumerable = is_enumerable(study.dimensions)
        self._in_order = enumerate_points(study.choose) if self._is_enumerable else iter(())
        self._noted = set[PointKey]()

    def note(self, values: Mapping[str, Level]) -> None:
        """Leave a point out from now on."""
        self._noted.add(point_key(values))

    def __contains__(self, values: Mapping[str, Level]) -> bool:
        """Whether a point was not noted."""
        return point_key(values) not in self._noted

    def draw(self, known: int) -> Iterator[dict[str, Level]]:
        """Points that are drawn evenly in each dimension, for a search that knows so many."""
        rng = Random(f"{self._seed} {known}")

        def value(name: str, dimension: Dimension) -> Level:
            del dimension
            return draw(self._space[name], rng)

        for _ in range(DRAWN if self._is_enumerable else DRAWN_OF_REALS):
            if (values := self._choose(value)) in self:
                yield values

    def in_order(self) -> Iterator[dict[str, Level]]:
        """Points in order, each once in a search; none of a space with real dimensions."""
        for values in islice(self._in_order, MAX_ENUMERATED_POINTS):
            if values in self:
                yield values
