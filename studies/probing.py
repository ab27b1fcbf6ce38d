"""The settings that levels and dimensions give, tried before anything runs: what is wrong, and why."""

from __future__ import annotations

from collections.abc import Container, Mapping

from ..grammar.nodes import Dimension
from .draft import Draft, Levels
from .factors import SEED
from .faults import where
from .positions import KeyPath
from .report import Report
from .search import ends
from .settings import Level
from .settling import settle
from .template import RECIPE
from .wording import Problem, ProblemsError


def check_settings(draft: Draft) -> None:
    """Try the first level of everything, then each other level alone, and note what is wrong with that.

    A problem that the first levels have together is the fault of the one axis whose other levels cure it. So
    faults are told of levels, not of cells, and a grid of any size needs as many trials as it has levels.
    """
    axes = _sound_axes(draft)
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
