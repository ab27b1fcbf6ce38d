"""Spaces of recipes: counted, listed and drawn from."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property
from random import Random

from ...errors import ActivememError, argument_fault, check_arguments, number_fault
from ..dimensions import dimensions
from ..nodes import RealDimension, Value, children
from ..recipe import Expression, Recipe, parse
from .budget import Budget
from .cardinality import BudgetShare, Cardinality
from .derivations import count_derivations, derive, find_derivation, rebuild
from .overlaps import has_overlaps

MAX_LISTED = 10_000
"""A space is listed to count it exactly if it has at most this many derivations."""

ESTIMATE_SAMPLES = 1_000
"""The number of members drawn for an estimate."""

MAX_TRIES = 20_000
"""The number of members in a row beyond the budget after which drawing gives up."""


SHOWN_LENGTH = 60
"""The number of characters of its recipe that a space shows of itself."""


class SpaceError(ActivememError):
    """A space cannot give what was requested of it."""


class Space:
    """The recipes that a recipe with search dimensions can become, without those beyond a budget.

    Holes stay as they are. Raises RecipeError for a wrong text.
    """

    def __init__(self, recipe: str | Expression, budget: Budget | None = None) -> None:
        check_arguments(argument_fault("budget", budget, (Budget, type(None))), error=SpaceError)
        self.recipe, self.budget = parse(recipe), budget
        self._size = count_derivations(self.recipe.root)

    def __repr__(self) -> str:
        text = self.recipe.text
        shown = text if len(text) <= SHOWN_LENGTH else text[: SHOWN_LENGTH - 1] + "…"
        return f"Space({shown}{'' if self.budget is None else ', within a budget'})"

    @cached_property
    def count(self) -> Cardinality:
        """The number of members before any budget.

        It is an upper bound where derivations overlap and there are more than MAX_LISTED.
        """
        reals = (each for _, each in dimensions(self.recipe.root) if isinstance(each, RealDimension))
        return Cardinality(
            forms=self._size if self._forms is None else len(self._forms),
            infinite=any(each.low < each.high for each in reals),
            exact=self._forms is not None or not self._overlaps,
        )

    def remaining(self, rng: Random) -> BudgetShare:
        """Return the share within the budget: exactly where members are listed, else an estimate."""
        count = self.count
        if self._is_small:
            within = sum(1 for _ in self)
            return BudgetShare(total=count, within=within, share=within / count.forms)
        hits = sum(self._admits(self._draw(rng)) for _ in range(ESTIMATE_SAMPLES))
        cautious = (hits + 1) / (ESTIMATE_SAMPLES + 2)  # so that the error is above 0 where all draws agree
        return BudgetShare(
            total=count,
            share=hits / ESTIMATE_SAMPLES,
            within=None if count.infinite else hits * count.forms // ESTIMATE_SAMPLES,
            samples=ESTIMATE_SAMPLES,
            standard_error=math.sqrt(cautious * (1 - cautious) / ESTIMATE_SAMPLES),
        )

    def __iter__(self) -> Iterator[Recipe]:
        """Yield every member once, in the order of the text: the last dimension varies fastest.

        Raises SpaceError for a space with ranges of real numbers.
        """
        if self.count.infinite:
            raise SpaceError("a space with real dimensions cannot be listed, only drawn from")
        yield from filter(self._admits, self._iter_forms() if self._forms is None else self._forms)

    def __contains__(self, recipe: Recipe) -> bool:
        """Return whether the space has the recipe and the budget admits it."""
        check_arguments(argument_fault("recipe", recipe, Recipe, "a Recipe, as parse returns it"))
        return find_derivation(self.recipe.root, recipe.root) is not None and self._admits(recipe)

    def sample(self, rng: Random) -> Recipe:
        """Draw a member, each with the same probability.

        With ranges of real numbers each form has the same probability, and its numbers are drawn evenly, or
        their logarithms where the range says so. Where the count is only an upper bound, each derivation has
        the same probability. Raises SpaceError when MAX_TRIES in a row are beyond the budget.
        """
        check_arguments(argument_fault("rng", rng, Random), error=SpaceError)
        for _ in range(MAX_TRIES):
            if self._admits(found := self._draw(rng)):
                return found
        raise SpaceError(f"none of {MAX_TRIES:,} architectures drawn is within the budget")

    def sample_distinct(self, count: int, rng: Random) -> list[Recipe]:
        """Draw `count` different members as `sample` does; fewer where there are no more.

        Raises SpaceError when none is found within the budget.
        """
        check_arguments(
            number_fault("count", count, least=0), argument_fault("rng", rng, Random), error=SpaceError
        )
        if self._is_small:
            listed = list(self)
            if not listed:
                raise SpaceError(f"none of {self.count} is within the budget")
            return rng.sample(listed, min(count, len(listed)))
        found: dict[Recipe, None] = {}
        tries = 0
        while len(found) < count and tries < MAX_TRIES:
            one = self.sample(rng)
            tries = tries + 1 if one in found else 0
            found[one] = None
        return list(found)

    @property
    def _is_small(self) -> bool:
        return self._size <= MAX_LISTED and not self.count.infinite

    @cached_property
    def _overlaps(self) -> bool:
        return has_overlaps(self.recipe.root)

    @cached_property
    def _forms(self) -> list[Recipe] | None:
        """The members, ranges of real numbers left open, of a small space whose derivations may overlap."""
        return list(self._iter_forms()) if self._size <= MAX_LISTED and self._overlaps else None

    def _iter_forms(self) -> Iterator[Recipe]:
        """Yield what derivations give, each once."""
        seen = set[Recipe]()
        for index in range(self._size):
            found = Recipe(derive(self.recipe.root, index))  # pyright: ignore[reportArgumentType] -- a part of a recipe becomes one
            if not self._overlaps:
                yield found
            elif found not in seen:
                seen.add(found)
                yield found

    def _draw(self, rng: Random) -> Recipe:
        if self._forms is not None:
            root = rng.choice(self._forms).root
        else:
            root = derive(self.recipe.root, rng.randrange(self._size))
        return Recipe(_draw_reals(root, rng))  # pyright: ignore[reportArgumentType] -- as above

    def _admits(self, recipe: Recipe) -> bool:
        return self.budget is None or self.budget.admits(recipe)


def _draw_reals(part: Value, rng: Random) -> Value:
    """Return a part with a number drawn from each range of real numbers in it."""
    if isinstance(part, RealDimension):
        low, high = part.low, part.high
        if not part.log:
            return rng.uniform(low, high)
        return min(max(math.exp(rng.uniform(math.log(low), math.log(high))), low), high)
    inside = children(part)
    return rebuild(part, [_draw_reals(one, rng) for one in inside]) if inside else part
