"""Tries the settings that levels and dimensions give, before anything runs."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import replace

from ...grammar.nodes import Dimension
from ..schema.design import level_key
from ..schema.factors import SEED
from ..schema.search import representative_values
from ..schema.settings import Level
from ..text.diagnostics import Diagnostics
from ..text.errors import path_prefix
from ..text.pydantic_messages import InvalidTableError, ValidationProblem, format_value
from ..text.toml_positions import KeyPath
from .draft import Draft, PlacedLevels
from .resolve import resolve_settings
from .template import RECIPE_PATH, Template


def check_levels(draft: Draft) -> None:
    """Try the levels of the design and of [[cells]], and note their faults.

    Levels that a design combines freely are tried one by one, cells that it pairs or lists each as a whole:
    a pair that never occurs is no fault.
    """
    axes, design = _valid_axes(draft), draft.design
    combined = {name: _combined_levels(draft, name, levels) for name, levels in axes.items()}
    if design.kind == "zip":
        rows = zip(*(draft.combined_levels(name) for name in design.crossed), strict=True)
        for row in rows if design.crossed else [()]:
            _try_cell(draft, axes, dict(zip(design.crossed, row, strict=True)))
    elif design.crossed or not design.listed_cells:
        _try_levels(draft, {name: levels for name, levels in combined.items() if levels})
    for cell in draft.listed_cells():
        _try_cell(draft, axes, cell)


def _try_levels(draft: Draft, axes: Mapping[str, PlacedLevels]) -> None:
    """Try the first level of every axis, then each other level with them, and note their faults.

    A problem of the first levels together is the fault of the one axis whose other levels cure it. So faults
    are reported for levels, not for cells, and a grid of any size is tried once per level.
    """
    first = {name: levels[0][1] for name, levels in axes.items()}
    wrong = _problems(draft, first)
    cures: dict[ValidationProblem, set[str]] = {problem: set() for problem in wrong}
    for name, levels in axes.items():
        for path, level in levels[1:]:
            found = _problems(draft, {**first, name: level})
            for problem in found:
                if problem not in wrong:
                    report_problem(draft.diagnostics, problem, path)
            for problem in wrong:
                if problem not in found:
                    cures[problem].add(name)
    texts = {name: [level for _, level in levels] for name, levels in axes.items()}
    for problem in wrong:
        names = [
            name for name in cures[problem] or draft.template.names_at(problem.path, texts) if name in axes
        ]
        report_problem(draft.diagnostics, problem, axes[names[0]][0][0] if len(names) == 1 else None)


def _try_cell(
    draft: Draft, axes: Mapping[str, PlacedLevels], cell: Mapping[str, tuple[KeyPath, Level]]
) -> None:
    """Try one cell, if its levels are valid, and note its faults."""
    levels = {name: level for name, (_, level) in cell.items()}
    if not all(level in [one for _, one in axes.get(name, ())] for name, level in levels.items()):
        return
    others = {name: found[0][1] for name, found in axes.items() if name not in draft.design.factors}
    for problem in _problems(draft, {**others, **levels}):
        places = {name: path for name, (path, _) in cell.items()}
        report_cell_problem(draft.diagnostics, draft.template, problem, levels, places)


def report_cell_problem(
    diagnostics: Diagnostics,
    template: Template,
    problem: ValidationProblem,
    levels: Mapping[str, Level],
    places: Mapping[str, KeyPath],
) -> None:
    """Note a problem of a cell: at the one level that causes it if that has a place, else with all levels.

    `places` has the paths of levels; if it is empty, each problem is noted at its key, with the levels.
    """
    texts = {name: [level] for name, level in levels.items()}
    names = [name for name in template.names_at(problem.path, texts) if name in levels]
    if len(names) == 1 and names[0] in places:
        report_problem(diagnostics, problem, places[names[0]])
        return
    where = ", ".join(f"{name}={format_value(levels[name])}" for name in names)
    message = f"{problem.message}, where {where}" if where else problem.message
    report_problem(diagnostics, replace(problem, message=message))


def _combined_levels(draft: Draft, name: str, levels: PlacedLevels) -> PlacedLevels:
    """The levels of an axis that the design combines, the baseline's first."""
    cells = ("cells", "study") if name in draft.design.factors else ()
    own, named = [one for one in levels if one[0][0] not in cells], draft.design.baseline
    return tuple(sorted(own, key=lambda one: name in named and level_key(one[1]) != level_key(named[name])))


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
    """The search dimensions in the recipe itself."""
    text = draft.template.texts.get(RECIPE_PATH)
    if text is None or RECIPE_PATH in draft.diagnostics.invalid:
        return {}
    return dict(draft.template.expand(text).dimensions)


def _valid_axes(draft: Draft) -> dict[str, PlacedLevels]:
    """Every axis with its valid values; values whose holes only an empty axis would fill are invalid."""
    axes, previous = draft.axes(), dict[str, PlacedLevels]()
    while axes != previous:  # a level becomes invalid when no valid level fills its hole
        previous = axes
        left = {
            name: tuple(one for one in levels if _is_valid(draft, *one, previous))
            for name, levels in previous.items()
        }
        axes = {name: levels for name, levels in left.items() if levels}
    for path, names in draft.template.holes.items():
        if not axes.keys() >= set(names):
            draft.diagnostics.invalid.add(path)
    own = recipe_dimensions(draft)
    return axes | {
        name: tuple((RECIPE_PATH, level) for level in representative_values(found))
        for name, found in own.items()
    }


def _is_valid(draft: Draft, path: KeyPath, level: Level, axes: Container[str]) -> bool:
    """Whether a level is valid and something can fill each of its holes."""
    fillable = all(hole in axes for hole in draft.template.names_in_level(level))
    return fillable and path not in draft.diagnostics.invalid


def _problems(draft: Draft, values: Mapping[str, Level]) -> list[ValidationProblem]:
    """The problems of the settings with these values that are not reported yet."""
    still_open = {name: f"{{{name}}}" for names in draft.template.holes.values() for name in names}
    try:
        resolve_settings(draft.template, {**still_open, **values, SEED: 0})
    except InvalidTableError as error:
        return [
            found
            for found in error.problems
            if found.path and not draft.diagnostics.already_reported(found.path)
        ]
    return []
