"""Tries the settings that levels and search dimensions give, before anything runs."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import replace
from itertools import islice

from ...grammar.nodes import Dimension
from ..schema.conditions import is_level
from ..schema.design import Design, level_key
from ..schema.factors import ABSENT, SEED
from ..schema.search import representative_values
from ..schema.settings import Level
from ..text.diagnostics import Diagnostics
from ..text.errors import path_prefix
from ..text.pydantic_messages import InvalidTableError, ValidationProblem, format_value
from ..text.toml_positions import KeyPath
from .draft import Draft, PlacedLevels
from .resolve import resolve_settings
from .template import RECIPE_PATH, Template

_FREE = ("grid", "one_at_a_time")  # the designs in which levels are as good alone as with others
_MAX_TRIED = 200  # cells; the faults of more are told without the place of a level


def check_levels(draft: Draft) -> None:
    """Try the levels of the design and of [[cells]], and note their faults.

    Levels that the design combines freely are tried one by one. Cells that it pairs, draws or lists are tried
    whole: a combination that never occurs is not a fault.
    """
    axes, design = _valid_axes(draft), draft.design
    combined = {name: _combined_levels(draft, name, levels) for name, levels in axes.items()}
    if design.kind not in _FREE:
        for cell in islice(draft.combined_cells(), _MAX_TRIED):
            _try_cell(draft, axes, cell)
    elif design.crossed or not design.listed_cells:
        _try_levels(draft, {name: levels for name, levels in combined.items() if levels})
    for cell in draft.listed_cells():
        _try_cell(draft, axes, cell)


def _try_levels(draft: Draft, axes: Mapping[str, PlacedLevels]) -> None:
    """Try the first level of every axis together, then every other level in place of its axis's first.

    A problem that the first levels have together is the fault of an axis if only its other levels cure it. So
    faults are reported for levels, not for cells, and a grid of any size takes one trial per level.
    """
    first = {name: levels[0][1] for name, levels in axes.items()}
    first_problems = _problems(draft, draft.design.settled(first))
    cured_by: dict[ValidationProblem, set[str]] = {problem: set() for problem in first_problems}
    for name, levels in axes.items():
        first_too = name in draft.design.conditions  # the first levels together may be without it
        for path, level in levels if first_too else levels[1:]:
            problems = _problems(draft, _where_it_is(draft.design, {**first, name: level}, name))
            for problem in problems:
                if problem not in first_problems:
                    report_problem(draft.diagnostics, problem, path)
            for problem in first_problems:
                if problem not in problems:
                    cured_by[problem].add(name)
    values = {name: [level for _, level in levels] for name, levels in axes.items()}
    for problem in first_problems:
        causes = cured_by[problem] or set(draft.template.names_at(problem.path, values)) & axes.keys()
        origin = axes[causes.pop()][0][0] if len(causes) == 1 else None
        report_problem(draft.diagnostics, problem, origin)


def _where_it_is(design: Design, levels: Mapping[str, Level], name: str) -> dict[str, Level]:
    """Return the levels that the condition of a factor asks of others, with absent ones marked."""
    asked = list(design.conditions.get(name, {}).items())
    found = dict(levels)
    for other, of in asked:  # grows while it is walked
        if of and not is_level(found[other], of):  # a condition without any level is a fault of its own
            found[other] = of[0]
        asked += design.conditions.get(other, {}).items()
    return design.settled(found)


def _try_cell(
    draft: Draft, axes: Mapping[str, PlacedLevels], cell: Mapping[str, tuple[KeyPath, Level]]
) -> None:
    """Try one cell, if its levels are valid, and note its faults."""
    levels = {name: level for name, (_, level) in cell.items()}
    paths = {name: path for name, (path, _) in cell.items()}
    tried = ((name, level) for name, level in levels.items() if level != ABSENT)
    if not all(level in [valid for _, valid in axes.get(name, ())] for name, level in tried):
        return
    others = {name: placed[0][1] for name, placed in axes.items() if name not in draft.design.factors}
    for problem in _problems(draft, {**others, **levels}):
        report_cell_problem(draft.diagnostics, draft.template, problem, levels, paths)


def report_cell_problem(
    diagnostics: Diagnostics,
    template: Template,
    problem: ValidationProblem,
    levels: Mapping[str, Level],
    paths: Mapping[str, KeyPath],
) -> None:
    """Note a problem of a cell: at the level that causes it, or at its own key with the levels that may.

    `paths` has the paths of the levels in the file, as far as they are there.
    """
    values = {name: [level] for name, level in levels.items()}
    names = [name for name in template.names_at(problem.path, values) if name in levels]
    if len(names) == 1 and names[0] in paths:
        report_problem(diagnostics, problem, paths[names[0]])
        return
    where = ", ".join(f"{name}={format_value(levels[name])}" for name in names)
    message = f"{problem.message}, where {where}" if where else problem.message
    report_problem(diagnostics, replace(problem, message=message))


def _combined_levels(draft: Draft, name: str, levels: PlacedLevels) -> PlacedLevels:
    """Return the levels of an axis that the design combines, the baseline's first."""
    listed, baseline = ("cells", "study") if name in draft.design.factors else (), draft.design.baseline
    return tuple(
        sorted(
            ((path, level) for path, level in levels if path[0] not in listed),
            key=lambda placed: name in baseline and level_key(placed[1]) != level_key(baseline[name]),
        )
    )


