"""Search spaces: recipes with search dimensions, and the recipes that result from them.

A derivation chooses a value for each dimension, in text order: the first dimension varies slowest, options
are in listed order, numbers in ascending order. A range of real numbers counts as one value. Two derivations
may give the same member.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Literal

from ..errors import ActivememError, argument_fault, check_arguments
from .dimensions import dimensions, rebuild
from .nodes import (
    BlockNode,
    ChoiceDimension,
    Dimension,
    IntegerDimension,
    RealDimension,
    RepeatNode,
    Scalar,
    SeriesNode,
    SumNode,
    TiedNode,
    Value,
    children,
    walk,
)
from .recipe import Expression, Recipe, parse
from .vocabulary.spec import lookup

Derivation = dict[int, tuple[Dimension, Scalar]]
"""A mapping from the index of a dimension in the text to the dimension and its value.

The value of a choice is the index of its option.
"""

_Placed = tuple[Value, int]
"""A part of the space, and the index of its first dimension."""

_Leaf = tuple[Value, int, Derivation]
"""An option without choices, the index of its first dimension, and the choices that lead to it."""


def as_range(value: Value) -> range:
    """Return the values of a whole-number dimension as a range. A plain number is a range of one value."""
    if isinstance(value, IntegerDimension):
        return range(value.low, value.high + 1, value.step)
    assert isinstance(value, int)
    return range(value, value + 1)


def count_derivations(value: Value) -> int:
    """Count the derivations of a part: the combinations of values for its search dimensions.

    Several derivations may give equal recipes. A range of real numbers counts as one value.
    """
    match value:
        case IntegerDimension():
            return (value.high - value.low) // value.step + 1  # len() of a range refuses very long ones
        case ChoiceDimension():
            return sum(map(count_derivations, value.options))
        case _:
            return math.prod(map(count_derivations, children(value)))


def derive(value: Value, index: int) -> Value:
    """Return a part in which the search dimensions have the values of the derivation at `index`.

    A derivation is one combination of values for the search dimensions. Derivations are counted from 0.
    Ranges of real numbers stay ranges.
    """
    match value:
        case IntegerDimension():
            return as_range(value)[index]
        case ChoiceDimension():
            for option in value.options:
                if index < (count := count_derivations(option)):
                    return derive(option, index)
                index -= count
            raise IndexError(index)
        case RealDimension() if value.low == value.high:
            return value.low
        case _:
            inside: list[Value] = []
            for inner in reversed(children(value)):
                index, own = divmod(index, count_derivations(inner))
                inside.append(derive(inner, own))
            return rebuild(value, inside[::-1])


def find_derivation(space: Value, member: Value, start: int = 0) -> Derivation | None:  # noqa: PLR0911 -- one return for each kind
    """Find values for the search dimensions of `space` that turn it into `member`.

    Return the first such values, or None if there are none. The dimensions are numbered from `start` on.
    """
    match space, member:
        case ChoiceDimension(), _:
            for leaf, place, choices in _leaves(space, start):
                if (found := find_derivation(leaf, member, place)) is not None:
                    return choices | found
            return None
        case (IntegerDimension(), int()) if not isinstance(member, bool) and member in as_range(space):
            return {start: (space, member)}
        case (RealDimension(), float()) if space.low <= member <= space.high:
            return {start: (space, member)}
        case BlockNode(), BlockNode():
            named, spec = [name for name, _ in space.arguments], lookup(space.name)
            if space.name != member.name or spec is None or {each for each, _ in member.arguments} - {*named}:
                return None
            settings = spec.settings(member)
            return _find_each(_placed_children(space, start), [settings[name] for name in named])
        case (RepeatNode(), RepeatNode()) | (TiedNode(), TiedNode()):
            return _find_each(_placed_children(space, start), children(member))
        case (SumNode(), SumNode()) | (SeriesNode(), SeriesNode()):
            return _find_parts(type(space), _placed_children(space, start), member.parts, set())
        case _:
            return {} if type(space) is type(member) and space == member else None


def _find_each(spaces: Sequence[_Placed], members: Sequence[Value]) -> Derivation | None:
    derivation: Derivation = {}
    for (space, start), member in zip(spaces, members, strict=True):
        if (found := find_derivation(space, member, start)) is None:
            return None
        derivation |= found
    return derivation


def _find_parts(
    kind: type[SumNode] | type[SeriesNode],
    todo: tuple[_Placed, ...],
    members: tuple[Value, ...],
    failed: set[tuple[tuple[_Placed, ...], tuple[Value, ...]]],
) -> Derivation | None:
    """Find values that turn the parts `todo` of a sum or series into `members`; a sum has no order.

    An option that is a sum in a sum, or a series in a series, gives several parts. `failed` has arguments
    that are known to give None, so that the search does not try them again.
    """
    if not todo or len(todo) > len(members):
        return {} if len(todo) == len(members) else None
    if (todo, members) in failed:
        return None
    for leaf, start, choices in _leaves(*todo[0]):
        if isinstance(leaf, kind):
            inner = _find_parts(kind, (*_placed_children(leaf, start), *todo[1:]), members, failed)
            if inner is not None:
                return choices | inner
            continue
        for place in range(len(members) if kind is SumNode else 1):
            if (found := find_derivation(leaf, members[place], start)) is None:
                continue
            rest = _find_parts(kind, todo[1:], members[:place] + members[place + 1 :], failed)
            if rest is not None:
                return choices | found | rest
    failed.add((todo, members))
    return None


def _placed_children(value: Value, start: int) -> tuple[_Placed, ...]:
    place = start + isinstance(value, Dimension)
    found: list[_Placed] = []
    for inner in children(value):
        found.append((inner, place))
        place += sum(isinstance(one, Dimension) for one in walk(inner))
    return tuple(found)


def _leaves(part: Value, start: int) -> list[_Leaf]:
    """Return the options of a choice, with nested choices flattened, or any other part itself."""
    if not isinstance(part, ChoiceDimension):
        return [(part, start, {})]
    return [
        (leaf, first, {start: (part, place), **choices})
        for place, (option, inner) in enumerate(_placed_children(part, start))
        for leaf, first, choices in _leaves(option, inner)
    ]


_SCIENTIFIC_FROM = 10**12  # larger numbers are shown by their first digits


@dataclass(frozen=True, slots=True, kw_only=True)
class Cardinality:
    """The number of different recipes (architectures) in a search space.

    `forms` counts architectures up to their real numbers: each range of real numbers counts as one value.
    Without such ranges forms are architectures. A count that is not `exact` is an upper bound.
    """

    forms: int
    infinite: bool = False
    exact: bool = True

    @property
    def architectures(self) -> int | Literal["infinite"]:
        """Return the number of architectures, or "infinite"."""
        return "infinite" if self.infinite else self.forms

    def __str__(self) -> str:
        most = "" if self.exact else "at most "
        if self.infinite:
            return f"infinitely many architectures of {most}{_format_count(self.forms, 'form')}"
        return f"{most}{_format_count(self.forms, 'architecture')}"


def _format_count(count: int, noun: str) -> str:
    number = f"{count:,}" if count < _SCIENTIFIC_FROM else f"{Decimal(count):.3g}"
    return f"{number} {noun}{'' if count == 1 else 's'}"


MAX_LISTED = 10_000
"""The maximum number of derivations of a space whose members are listed to count them exactly."""

SHOWN_LENGTH = 60
"""The number of characters of a space's recipe in its repr."""


