"""The table [search]: the search space, and checks of the settings."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from random import Random
from typing import Any

from ...errors import FaultCollector, nearest_hint
from ...grammar import Parameter, RecipeError
from ...grammar.checker import NUMBER_FORMS, parse_range
from ...grammar.dimensions import representative_values
from ...grammar.nodes import ChoiceDimension, Dimension, IntegerDimension, RealDimension
from ...grammar.parser import ArgumentSyntax, CallSyntax, NumberSyntax, parse_syntax
from ..catalog.metrics import COSTS, MODEL_COSTS
from ..catalog.samplers import (
    ONE_OBJECTIVE,
    WITHOUT_CONDITIONS,
    WITHOUT_LIMITS,
    TpeSettings,
)
from ..text.document import Diagnostics
from ..text.strict_model import PartSettings, format_value
from ..text.toml_positions import KeyPath
from .factors import SEED, NamedLevels
from .limits import Limit, is_known_before
from .reported_metrics import final_metrics, last_metrics, missing_metric
from .search_settings import (
    EPOCHS,
    NONE,
    RACE,
    SearchSettings,
    usual_direction,
)
from .settings import Level, StudySettings, TrialSettings

_PROBES = 200
"""The number of points that are drawn to find dimensions that some points lack."""

MAX_COUNTED = 2_000
"""The maximum number of combinations that are resolved to count a space's points, each in about 1 ms."""

Suggest = Callable[[str, Dimension], Level]
"""Chooses the value of a dimension, given its name."""

ChoosePoint = Callable[[Suggest], dict[str, Level]]
"""Chooses a point by calling the given function for each active dimension; returns the values by name."""


def read_search(
    diagnostics: Diagnostics, given: Mapping[str, Any], limits: Sequence[Limit]
) -> tuple[SearchSettings | None, dict[str, Dimension]]:
    """Return the settings of the table [search] and the dimensions of its space.

    Faults are reported; an invalid dimension is left out.
    """
    settings = diagnostics.validate(SearchSettings, ("search",), given)
    if settings is None:
        space = given.get("space") if isinstance(given, Mapping) else None
        texts = space if isinstance(space, Mapping) else {}
        texts = {name: text for name, text in texts.items() if isinstance(text, str)}
        return None, _read_space(diagnostics, texts)
    _check_quantities(diagnostics, settings, limits)
    return settings, _read_space(diagnostics, settings.space)


def _read_space(diagnostics: Diagnostics, texts: Mapping[str, str]) -> dict[str, Dimension]:
    space: dict[str, Dimension] = {}
    for name, text in texts.items():
        try:
            space[name] = read_dimension(text)
        except RecipeError as error:
            diagnostics.report_faults(("search", "space", name), error.faults)
    return space


def check_search(
    diagnostics: Diagnostics,
    settings: SearchSettings,
    factors: Mapping[str, tuple[Level, ...]],
    dimensions: Mapping[str, Dimension],
) -> None:
    """Report faults of a search: missing or unsuitable dimensions, and names used twice."""
    real = [name for name, dimension in dimensions.items() if isinstance(dimension, RealDimension)]
    if not dimensions and not diagnostics.faults:
        diagnostics.report(
            ("search",), "nothing to search: add a dimension to [search.space] or to the recipe"
        )
    if real and settings.sampler_name == "grid":
        diagnostics.report(
            ("search", "sampler"),
            f"a grid cannot enumerate the real numbers of {', '.join(real)}: write choice(…) instead of "
            "real(…), or use another sampler",
        )
    check_across(diagnostics, settings.across, factors, settings.fidelity)
    if settings.scheduler.name == RACE and len(factors[SEED]) < 2:
        diagnostics.report(("search", "scheduler"), f"{RACE} needs several seeds, got one in [factors]")
    for name in settings.space:
        if name in factors:
            diagnostics.report(
                ("search", "space", name), f"'{name}' is already a factor: rename one of the two", key=True
            )


