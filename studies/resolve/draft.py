"""A study under validation: its fragments, recipes, holes and levels.

Holes are filled by factors, by dimensions of a search, by a solved size, and by fragments. Fragments are the
entries of [recipes]. They are expanded before any other hole is filled, so that a trial does not depend on
their names. A level is a part of a recipe if its factor's hole takes a part, and plain data if it takes a
value.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from itertools import chain, islice
from typing import Any

from ...errors import hint, nearest
from ...grammar import Recipe, RecipeError
from ...grammar.dimensions import representative_values
from ...grammar.nodes import Dimension
from ..schema.design import BASELINE_PATH, MAX_TRIALS, Design
from ..schema.factors import ABSENT, HOLE_PATTERN, SEED, is_name, level_key
from ..schema.settings import D_MODEL_PATH, RECIPE_PATH, Level, TrialSettings, read_recipe
from ..text.document import Diagnostics
from ..text.errors import path_prefix
from ..text.strict_model import ValidationProblem, as_table, format_value
from ..text.toml_positions import KeyPath
from .template import (
    TRIAL_TABLES,
    InvalidSettingsError,
    Template,
    iter_texts,
    resolve_settings,
    value_holes,
)

PlacedLevels = tuple[tuple[KeyPath, Level], ...]
"""Levels, each with its path in the file."""


def filler_kinds(data: Mapping[str, Any]) -> dict[str, str]:
    """Return every name that can fill a hole, with its kind, such as "a factor".

    The kind may also be "a dimension" of a search, or "a size" that is solved in each cell.
    """
    study, cells = as_table(data.get("study")), data.get("cells")
    tables = [
        (study.get("baseline") if "match" in study else None, "a size"),
        (as_table(data.get("search")).get("space"), "a dimension"),
        *((cell, "a factor") for cell in (cells if isinstance(cells, list) else ())),
        (data.get("factors"), "a factor"),
    ]
    return {**{name: kind for table, kind in tables for name in as_table(table)}, SEED: "a factor"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A study file under validation. `data` has its tables with what expansions add to them."""

    diagnostics: Diagnostics
    data: Mapping[str, Any]
    template: Template
    design: Design
    space: Mapping[str, Dimension]

    def declared_names(self) -> set[str]:
        """Return all names that holes such as `{mixer}` may use.

        Names with invalid values are included. They are the names of factors, search dimensions and
        fragments.
        """
        return {*filler_kinds(self.data), *as_table(self.data.get("recipes"))} - {SEED}

    def axes(self) -> dict[str, PlacedLevels]:
        """Return the values that may fill each hole, with their first paths in the file.

        The values are a factor's levels, representative values of a search dimension, or a size. A level that
        [[cells]] does not state has its path in the baseline.
        """
        places: dict[tuple[str, str], KeyPath] = {}
        for name, levels in self.design.combined_factors.items():
            for index, level in enumerate(levels) if name != SEED else ():
                places.setdefault((name, level_key(level)), ("factors", name, index))
        tables = self.data.get("cells", [])
        for index, cell in self.design.listed_cells.items():
            for name, level in cell.items():
                path = ("cells", index, name) if name in tables[index] else (*BASELINE_PATH, name)
                places.setdefault((name, level_key(level)), path)
        factors = {
            name: tuple((places[name, level_key(level)], level) for level in levels)
            for name, levels in self.design.factors.items()
            if name != SEED
        }
        space = {
            name: tuple((("search", "space", name), level) for level in representative_values(dimension))
            for name, dimension in self.space.items()
        }
        size = self.design.matched_size
        sizes = {size.name: (((*BASELINE_PATH, size.name), size.size),)} if size else {}
        return {**factors, **space, **sizes}


_FRAGMENTS = "recipes"


def read_fragments(diagnostics: Diagnostics, data: Mapping[str, Any]) -> dict[str, str]:
    """Return the valid entries of [recipes], in file order; report faulty ones.

    `data` has the study's tables with what expansions add to them. A hole without a value makes a
    fragment invalid, too; `check_holes` reports it.
    """
    others = filler_kinds(data)
    texts = {
        name: text
        for name, text in diagnostics.table(_FRAGMENTS).items()
        if _is_fragment(diagnostics, name, text, others)
    }
    _check_cycles(diagnostics, texts)
    texts = {name: text for name, text in texts.items() if (_FRAGMENTS, name) not in diagnostics.invalid}
    while lacking := [
        name
        for name, text in texts.items()
        if not all(hole in texts or hole in others for hole in HOLE_PATTERN.findall(text))
    ]:
        texts = {name: text for name, text in texts.items() if name not in lacking}
    return texts


