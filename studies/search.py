"""[search]: how points are chosen, and the dimensions that they are chosen from."""

from __future__ import annotations

from collections.abc import Mapping

from ..grammar import Parameter, RecipeError
from ..grammar import faults as grammar_faults
from ..grammar.forms import NUMBERS, dimension
from ..grammar.nodes import Choice, Dimension, Real
from ..grammar.parser import read
from ..grammar.space import label
from ..grammar.syntax import Argument, Call, Number
from .factors import SEED
from .faults import nearest
from .metrics import METRICS
from .report import Report
from .settings import Level, SearchSettings
from .wording import ProblemsError, checked


def read_search(report: Report) -> tuple[SearchSettings | None, dict[str, Dimension]]:
    """The search of a study that has one, and the dimensions of [search.space] by name.

    What is wrong with either is noted; a dimension that cannot be read is left out.
    """
    if "search" not in report.document.data:
        return None, {}
    try:
        settings = checked(SearchSettings, report.document.data["search"])
    except ProblemsError as error:
        report.note_all(("search",), error)
        return None, {}
    if settings.metric not in METRICS:
        report.note(
            ("search", "metric"), f"unknown metric '{settings.metric}'{nearest(settings.metric, METRICS)}"
        )
    space: dict[str, Dimension] = {}
    for name, text in settings.space.items():
        try:
            space[name] = read_dimension(text)
        except RecipeError as error:
            for fault in error.faults:
                report.note(("search", "space", name), fault.message, within=(fault.start, fault.end))
    return settings, space


def check_search(
    report: Report,
    settings: SearchSettings,
    factors: Mapping[str, tuple[Level, ...]],
    found: Mapping[str, Dimension],
) -> None:
    """Note a search that has nothing to choose, or that cannot choose it in its way, and names used twice."""
    real = [name for name, one in found.items() if isinstance(one, Real)]
    if not found and not report.faults:
        report.note(("search",), "nothing to search: no dimension in [search.space] or in the recipe")
    if real and settings.sampler == "grid":
        report.note(("search", "sampler"), f"a grid has no end over real dimensions: {', '.join(real)}")
    for name in settings.space:
        if name in factors:
            report.note(("search", "space", name), f"'{name}' is a factor already", key=True)


def dimensions(
    factors: Mapping[str, tuple[Level, ...]], space: Mapping[str, Dimension], own: Mapping[str, Dimension]
) -> dict[str, Dimension]:
    """What a search chooses: factors of several levels, [search.space], the recipe's own dimensions.

    The options of a choice are plain data, parts of a recipe as text.
    """
    joined = {name: Choice(levels) for name, levels in factors.items() if name != SEED and len(levels) > 1}
    return {**joined, **space, **{name: _plain(found) for name, found in own.items()}}


def read_dimension(text: str) -> Dimension:
    """The dimension that a text of [search.space] says; RecipeError with all faults if it says none.

    It is `integer(lo, hi, step=, log=)`, `real(lo, hi, log=)` or `choice(option, …)`.
    """
    faults = grammar_faults.Faults(text)
    syntax = read(text, faults)
    found: Dimension | None = None
    if isinstance(syntax, Call) and syntax.name in NUMBERS:
        found = dimension(
            syntax, Parameter(name=syntax.name, kind=syntax.name, meaning="a dimension"), faults
        )
    elif isinstance(syntax, Call) and syntax.name == "choice" and syntax.arguments:
        found = Choice(tuple(_option(text, argument, faults) for argument in syntax.arguments))
    elif not faults:
        faults.add(0, len(text), "expected integer(lo, hi), real(lo, hi) or choice(option, …)")
    if found is None or faults:
        raise RecipeError(text, faults)
    return found


def ends(found: Dimension) -> tuple[Level, ...]:
    """The values of a dimension that stand for all of it: both ends, or every option."""
    if isinstance(found, Choice):
        return tuple(label(option) for option in found.options)
    return (found.low, found.high)


def _option(text: str, argument: Argument, faults: grammar_faults.Faults) -> Level:
    """An option as plain data: a number, true or false, or its text."""
    if argument.name is not None:
        faults.add(
            argument.start, argument.end, f"the options of a choice have no names, got {argument.name}="
        )
    match argument.value:
        case Number(value=number):
            return number
        case Call(name="true" | "false" as word, arguments=None):
            return word == "true"
        case _:
            return text[argument.start : argument.end]


def _plain(found: Dimension) -> Dimension:
    """The dimension with the options of a choice as plain data."""
    return Choice(tuple(label(option) for option in found.options)) if isinstance(found, Choice) else found
