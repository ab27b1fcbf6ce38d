"""Points of a search: each has a value for every active dimension.

A dimension inside an option is used only if that option is chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from ...grammar.dimensions import option_label, resolve
from ...grammar.nodes import ChoiceDimension, Dimension, HoleNode, IntegerDimension, RealDimension, walk
from ..schema.search import ChoosePoint, Suggest
from ..schema.settings import RECIPE_PATH, Level
from .template import Template

MAX_COUNTED = 2_000
"""The maximum number of combinations that are resolved to count a space's points, each in about 1 ms."""


def resolve_point(
    template: Template, dimensions: Mapping[str, Dimension], fixed: Mapping[str, Level], suggest: Suggest
) -> dict[str, Level]:
    """Choose the values of a search point by calling `suggest`.

    Return them by dimension. Only active dimensions are included, in the order of `dimensions`. A dimension
    inside an option is active only if the option is chosen. Dimensions in the recipe are chosen first, in
    text order. Then come the dimensions that fill the recipe's placeholders, the placeholders in the values
    of these dimensions, and the placeholders of other tables. Raise ValueError for a value outside its
    dimension.
    """
    chosen: dict[str, Level] = {}

    def value(name: str) -> Level:
        if name in dimensions and name not in chosen:
            chosen[name] = suggest(name, dimensions[name])
        return chosen[name] if name in chosen else fixed[name]

    recipe = template.expand(template.texts[RECIPE_PATH])
    holes = list(recipe.holes)
    if recipe.dimensions:  # without dimensions, all placeholders of the recipe are used
        taken = resolve(recipe.root, lambda name, _: value(name))
        holes = list(dict.fromkeys(node.name for node in walk(taken) if isinstance(node, HoleNode)))
    holes += template.other_holes
    for hole in holes:  # the loop appends to this list
        if isinstance(level := value(hole), str):
            holes += [inner for inner in template.names_in_level(level, hole) if inner not in holes]
    return {name: chosen[name] for name in dimensions if name in chosen}


def enumerate_points(choose: ChoosePoint) -> Iterator[dict[str, Level]]:
    """Yield every point of a space.

    The points come in the order of nested loops over the dimensions: the last dimension changes fastest.
    Equivalent points are all included. Raise ValueError for a real dimension.
    """
    # It works like an odometer: the last digit advances, and digits at their end are dropped. Another value
    # may activate other dimensions, so digits after the changed one are found anew by calling `choose`.
    digits: list[tuple[int, int]] = []  # for each suggested dimension the index and the number of its values
    while True:
        depth = 0

        def suggest(name: str, dimension: Dimension) -> Level:
            nonlocal depth
            values = _values(name, dimension)
            if depth == len(digits):
                digits.append((0, len(values)))
            depth += 1
            return values[digits[depth - 1][0]]

        yield choose(suggest)
        while digits and digits[-1][0] + 1 == digits[-1][1]:
            digits.pop()
        if not digits:
            return
        digits[-1] = (digits[-1][0] + 1, digits[-1][1])


def count_points(
    choose: ChoosePoint,
    dimensions: Mapping[str, Dimension],
    identify: Callable[[Mapping[str, Level]], str | None],
    most: int,
) -> int:
    """Return the number of different points of a search space.

    Return `most` if there are more. `identify` returns a key that equal points share, or None for a point
    that the study does not allow. The result is `most` if an allowed point has a real number, or if
    MAX_COUNTED combinations of values do not decide it.
    """
    real = {name for name, dimension in dimensions.items() if isinstance(dimension, RealDimension)}

    def choose_listed(suggest: Suggest) -> dict[str, Level]:
        return choose(lambda name, each: each.low if isinstance(each, RealDimension) else suggest(name, each))

    known = set[str]()
    for number, values in enumerate(enumerate_points(choose_listed)):
        if number >= MAX_COUNTED:
            return most
        if (identity := identify(values)) is not None:
            known.add(identity)
            if len(known) >= most or real & values.keys():
                return most
    return len(known)


def is_enumerable(dimensions: Mapping[str, Dimension]) -> bool:
    """Return whether a space has finitely many points."""
    return not any(isinstance(dimension, RealDimension) for dimension in dimensions.values())


def _values(name: str, dimension: Dimension) -> range | list[Level]:
    match dimension:
        case IntegerDimension():
            return range(dimension.low, dimension.high + 1, dimension.step)
        case ChoiceDimension():
            return [option_label(option) for option in dimension.options]
        case _:
            raise ValueError(
                f"expected a dimension with finitely many values, got the real numbers of {name}"
            )