class SpaceError(ActivememError):
    """Error for a request that a search space cannot fulfil."""


class Space:
    """A search space: all recipes that a recipe with search dimensions can become.

    Holes stay open. Raise RecipeError for a wrong text.
    """

    def __init__(self, recipe: str | Expression) -> None:
        self.recipe = parse(recipe)
        self._size = count_derivations(self.recipe.root)

    def __repr__(self) -> str:
        text = self.recipe.text
        shown = text if len(text) <= SHOWN_LENGTH else text[: SHOWN_LENGTH - 1] + "…"
        return f"Space({shown})"

    @cached_property
    def count(self) -> Cardinality:
        """Return the number of recipes in the space. Above MAX_LISTED it is only an upper bound."""
        reals = (each for _, each in dimensions(self.recipe.root) if isinstance(each, RealDimension))
        return Cardinality(
            forms=self._size if self._forms is None else len(self._forms),
            infinite=any(each.low < each.high for each in reals),
            exact=self._forms is not None,
        )

    def __iter__(self) -> Iterator[Recipe]:
        """Yield every recipe of the space once; the last dimension in the text varies fastest.

        Raise SpaceError for a space with ranges of real numbers.
        """
        if self.count.infinite:
            raise SpaceError("a space with ranges of real numbers cannot be listed")
        yield from self._iter_forms() if self._forms is None else self._forms

    def __contains__(self, recipe: Recipe) -> bool:
        check_arguments(argument_fault("recipe", recipe, Recipe, "a Recipe, as parse returns it"))
        return find_derivation(self.recipe.root, recipe.root) is not None

    @cached_property
    def _forms(self) -> list[Recipe] | None:
        """Return the distinct recipes, in which ranges of reals stay ranges; None if there are too many."""
        return list(self._iter_forms()) if self._size <= MAX_LISTED else None

    def _iter_forms(self) -> Iterator[Recipe]:
        seen = set[Recipe]()
        for index in range(self._size):
            found = Recipe(derive(self.recipe.root, index))  # pyright: ignore[reportArgumentType] -- a part of a recipe becomes one
            if found not in seen:
                seen.add(found)
                yield found