def _is_fragment(
    diagnostics: Diagnostics,
    name: str,
    text: Any,  # noqa: ANN401 -- TOML holds anything
    others: Mapping[str, str],
) -> bool:
    path: KeyPath = (_FRAGMENTS, name)
    if not is_name(diagnostics, path):
        diagnostics.invalid.add(path)
    if name in others:
        diagnostics.report(path, f"'{name}' is already {others[name]}", key=True)
        diagnostics.invalid.add(path)
    if not isinstance(text, str):
        diagnostics.report_invalid(path, f"expected a recipe, got {format_value(text)}")
        return False
    recipe = _read(diagnostics, path, text)
    if recipe and recipe.dimensions and not diagnostics.has_search:
        diagnostics.report_invalid(path, "a search dimension needs the table [search]")
    return path not in diagnostics.invalid


def _check_cycles(diagnostics: Diagnostics, texts: Mapping[str, str]) -> None:
    """Report each cycle of entries of [recipes], at the hole where it begins."""
    holes = {
        name: [each for each in HOLE_PATTERN.findall(text) if each in texts] for name, text in texts.items()
    }
    while True:
        try:
            return TopologicalSorter(holes).prepare()
        except CycleError as error:
            cycle = error.args[1][:0:-1]  # an entry, then what it contains
        first = min(range(len(cycle)), key=lambda place: list(texts).index(cycle[place]))
        name, *inner = [*cycle[first:], *cycle[:first]]
        through = f" through {', '.join(inner)}" if inner else ""
        hole = next(each for each in HOLE_PATTERN.finditer(texts[name]) if each[1] == [*inner, name][0])
        diagnostics.report((_FRAGMENTS, name), f"'{name}' contains itself{through}", within=hole.span())
        for each in cycle:
            diagnostics.invalid.add((_FRAGMENTS, each))
            del holes[each]


_NAMED_VALUE = re.compile(r"= *\{ *([A-Za-z]\w*) *\}")


def check_recipes(draft: Draft) -> list[str] | None:
    """Report faults of the recipe, and of the levels and options in it.

    Levels and fragments may contain holes, whose values are checked, too. For a misspelt hole,
    the values of the nearest name are checked. Return the names of the holes that take such parts, or
    None without a recipe.
    """
    report, axes = draft.diagnostics, draft.axes()
    text = draft.template.texts.get(RECIPE_PATH)
    if text is None:
        return None
    recipe = _read(report, RECIPE_PATH, text)
    if recipe and recipe.dimensions and not report.has_search:
        report.report_invalid(RECIPE_PATH, "a search dimension needs the table [search]")
    if recipe:
        _expand(draft, RECIPE_PATH, text)
    names, declared = _part_holes(text, recipe), draft.declared_names()
    names += [near for hole in names if hole not in declared and (near := nearest(hole, declared))]
    known = set(names)
    for name in names:  # the loop appends to this list
        inner = list[str]()
        parts = [(path, level) for path, level in axes.get(name, ()) if isinstance(level, str)]
        for path, level in parts:
            if level in draft.template.table_levels.get(name, {}):
                named = f'for a short name, write [recipes] {level} = "…", and "{{{level}}}" as the level'
                report.report_invalid(path, f"expected a recipe, got a table; {named}")
                continue
            part = _read(report, path, level)
            if part and (expanded := _expand(draft, path, level)) and expanded.dimensions:
                report.report_invalid(
                    path, "a search dimension can be used only in the recipe and in [search.space]"
                )
            inner += _part_holes(level, part)
        fragment = draft.template.fragments.get(name, "")
        if fragment:
            inner += _part_holes(fragment, read_recipe(fragment))
        names += [hole for hole in dict.fromkeys(inner) if hole not in known]
        known.update(inner)
    return names


def check_holes(draft: Draft, parts: Collection[str] | None) -> None:
    """Report holes without a value, values without a hole, and misplaced holes.

    A misspelt hole is a single fault: the nearest name counts as used. A fragment also counts as used
    if only the file without its overrides uses it. `parts` is what `check_recipes` returns: if a part is not
    known, no name is reported as unused, since the part could use it.
    """
    declared, axes, used = draft.declared_names(), draft.axes(), set[str | None]()
    fragments = as_table(draft.data.get("recipes"))
    for path, text in _texts(draft):
        for hole in HOLE_PATTERN.finditer(text):
            used.add(hole[1])
            if hole[1] not in declared:
                near = hint(hole[1], declared) or _how_to_fill(draft, hole[1])
                used.add(nearest(hole[1], declared))  # so that it is not reported as unused
                draft.diagnostics.report_invalid(
                    path, f"no value for the hole {{{hole[1]}}}{near}", within=hole.span()
                )
            elif path[0] in TRIAL_TABLES and (message := _misplacement_message(draft, path, hole[1])):
                draft.diagnostics.report_invalid(path, message, within=hole.span())
    labels = draft.design.labels
    for name in labels:
        if name in used:
            draft.diagnostics.report(
                ("study", "labels"), f"{name} fills the hole {{{name}}}, so it cannot be a label"
            )
    factors = draft.design.combined_factors
    if parts is None or any(name in factors and not factors[name] for name in parts):
        return
    document = draft.diagnostics.document
    tables = (document.as_written or document).data
    with_holes = (*TRIAL_TABLES, "recipes", "factors", "cells", "search")
    written = iter_texts({name: tables.get(name) for name in with_holes})
    as_written = {hole for _, text in written for hole in HOLE_PATTERN.findall(text)}
    for name in (*axes, *(fragment for fragment in fragments if fragment not in as_written)):
        if name not in (*used, *labels) and ("recipes", name) not in draft.diagnostics.invalid:
            path = ("recipes", name) if name in fragments else _declaration_path(draft, name)
            near = hint(name, (SEED,)) if path[0] == "factors" else ""
            remedy = near or f": write {{{name}}} into a recipe or a setting, or remove it"
            draft.diagnostics.report(path, f"'{name}' is unused{remedy}", key=True)


