"""A space of architectures: counted, listed, drawn from, and walked through step by step."""

from __future__ import annotations

import math
from collections.abc import Iterator
from random import Random

from ...errors import ActivememError
from ..dimensions import dimensions, option_label
from ..nodes import ChoiceDimension, RealDimension, Scalar, Value
from ..recipe import Expression, Recipe, parse
from .budget import Budget
from .cardinality import BudgetShare, Cardinality
from .derivations import Derivation, DerivationFinder, count_dimensions, positioned_children
from .enumeration import count_derivations, derive, iter_members
from .partition import PartitionLimitError, Splitter
from .partition_types import alternatives
from .sampling import sample_other, sample_reals

MAX_LISTED = 10_000
"""At most this many members are listed to count those within a budget; of more the count is estimated."""

ESTIMATE_SAMPLES = 1_000
"""An estimate draws this many members."""

MAX_TRIES = 20_000
"""Drawing or changing a member gives up after this many in a row that are beyond the budget."""


class SpaceError(ActivememError):
    """A space cannot give what was requested of it."""


class Space:
    """The architectures that a recipe with search dimensions can become, those beyond a budget left out.

    Architectures are told apart by the identity of their recipes. Holes stay as they are.
    Raises RecipeError for a wrong text.
    """

    def __init__(self, recipe: str | Expression, budget: Budget | None = None) -> None:
        self.recipe, self.budget = parse(recipe), budget
        self._names = [name for name, _ in dimensions(self.recipe.root)]
        self._splitter = Splitter()
        self._forms: dict[tuple[type, Value], _Forms] = {}

    @property
    def count(self) -> Cardinality:
        """How many architectures there are, before any budget."""
        forms = self._forms_of(self.recipe.root)
        infinite = any(
            isinstance(one, RealDimension) and one.low < one.high for _, one in dimensions(self.recipe.root)
        )
        return Cardinality(forms=forms.size, infinite=infinite, exact=forms.exact)

    def remaining(self, rng: Random) -> BudgetShare:
        """How many are within the budget: exactly up to MAX_LISTED architectures, else estimated."""
        count = self.count
        if self._is_small:
            within = sum(1 for _ in self)
            return BudgetShare(total=count, within=within, share=within / count.forms)
        hits = sum(self._admits(self._sample_any(rng)) for _ in range(ESTIMATE_SAMPLES))
        cautious = (hits + 1) / (ESTIMATE_SAMPLES + 2)  # so that the error is above 0 where all draws agree
        return BudgetShare(
            total=count,
            share=hits / ESTIMATE_SAMPLES,
            within=None if count.infinite else hits * count.forms // ESTIMATE_SAMPLES,
            samples=ESTIMATE_SAMPLES,
            standard_error=math.sqrt(cautious * (1 - cautious) / ESTIMATE_SAMPLES),
        )

    def __iter__(self) -> Iterator[Recipe]:
        """Every architecture once, in the order of the text: the last dimension varies fastest.

        Raises SpaceError where there is no end of them.
        """
        if self.count.infinite:
            raise SpaceError("a space with real dimensions cannot be listed, only drawn from")
        for root in iter_members(self.recipe.root, self._may_repeat):
            found = Recipe(root)  # pyright: ignore[reportArgumentType] -- a part of a recipe becomes one
            if self._admits(found):
                yield found

    def __contains__(self, recipe: Recipe) -> bool:
        """Whether the space has the recipe and the budget admits it."""
        return self.dimension_values(recipe) is not None and self._admits(recipe)

    def dimension_values(self, recipe: Recipe) -> dict[str, Scalar] | None:
        """The dimensions that are taken for a recipe, by name, as `Recipe.choose` takes them.

        Of several ways to choose the recipe the first; None if there is none.
        """
        found = DerivationFinder().find(self.recipe.root, 0, recipe.root)
        return None if found is None else self._values_by_name(found)

    def sample(self, rng: Random) -> Recipe:
        """An architecture, each with the same probability.

        With real dimensions each form has the same probability; the numbers in it are drawn evenly from their
        ranges, or their logarithms where the range says so. Whole numbers are all alike, log or not. A space
        that is not counted exactly is drawn from by ways of choosing, all alike.
        Raises SpaceError when MAX_TRIES in a row are beyond the budget.
        """
        for _ in range(MAX_TRIES):
            if self._admits(found := self._sample_any(rng)):
                return found
        raise SpaceError(f"none of {MAX_TRIES:,} architectures drawn is within the budget")

    def sample_distinct(self, count: int, rng: Random) -> list[Recipe]:
        """`count` different architectures, drawn as by `sample`; fewer where there are no more.

        Raises SpaceError when none is found within the budget.
        """
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

    def mutate(self, recipe: Recipe, rng: Random) -> Recipe:
        """A neighbour of the recipe: one dimension settled anew, with those inside a newly taken option.

        Never the recipe itself. Every architecture that differs in one dimension can come out, so that from
        any of them all of the space is reached in several steps, but for a budget that cuts it in two.
        Raises SpaceError for a recipe outside of the space and when there is no neighbour.
        """
        matcher = DerivationFinder(rng)
        if self.count.forms == 1 and not self.count.infinite:
            raise SpaceError("the space has a single architecture, which cannot be changed")
        for _ in range(MAX_TRIES):
            known = matcher.find(self.recipe.root, 0, recipe.root)
            if known is None:
                raise SpaceError(f"{recipe} is not in the space {self.recipe}")
            found = self.recipe.choose(self._values_by_name(self._mutate_derivation(known, rng)))
            if found != recipe and self._admits(found):
                return found
        raise SpaceError(f"no neighbour of {recipe} was found in {MAX_TRIES:,} tries")

    @property
    def _is_small(self) -> bool:
        """Whether all of it can be listed in a moment."""
        count = self.count
        return count.exact and not count.infinite and count.forms <= MAX_LISTED

    def _sample_any(self, rng: Random) -> Recipe:
        """An architecture, within the budget or not."""
        return Recipe(self._sample_part(self.recipe.root, rng))  # pyright: ignore[reportArgumentType] -- as above

    def _sample_part(self, part: Value, rng: Random) -> Value:
        """What a part of the recipe becomes, each with the same probability."""
        forms = self._forms_of(part)
        return sample_reals(forms.at(rng.randrange(forms.size)), rng)

    def _mutate_derivation(self, found: Derivation, rng: Random) -> Derivation:
        """The way with one of its dimensions settled to something else."""
        start = rng.choice(list(found))
        dimension, value = found[start]
        kept = {
            place: one
            for place, one in found.items()
            if not start <= place < start + count_dimensions(dimension)
        }
        if not isinstance(dimension, ChoiceDimension):
            return {**kept, start: (dimension, sample_other(dimension, value, rng))}
        places = [place for place in range(len(dimension.options)) if place != value]
        if not places:
            return found
        taken = rng.choice(places)
        option, first = positioned_children(dimension, start)[taken]
        inside = DerivationFinder(rng).find(option, first, self._sample_part(option, rng))
        assert inside is not None, f"{option} does not have what was drawn from it"
        return {**kept, start: (dimension, taken), **inside}

    def _values_by_name(self, found: Derivation) -> dict[str, Scalar]:
        """A way by the names of its dimensions, an option by its label."""
        return {
            self._names[place]: option_label(dimension.options[int(value)])
            if isinstance(dimension, ChoiceDimension)
            else value
            for place, (dimension, value) in found.items()
        }

    def _admits(self, recipe: Recipe) -> bool:
        return self.budget is None or self.budget.admits(recipe)

    def _forms_of(self, part: Value) -> _Forms:
        key = (type(part), part)  # 1 is not true
        if key not in self._forms:
            self._forms[key] = _Forms(part, self._splitter)
        return self._forms[key]

    def _may_repeat(self, part: Value) -> bool:
        """Whether several ways of choosing a part may give the same."""
        forms = self._forms_of(part)
        return not forms.exact or forms.size < count_derivations(part)


class _Forms:
    """What a part of a recipe can become, by number; if it is not `exact`, the ways of choosing it."""

    def __init__(self, part: Value, splitter: Splitter) -> None:
        self._part = part
        try:
            self._classes = [found for _, found in splitter.split([alternatives(part)])]
            self.size, self.exact = sum(found.size for found in self._classes), True
        except PartitionLimitError:
            self.size, self.exact = count_derivations(part), False

    def at(self, index: int) -> Value:
        """The one of that number, ranges of real numbers left open."""
        if not self.exact:
            return derive(self._part, index)
        for found in self._classes:
            if index < found.size:
                return found.at(index)
            index -= found.size
        raise IndexError(index)
