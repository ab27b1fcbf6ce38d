"""The points of a search: dimensions get values one by one, and only those that a point uses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from ...grammar import Recipe
from ...grammar.dimensions import option_label, resolve
from ...grammar.nodes import ChoiceDimension, Dimension, IntegerDimension, RealDimension
from ..schema.settings import Level
from .template import RECIPE_PATH, Template

Suggest = Callable[[str, Dimension], Level]
"""Chooses the value of a dimension, given its name."""

ChoosePoint = Callable[[Suggest], dict[str, Level]]
"""Chooses a point by asking for each dimension that it uses, and returns their values by name."""


def resolve_point(
    template: Template, dimensions: Mapping[str, Dimension], fixed: Mapping[str, Level], suggest: Suggest
) -> dict[str, Level]:
    """The values of the dimensions that a point uses, in the order of `dimensions`.

    Those of the recipe are asked for first, in the order of its text, an option's own only if it is chosen.
    Then come those that fill its holes, the holes in their values, and the holes of the other tables.
    Raises ValueError for a value outside its dimension.
    """
    found: dict[str, Level] = {}

    def value(name: str) -> Level:
        if name in dimensions and name not in found:
            found[name] = suggest(name, dimensions[name])
        return found[name] if name in found else fixed[name]

    recipe = template.expand(template.texts[RECIPE_PATH])
    holes = list(Recipe(resolve(recipe.root, lambda name, _: value(name))).holes)
    for path, names in template.holes.items():
        holes += names if path != RECIPE_PATH else ()
    for hole in holes:  # grows while it is walked
        holes += [inner for inner in template.names_in_level(value(hole)) if inner not in holes]
    return {name: found[name] for name in dimensions if name in found}


def enumerate_points(choose: ChoosePoint) -> Iterator[dict[str, Level]]:
    """Every point, the dimension that is asked for last varying fastest.

    Equivalent points are all listed. Raises ValueError for a dimension of real numbers.
    """
    places: list[tuple[int, int]] = []  # of each dimension asked for, the place of its value and their number
    while True:
        asked = 0

        def ask(name: str, dimension: Dimension) -> Level:
            nonlocal asked
            values = _values(name, dimension)
            if asked == len(places):
                places.append((0, len(values)))
            asked += 1
            return values[places[asked - 1][0]]

        yield choose(ask)
        while places and places[-1][0] + 1 == places[-1][1]:
            places.pop()
        if not places:
            return
        places[-1] = (places[-1][0] + 1, places[-1][1])


def is_enumerable(dimensions: Mapping[str, Dimension]) -> bool:
    """Whether the points are finitely many."""
    return not any(isinstance(found, RealDimension) for found in dimensions.values())


def _values(name: str, dimension: Dimension) -> range | list[Level]:
    match dimension:
        case IntegerDimension():
            return range(dimension.low, dimension.high + 1, dimension.step)
        case ChoiceDimension():
            return [option_label(option) for option in dimension.options]
        case _:
            raise ValueError(f"the dimension {name} has no end of values")