def _how_to_fill(draft: Draft, name: str) -> str:
    if name == SEED:
        return ": seeds cannot fill holes, so use the name of a factor"
    if draft.diagnostics.has_search:
        return f": add {name} to [search.space] as a range, or to [factors] as a list of levels"
    return f": add {name} to [factors], with a list of levels"


def _misplacement_message(draft: Draft, path: KeyPath, name: str) -> str:
    """Return why a key must not use this hole, or "" if it may."""
    if name in draft.template.fragments and path != RECIPE_PATH:
        return f"{{{name}}} is a part of a recipe, so it can be used only in recipes"
    size = draft.design.matched_size
    if size and name == size.name and path not in (RECIPE_PATH, D_MODEL_PATH):
        return f"match computes {{{name}}}, so it can be used only in recipes and in [model] d_model"
    return ""


def _declaration_path(draft: Draft, name: str) -> KeyPath:
    if name in draft.space:
        return ("search", "space", name)
    if name in draft.design.combined_factors:
        return ("factors", name)
    return draft.axes()[name][0][0]


def _read(diagnostics: Diagnostics, path: KeyPath, text: str) -> Recipe | None:
    try:
        return read_recipe(text)
    except RecipeError as error:
        diagnostics.report_faults(path, error.faults)
        return None


def _expand(draft: Draft, path: KeyPath, text: str) -> Recipe | None:
    """Parse a recipe and replace the names of [recipes] in it. Report a fault and return None."""
    try:
        return draft.template.expand(text)
    except RecipeError as error:
        for fault in error.faults:
            draft.diagnostics.report_invalid(path, fault.message)
        return None


def _part_holes(text: str, recipe: Recipe | None) -> list[str]:
    """Return the holes in a recipe that are filled by parts.

    Others stand for numbers or words. For an unreadable recipe, return the holes that are not the
    value of a named argument.
    """
    if recipe is None:
        names, values = HOLE_PATTERN.findall(text), frozenset(_NAMED_VALUE.findall(text))
    else:
        names, values = recipe.holes, value_holes(recipe.root)
    return [name for name in names if name not in values]


def _texts(draft: Draft) -> Iterator[tuple[KeyPath, str]]:
    """Yield every text of a study that may have holes, with its path."""
    yield from draft.template.texts.items()
    for name, text in as_table(draft.data.get("recipes")).items():
        if isinstance(text, str):
            yield ("recipes", name), text
    for name, levels in draft.axes().items():
        for path, level in levels:
            tables = draft.template.table_levels.get(name, {})
            value = tables.get(level, level) if isinstance(level, str) else level
            yield from ((path, text) for _, text in iter_texts(value) if isinstance(level, str))


def check_levels(draft: Draft) -> list[tuple[Mapping[str, Level], TrialSettings]] | None:
    """Try each level of the study in some cell, and report faults.

    A fault is reported at the level that all tried cells with this fault have, and no other cell. So a grid
    of any size needs about one try a level, and a combination that never occurs is not a fault. Return the
    tried cells with their settings, or None if some settings are not known.
    """
    axes = _valid_axes(draft)
    paths = {
        (name, level_key(level)): path for name, levels in axes.items() for path, level in reversed(levels)
    }
    unfilled = {name: f"{{{name}}}" for name in draft.template.hole_names}
    cells = list(_covering_cells(draft, axes, paths))
    known, faulty = list[TrialSettings | None](), dict[ValidationProblem, list[int]]()
    for number, cell in enumerate(cells):
        try:
            known.append(resolve_settings(draft.template, {**unfilled, **cell, SEED: 0}))
        except InvalidSettingsError as error:
            known.append(error.known)
            for problem in error.problems:
                if problem.path and not draft.diagnostics.already_reported(problem.path):
                    faulty.setdefault(problem, []).append(number)
    placed = [{(name, level_key(level)) for name, level in cell.items()} & paths.keys() for cell in cells]
    everywhere = Counter(chain.from_iterable(placed))
    for problem, numbers in faulty.items():
        inside = Counter(chain.from_iterable(placed[number] for number in numbers))
        guilty = [{each for each in placed[number] if inside[each] == everywhere[each]} for number in numbers]
        shared = set.intersection(*guilty)
        blamed = shared if len(shared) == 1 else guilty[0]
        report_problem(
            draft.diagnostics,
            draft.template,
            problem,
            levels=cells[numbers[0]],
            paths={name: paths[name, key] for name, key in placed[numbers[0]]},
            cause=next(iter(blamed))[0] if len(numbers) < len(cells) and len(blamed) == 1 else None,
        )
    settings = [each for each in known if each is not None]
    if len(settings) < len(known):
        return None
    return list(zip(cells, settings, strict=True))


