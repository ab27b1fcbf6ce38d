"""The settings that levels and dimensions give, tried before anything runs: what is wrong, and why."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import replace

from ..grammar.nodes import Dimension
from .design import same
from .draft import Draft, Levels
from .factors import SEED
from .faults import where
from .positions import KeyPath
from .report import Report
from .search import ends
from .settings import Level
from .settling import settle
from .template import RECIPE, Template
from .wording import Problem, ProblemsError, shown


def check_settings(draft: Draft) -> None:
    """Try what the cells of the design and [[cells]] are made of, and note what is wrong with that.

    Levels that a design combines freely are tried one by one, cells that it pairs or lists each as it is: a
    pair that is never asked for is no fault.
    """
    axes, design = _sound_axes(draft), draft.design
    combined = {name: _combined(draft, name, levels) for name, levels in axes.items()}
    if design.kind == "zip":
        rows = zip(*(draft.combined(name) for name in design.crossed), strict=True)
        for row in rows if design.crossed else [()]:
            _try_cell(draft, axes, dict(zip(design.crossed, row, strict=True)))
    elif design.crossed or not design.listed:
        _try_levels(draft, {name: levels for name, levels in combined.items() if levels})
    for cell in draft.listed():
        _try_cell(draft, axes, cell)


def _try_levels(draft: Draft, axes: Mapping[str, Levels]) -> None:
    """Try the first level of everything, then each other level alone, and note what is wrong with that.

    A problem that the first levels have together is the fault of the one axis whose other levels cure it. So
    faults are told of levels, not of cells, and a grid of any size needs as many trials as it has levels.
    """
    first = {name: levels[0][1] for name, levels in axes.items()}
    wrong = _problems(draft, first)
    cures: dict[Problem, set[str]] = {problem: set() for problem in wrong}
    for name, levels in axes.items():
        for path, level in levels[1:]:
            found = _problems(draft, {**first, name: level})
            for problem in found:
                if problem not in wrong:
                    note_problem(draft.report, problem, path)
            for problem in wrong:
                if problem not in found:
                    cures[problem].add(name)
    texts = {name: [level for _, level in levels] for name, levels in axes.items()}
    for problem in wrong:
        names = [
            name for name in cures[problem] or draft.template.names_at(problem.path, texts) if name in axes
        ]
        note_problem(draft.report, problem, axes[names[0]][0][0] if len(names) == 1 else None)


def _try_cell(draft: Draft, axes: Mapping[str, Levels], cell: Mapping[str, tuple[KeyPath, Level]]) -> None:
    """Try one cell, if its levels are sound, and note what is wrong with it."""
    levels = {name: level for name, (_, level) in cell.items()}
    if not all(level in [one for _, one in axes.get(name, ())] for name, level in levels.items()):
        return
    others = {name: found[0][1] for name, found in axes.items() if name not in draft.design.factors}
    for problem in _problems(draft, {**others, **levels}):
        places = {name: path for name, (path, _) in cell.items()}
        note_of_cell(draft.report, draft.template, problem, levels, places)


def note_of_cell(
    report: Report,
    template: Template,
    problem: Problem,
    levels: Mapping[str, Level],
    places: Mapping[str, KeyPath],
) -> None:
    """Note a problem of a cell: at the one level that it comes from if that has a place, else with all.

    `places` has where levels stand; where it is empty, each problem is told at its key, with the levels.
    """
    texts = {name: [level] for name, level in levels.items()}
    names = [name for name in template.names_at(problem.path, texts) if name in levels]
    if len(names) == 1 and names[0] in places:
        note_problem(report, problem, places[names[0]])
        return
    where = ", ".join(f"{name}={shown(levels[name])}" for name in names)
    message = f"{problem.message}, where {where}" if where else problem.message
    note_problem(report, replace(problem, message=message))


def _combined(draft: Draft, name: str, levels: Levels) -> Levels:
    """The levels of an axis that the design combines, that of the baseline first."""
    cells = ("cells", "study") if name in draft.design.factors else ()
    own, named = [one for one in levels if one[0][0] not in cells], draft.design.baseline
    return tuple(sorted(own, key=lambda one: name in named and same(one[1]) != same(named[name])))


def note_problem(report: Report, problem: Problem, origin: KeyPath | None = None) -> None:
    """Note a problem of some settings: at the level or dimension that it comes from, or at its own key.

    At a level the message says as what it was tried: `[factors] width: as [model] d_model: expected …`.
    """
    if origin is None or origin == problem.path:
        report.note(problem.path, problem.message, key=problem.key)
    else:
        inside = "" if problem.path == RECIPE else f"as {where(problem.path)}"
        report.note(origin, inside + problem.message)


def own_dimensions(draft: Draft) -> dict[str, Dimension]:
    """The search dimensions that stand in the recipe itself."""
    text = draft.template.texts.get(RECIPE)
    if text is None or RECIPE in draft.report.spoiled:
        return {}
    return dict(draft.template.expanded(text).dimensions)


def _sound_axes(draft: Draft) -> dict[str, Levels]:
    """Every axis with its values that are not spoiled; what an axis without any would fill is spoiled."""
    axes, sound = draft.axes(), dict[str, Levels]()
    while axes != sound:  # a level falls when what would fill its holes has fallen
        sound = axes
        left = {
            name: tuple(one for one in levels if _is_sound(draft, *one, sound))
            for name, levels in sound.items()
        }
        axes = {name: levels for name, levels in left.items() if levels}
    for path, names in draft.template.holes.items():
        if not axes.keys() >= set(names):
            draft.report.spoiled.add(path)
    own = own_dimensions(draft)
    return axes | {name: tuple((RECIPE, level) for level in ends(found)) for name, found in own.items()}


def _is_sound(draft: Draft, path: KeyPath, level: Level, axes: Container[str]) -> bool:
    """Whether a level is not spoiled and something can fill each of its holes."""
    holes = draft.template.names_in(level) if isinstance(level, str) else []
    return path not in draft.report.spoiled and all(hole in axes for hole in holes)


def _problems(draft: Draft, values: Mapping[str, Level]) -> list[Problem]:
    """What is wrong with the settings of these values and is not known yet."""
    still_open = {name: f"{{{name}}}" for names in draft.template.holes.values() for name in names}
    try:
        settle(draft.template, {**still_open, **values, SEED: 0})
    except ProblemsError as error:
        return [found for found in error.problems if found.path and not draft.report.knows(found.path)]
    return []