def check_across(
    diagnostics: Diagnostics, across: Sequence[object], factors: Collection[str], fidelity: str = ""
) -> None:
    """Report names in `[search] across` that are no factors, or are used twice."""
    for number, name in enumerate(across):
        known = [each for each in factors if each not in (SEED, fidelity)]
        if isinstance(name, str) and name not in known:
            message = f"unknown factor '{name}'{nearest_hint(name, known)}"
            diagnostics.report(("search", "across", number), message)
        elif name in across[:number]:
            diagnostics.report(("search", "across"), f"expected each factor once, got '{name}' twice")


def check_search_space(
    diagnostics: Diagnostics,
    settings: SearchSettings,
    dimensions: Mapping[str, Dimension],
    choose: ChoosePoint,
) -> None:
    """Report dimensions that only some points have, if the sampler does not support them."""
    path, sampler = ("search", "sampler"), settings.sampler_name
    # a dimension of one block is absent from points that choose another block; random points show such ones
    absent, rng = set[str](), Random(0)
    for _ in range(_PROBES if sampler in WITHOUT_CONDITIONS else 0):
        absent |= dimensions.keys() - choose(lambda _, each: rng.choice(representative_values(each))).keys()
    if absent:
        lacking = ", ".join(name for name in dimensions if name in absent)
        diagnostics.report(
            path,
            f"{sampler} needs the same dimensions in all points, but some lack {lacking}: "
            "tpe, evolution and gp_trees support conditional dimensions",
        )


def check_search_ends(
    diagnostics: Diagnostics, settings: SearchSettings, limits: Sequence[Limit], ends: Iterable[TrialSettings]
) -> None:
    """Report objectives and limits without a value at an end of the search space.

    `ends` are trials with the first or last values of all dimensions. Also report an objective that is known
    too late for a scheduler that reads it after each epoch.
    """
    ends = list(ends)
    for objective in settings.objectives:
        missing = (missing_metric(objective.name, [each]) for each in ends)
        if fault := next(filter(None, missing), "") or _too_late(objective.name, settings, ends):
            diagnostics.report(("search", "metric"), fault)
    for limit in limits:
        if fault := next(filter(None, (missing_metric(limit.name, [each]) for each in ends)), ""):
            diagnostics.report(("study", "limits", limit.name), fault)


def _check_quantities(diagnostics: Diagnostics, settings: SearchSettings, limits: Sequence[Limit]) -> None:
    path, names = ("search", "metric"), [each.name for each in settings.objectives]
    for name in names:
        if not settings.direction and usual_direction(name) is None:
            message = (
                f"it is not known whether higher or lower {name} is better: set direction = 'max' or 'min'"
            )
            diagnostics.report(path, message)
    several = f"needs a single metric, got {', '.join(names)}"
    if len(names) > 1 and settings.sampler_name in ONE_OBJECTIVE:
        diagnostics.report(("search", "sampler"), f"{settings.sampler_name} {several}")
    if len(names) > 1 and settings.scheduler.name != NONE:
        diagnostics.report(("search", "scheduler"), f"{settings.scheduler.name} {several}")
    if settings.scheduler.name == RACE and is_known_before(names[0]):
        diagnostics.report(path, f"{RACE} needs a metric that depends on the seed, got '{names[0]}'")
    if settings.fidelity != EPOCHS and is_known_before(names[0]):
        diagnostics.report(
            path, f"{settings.scheduler.name} needs a metric that training changes, got '{names[0]}'"
        )
    if settings.compares_epochs and len(names) == 1 and names[0] in (*COSTS, *MODEL_COSTS):
        late = f"{settings.scheduler.name} needs a metric that is measured after each epoch"
        diagnostics.report(path, f"{late}, got '{names[0]}'")
    learnt = [each.name for each in limits if not is_known_before(each.name)]
    if learnt and settings.sampler_name in WITHOUT_LIMITS:
        diagnostics.report(
            ("search", "sampler"),
            f"{settings.sampler_name} does not support limits on metrics that are known only after training: "
            f"remove {', '.join(f'limits.{name}' for name in learnt)}, or use another sampler",
        )