def _covering_cells(
    draft: Draft, axes: Mapping[str, PlacedLevels], placed: Mapping[tuple[str, str], KeyPath]
) -> Iterator[dict[str, Level]]:
    """Yield cells that together have all valid values.

    A grid has every combination, so each value is tried beside the first values. Other designs have their own
    cells; those without a new level are left out. Holes that are not factors, such as dimensions of a search,
    have their first value in all other cells.
    """
    design = draft.design
    is_grid = design.kind == "grid" and not design.conditions and (design.crossed or not design.listed_cells)
    free = dict[str, list[Level]]()
    for name, levels in axes.items():
        for path, level in levels:
            if name not in design.factors or (is_grid and path[0] not in ("cells", "study")):
                free.setdefault(name, []).append(level)
    first = {name: levels[0] for name, levels in free.items()}
    cells = chain([{}] if is_grid else design.combined_cells(), design.listed_cells.values())
    left = {(name, key) for name, key in placed if name in design.factors}
    for number, cell in enumerate(islice(cells, MAX_TRIALS)):
        keys = {(name, level_key(level)) for name, level in cell.items() if level != ABSENT}
        if keys <= placed.keys() and (number == 0 or keys & left):
            yield {**first, **cell}
            left -= keys
            if number == 0:
                values = ((name, level) for name, levels in free.items() for level in levels[1:])
                yield from ({**first, **cell, name: level} for name, level in values)


def report_problem(
    diagnostics: Diagnostics,
    template: Template,
    problem: ValidationProblem,
    *,
    levels: Mapping[str, Level],
    paths: Mapping[str, KeyPath],
    cause: str | None = None,
) -> None:
    """Report an invalid setting of a cell at the level that causes it.

    `paths` has the known paths of levels in the file, and `cause` the factor of that level if it is known. If
    there is no single such level, the fault is reported at the invalid key, with the levels of the cell. A
    key of [task], or an unknown key, that the level does not fill is reported there, too.
    """
    values = {name: [level] for name, level in levels.items()}
    names = [name for name in template.names_at(problem.path, values) if name in levels]
    if cause is None and len(names) == 1 and names[0] in paths:
        cause = names[0]
    is_key = problem.key or problem.path[:1] == ("task",)
    is_key &= len(problem.path) > 1 and problem.path in diagnostics.document.places
    if cause is None or (is_key and cause not in names):
        where = ", ".join(f"{name}={format_value(levels[name])}" for name in (*names, cause) if name)
        message = f"{problem.message}, where {where}" if where and not problem.key else problem.message
        diagnostics.report(problem.path, message, key=problem.key, meant=problem.meant)
        return
    origin = paths[cause]
    if problem.path in (origin, RECIPE_PATH):
        diagnostics.report(origin, problem.message, key=problem.key)
    else:
        verb = ", used as" if cause in names else " does not fit"
        place = path_prefix(problem.path).rstrip(": ")
        diagnostics.report(origin, problem.message, verb=f"{verb} {place}:")


def recipe_dimensions(draft: Draft) -> dict[str, Dimension]:
    """Return the search dimensions inside the recipe. Those of [search.space] are not included."""
    text = draft.template.texts.get(RECIPE_PATH)
    if text is None or RECIPE_PATH in draft.diagnostics.invalid:
        return {}
    return dict(draft.template.expand(text).dimensions)


def _valid_axes(draft: Draft) -> dict[str, PlacedLevels]:
    """Return the valid values of each hole: those without a hole that no valid value fills."""
    axes, previous = draft.axes(), dict[str, PlacedLevels]()
    while axes != previous:  # a level without a valid filling is invalid, which may make other levels invalid
        previous = axes
        valid = {
            name: tuple(
                (path, level)
                for path, level in levels
                if path not in draft.diagnostics.invalid
                and all(hole in previous for hole in draft.template.names_in_level(level, name))
            )
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
