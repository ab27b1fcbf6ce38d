"""The generations of a population: who goes on, who copies whom, and what is changed then.

All follows from how the members of a whole generation have ended, and from the seed of the search: whoever
knows the rows of a store comes to the same members, in whatever order these rows came.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random

from ...grammar.nodes import Dimension
from ..resolve.search_points import enumerate_points, is_enumerable
from ..schema.settings import Level
from .exploration import draw_values, explore_values

TRUNCATED = 0.2
"""The share of members, the worst, that copy one of as many, the best; at least one does."""

_TRIES = 100
"""So often a member is changed anew that would be another one again; then options are taken in order."""

Values = Mapping[str, Level]


@dataclass(frozen=True, slots=True, kw_only=True)
class PopulationMember:
    """A member up to a generation: its values in each so far, and the place of whom it goes on from.

    That is its own place, or that of the member that it has copied; none in the first generation.
    """

    history: tuple[Values, ...]
    parent: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """The members of a generation by their places, and what each has lost, less being better.

    Infinity is the loss of one that failed, None that of one that has not ended.
    """

    members: tuple[PopulationMember, ...]
    losses: tuple[float | None, ...]

    @property
    def is_whole(self) -> bool:
        """Whether all of its members have ended."""
        return None not in self.losses

    @property
    def ranked(self) -> list[int]:
        """The places of its members, the best first, of equals the first."""
        return sorted(range(len(self.members)), key=lambda place: (self._loss(place), place))

    def copies(self) -> tuple[list[int], list[int]]:
        """The places of those that copy another, the failed among them, and of those that can be copied."""
        ranked = self.ranked
        share = max(1, int(TRUNCATED * len(ranked)))
        best = [place for place in ranked[:share] if math.isfinite(self._loss(place))]
        worst = [place for place in ranked if place in ranked[-share:] or math.isinf(self._loss(place))]
        return [place for place in worst if place not in best], best

    def _loss(self, place: int) -> float:
        loss = self.losses[place]
        return math.inf if loss is None else loss


def breed(
    dimensions: Mapping[str, Dimension],
    *,
    members: int,
    generations: int,
    seed: int,
    loss: Callable[[int, PopulationMember], float | None],
) -> tuple[Generation, ...]:
    """The generations that can be known, each but the last whole; `loss` is that of a member in one of them.

    None follows where all members have failed.
    """
    found: list[Generation] = []
    while len(found) < generations:
        number = len(found)
        if number and not (found[-1].is_whole and found[-1].copies()[1]):
            break
        new = _first(dimensions, members, seed) if not number else _next(dimensions, found[-1], number, seed)
        losses = tuple(loss(number, each) for each in new)
        found.append(Generation(members=new, losses=losses))
    return tuple(found)


def _first(dimensions: Mapping[str, Dimension], members: int, seed: int) -> tuple[PopulationMember, ...]:
    """Members with values that are drawn, no two alike."""
    taken: list[Values] = []
    for place in range(members):
        rng = _rng(seed, 0, place)
        taken.append(_untaken(partial(draw_values, dimensions, rng), dimensions, taken))
    return tuple(PopulationMember(history=(values,)) for values in taken)


def _next(
    dimensions: Mapping[str, Dimension], before: Generation, number: int, seed: int
) -> tuple[PopulationMember, ...]:
    """The members of a generation: those before, but for the worst, which copy the best and are changed."""
    worst, best = before.copies()
    parents = {place: place for place in range(len(before.members)) if place not in worst}
    values = {place: before.members[place].history[-1] for place in parents}
    for place in worst:
        rng = _rng(seed, number, place)
        parent = parents[place] = rng.choice(best)
        history = before.members[parent].history
        taken = [values[other] for other in values if before.members[parents[other]].history == history]
        change = partial(explore_values, history[-1], dimensions, rng)
        values[place] = _untaken(change, dimensions, taken)
    return tuple(
        PopulationMember(
            history=(*before.members[parents[place]].history, values[place]), parent=parents[place]
        )
        for place in range(len(before.members))
    )


def _untaken(
    draw: Callable[[], Values], dimensions: Mapping[str, Dimension], taken: Sequence[Values]
) -> Values:
    """Values that are drawn until no other member has them; if that takes too long, the first in order."""
    for _ in range(_TRIES):
        if (values := draw()) not in taken:
            return values
    in_order = (
        enumerate_points(lambda suggest: {name: suggest(name, each) for name, each in dimensions.items()})
        if is_enumerable(dimensions)
        else ()
    )
    return next((each for each in in_order if each not in taken), draw())


def _rng(seed: int, generation: int, place: int) -> Random:
    return Random(f"{seed} {generation} {place}")