def _too_late(name: str, search: SearchSettings, ends: Sequence[TrialSettings]) -> str:
    """Return an error message if a scheduler needs a metric before it is known.

    Return "" otherwise. Such a scheduler compares points after each epoch.
    """
    for each in ends if search.compares_epochs else ():
        if name in (late := last_metrics(each)):
            early = [one for one in final_metrics(each) if one not in late]
            rule = f"{search.scheduler.name} needs a metric that is measured after each epoch"
            return f"{rule}: expected one of {', '.join(early)}; got '{name}'"
    return ""


def read_baseline(
    diagnostics: Diagnostics, header: StudySettings, dimensions: Mapping[str, Dimension], choose: ChoosePoint
) -> dict[str, Level]:
    """Return the point of `[study] baseline`, which a search trains first; empty if there is none.

    Report a point outside the space.
    """
    path: KeyPath = ("study", "baseline")
    given = dict(header.baseline)
    if not given:
        if header.baseline_seeds is not None:
            message = "baseline_seeds needs a baseline: add baseline = { … }"
            diagnostics.report(("study", "baseline_seeds"), message)
        return {}
    check_baseline_values(diagnostics, given, dimensions)
    if diagnostics.faults:
        return {}
    given = {name: as_listed(dimensions[name], value) for name, value in given.items()}
    missing = list[str]()

    def value_of(name: str, dimension: Dimension) -> Level:
        missing.extend([name] if name not in given else [])
        return given.get(name, representative_values(dimension)[0])

    point = choose(value_of)
    idle = [name for name in given if name not in point]
    if missing:
        diagnostics.report(path, f"expected a value of each dimension: {', '.join(missing)} is missing")
    elif idle:
        diagnostics.report(path, f"this point does not use {', '.join(idle)}: remove the value")
    return point


def check_baseline_values(
    diagnostics: Diagnostics,
    given: Mapping[str, object],
    dimensions: Mapping[str, Dimension],
    faulty: Collection[str] = (),
) -> None:
    """Report names of `[study] baseline` that are no dimensions, and values outside of their dimensions.

    Names in `faulty` may be dimensions with a fault of their own.
    """
    path: KeyPath = ("study", "baseline")
    for name, value in given.items():
        if name not in dimensions and name in faulty:
            continue
        if name not in dimensions:
            message = f"unknown dimension '{name}'{nearest_hint(name, dimensions)}"
            diagnostics.report((*path, name), message, key=True)
        elif isinstance(dimension := dimensions[name], ChoiceDimension):
            try:
                options_by_name(dimension).find(value)
            except ValueError as error:
                diagnostics.report((*path, name), str(error))
        elif not contains(dimension, value):
            step = 1 if isinstance(dimension, RealDimension) else dimension.step
            steps = f" in steps of {step}" if step > 1 else ""
            values = f"{dimension.low} to {dimension.high}{steps}"
            diagnostics.report((*path, name), f"expected {values}, got {format_value(value)}")


def search_dimensions(
    factors: Mapping[str, tuple[Level, ...]],
    space: Mapping[str, Dimension],
    own: Mapping[str, Dimension],
    across: Collection[str] = (),
) -> dict[str, Dimension]:
    """Return all dimensions of a search.

    They come from [factors], [search.space] and the recipe (`own`). A factor is a dimension if it has several
    levels and is not in `across`. The options of a choice are plain data, parts of a recipe as text.
    """
    choices = {
        name: ChoiceDimension(levels)
        for name, levels in factors.items()
        if name not in (SEED, *across) and len(levels) > 1
    }
    plain = {
        name: ChoiceDimension(representative_values(each)) if isinstance(each, ChoiceDimension) else each
        for name, each in own.items()
    }
    return {**choices, **space, **plain}


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


def default_sampler(settings: SearchSettings, limits: Sequence[Limit]) -> PartSettings:
    """Return the default sampler: `gp_trees` where possible, else `tpe`.

    `gp_trees` supports neither several metrics nor limits on values that only training shows.
    """
    learns_limits = any(not is_known_before(each.name) for each in limits)
    several = len(settings.metric) > 1
    return TpeSettings(name="tpe") if several or learns_limits else PartSettings(name="gp_trees")


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