def report_problem(
    diagnostics: Diagnostics, problem: ValidationProblem, origin: KeyPath | None = None
) -> None:
    """Note a problem of settings: at the level or dimension that causes it, or at its own key.

    At a level the message says where it was tried: `[factors] width: as [model] d_model: expected …`.
    """
    if origin is None or origin == problem.path:
        diagnostics.report_error(problem.path, problem.message, key=problem.key)
    else:
        inside = "" if problem.path == RECIPE_PATH else f"as {path_prefix(problem.path)}"
        diagnostics.report_error(origin, inside + problem.message)


def recipe_dimensions(draft: Draft) -> dict[str, Dimension]:
    """Return the search dimensions in the recipe itself."""
    text = draft.template.texts.get(RECIPE_PATH)
    if text is None or RECIPE_PATH in draft.diagnostics.invalid:
        return {}
    return dict(draft.template.expand(text).dimensions)


def _valid_axes(draft: Draft) -> dict[str, PlacedLevels]:
    """Every axis with its valid values; a value whose hole no valid value can fill is invalid too."""
    axes, previous = draft.axes(), dict[str, PlacedLevels]()
    while axes != previous:  # a level becomes invalid when no valid level fills its hole
        previous = axes
        valid = {
            name: tuple(placed for placed in levels if _is_valid(draft, name, *placed, previous))
            for name, levels in previous.items()
        }
        axes = {name: levels for name, levels in valid.items() if levels}
    for path, names in draft.template.holes.items():
        if not axes.keys() >= set(names):
            draft.diagnostics.invalid.add(path)
    return axes | {
        name: tuple((RECIPE_PATH, level) for level in representative_values(dimension))
        for name, dimension in recipe_dimensions(draft).items()
    }


def _is_valid(draft: Draft, name: str, path: KeyPath, level: Level, axes: Container[str]) -> bool:
    """Return whether a level is valid and something can fill each of its holes."""
    fillable = all(hole in axes for hole in draft.template.names_in_level(level, name))
    return fillable and path not in draft.diagnostics.invalid


def _problems(draft: Draft, values: Mapping[str, Level]) -> list[ValidationProblem]:
    """Return the problems of the settings with these values that are not reported yet."""
    unfilled = {name: f"{{{name}}}" for name in draft.template.hole_names}
    try:
        resolve_settings(draft.template, {**unfilled, **values, SEED: 0})
    except InvalidTableError as error:
        return [
            problem
            for problem in error.problems
            if problem.path and not draft.diagnostics.already_reported(problem.path)
        ]
    return []
