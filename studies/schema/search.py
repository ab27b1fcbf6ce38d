"""The table [search]: its settings, and the dimensions of its space."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ...errors import FaultCollector
from ...grammar import Parameter, RecipeError
from ...grammar.checker import NUMBER_FORMS, parse_range
from ...grammar.dimensions import representative_values
from ...grammar.nodes import ChoiceDimension, Dimension, IntegerDimension, RealDimension
from ...grammar.parser import ArgumentSyntax, CallSyntax, NumberSyntax, parse_syntax
from ..text.document import Diagnostics
from ..text.strict_model import as_table
from .factors import NamedLevels
from .search_settings import SearchSettings
from .settings import Level

MAX_COUNTED = 2_000
"""The maximum number of combinations that are resolved to count a space's points, each in about 1 ms."""

Suggest = Callable[[str, Dimension], Level]
"""Chooses the value of a dimension, given its name."""

ChoosePoint = Callable[[Suggest], dict[str, Level]]
"""Chooses a point by calling the given function for each active dimension; returns the values by name."""


def read_search(
    diagnostics: Diagnostics, given: Mapping[str, Any]
) -> tuple[SearchSettings | None, dict[str, Dimension]]:
    """Return the settings of the table [search] and the dimensions of its space.

    Faults are reported; an invalid dimension is left out.
    """
    settings = diagnostics.validate(SearchSettings, ("search",), given)
    space: dict[str, Dimension] = {}
    for name, text in as_table(as_table(given).get("space")).items():
        try:
            space |= {name: read_dimension(text)} if isinstance(text, str) else {}
        except RecipeError as error:
            diagnostics.report_faults(("search", "space", name), error.faults)
    return settings, space


def read_dimension(text: str) -> Dimension:
    """Parse a dimension of [search.space].

    A dimension is `integer(lo, hi, step=, log=)`, `real(lo, hi, log=)` or `choice(option, …)`. Raise
    RecipeError with all faults for any other text.
    """
    faults = FaultCollector(text)
    syntax = parse_syntax(text, faults)
    dimension: Dimension | None = None
    if isinstance(syntax, CallSyntax) and syntax.name in NUMBER_FORMS:
        parameter = Parameter(name=syntax.name, kind=syntax.name, meaning="a dimension")
        dimension = parse_range(syntax, parameter, faults)
    elif isinstance(syntax, CallSyntax) and syntax.name == "choice" and syntax.arguments:
        dimension = ChoiceDimension(tuple(_option(text, argument, faults) for argument in syntax.arguments))
    elif not faults:
        forms = "integer(lo, hi), real(lo, hi), real(1e-3, 3e-2, log=true) or choice(option, …)"
        faults.add(0, len(text), f"expected {forms}")
    if dimension is None or faults:
        raise RecipeError(text, faults)
    return dimension


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
            if isinstance(dimension, RealDimension):
                expected = "expected a dimension with finitely many values"
                raise ValueError(f"{expected}, got the real numbers of {name}")
            values: Sequence[Level] = representative_values(dimension)
            if isinstance(dimension, IntegerDimension):
                values = range(dimension.low, dimension.high + 1, dimension.step)
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


def at_lowest_reals(choose: ChoosePoint) -> ChoosePoint:
    """Return `choose` with all real dimensions at their lower ends, so that its points can be enumerated."""
    return lambda suggest: choose(
        lambda name, each: each.low if isinstance(each, RealDimension) else suggest(name, each)
    )


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
    known = set[str]()
    for number, values in enumerate(enumerate_points(at_lowest_reals(choose))):
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


def contains(dimension: Dimension, value: object) -> bool:
    """Return whether a value belongs to a dimension."""
    if isinstance(dimension, ChoiceDimension):
        # in Python True == 1, but `true` and `1` are different options
        return any(
            value == each and isinstance(value, bool) == isinstance(each, bool)
            for each in representative_values(dimension)
        )
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    if not dimension.low <= value <= dimension.high:
        return False
    if isinstance(dimension, RealDimension):
        return True
    return value == int(value) and (int(value) - dimension.low) % dimension.step == 0


def options_by_name(dimension: ChoiceDimension) -> NamedLevels:
    """Return a lookup of a dimension's options by any of their names."""
    return NamedLevels(representative_values(dimension), "among the options")


def as_listed(dimension: Dimension, value: Level) -> Level:
    """Return a value as its dimension has it: 5 for 5.0 in whole numbers, or an option for its name."""
    if isinstance(dimension, ChoiceDimension):
        return options_by_name(dimension).find(value)
    return float(value) if isinstance(dimension, RealDimension) else int(value)


def _option(text: str, argument: ArgumentSyntax, faults: FaultCollector) -> Level:
    if argument.name is not None:
        message = f"choice takes its options by position, without names, got {argument.name}="
        faults.add(argument.start, argument.end, message)
    match argument.value:
        case NumberSyntax(value=number):
            return number
        case CallSyntax(name="true" | "false" as word, arguments=None):
            return word == "true"
        case _:
            return text[argument.start : argument.end]
