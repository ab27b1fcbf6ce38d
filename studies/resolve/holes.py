"""Checks recipes, their parts, and that every hole has a name that fills it and every name a hole.

A level is a part of a recipe if its factor's hole takes a part, and plain data if it takes a value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...diagnostics import nearest, nearest_hint
from ...grammar import Recipe, RecipeError
from ..schema.settings import read_recipe
from ..text.diagnostics import Diagnostics
from ..text.toml_positions import KeyPath
from .draft import Draft, named_fragments
from .template import D_MODEL_PATH, HOLE_PATTERN, RECIPE_PATH, TRIAL_TABLES, iter_texts, value_holes

_NAMED_VALUE = re.compile(r"= *\{ *([A-Za-z]\w*) *\}")


def check_recipes(draft: Draft) -> None:
    """Read the recipe, then every level and option that becomes a part of it, and note their faults.

    Holes in levels and fragments are followed; a misspelt hole is followed to the nearest name, so that the
    faults of its levels are reported too.
    """
    report, axes = draft.diagnostics, draft.axes()
    text = draft.template.texts.get(RECIPE_PATH)
    if text is None:
        return
    recipe = _read(report, RECIPE_PATH, text)
    if recipe and recipe.dimensions and not report.has_search:
        report.report_invalid(RECIPE_PATH, "a search dimension needs the table [search]")
    if recipe:
        _expand(draft, RECIPE_PATH, text)
    names = _part_holes(text, recipe)
    names += [nearby for hole in names if (nearby := _nearest_declared(hole, draft.declared_names()))]
    for name in names:  # grows while it is walked
        parts = [(path, level) for path, level in axes.get(name, ()) if isinstance(level, str)]
        for path, level in parts:
            part = _read(report, path, level)
            if part and (expanded := _expand(draft, path, level)) and expanded.dimensions:
                report.report_invalid(
                    path, "a search dimension can be used only in the recipe and in [search.space]"
                )
            names += [hole for hole in _part_holes(level, part) if hole not in names]
        fragment = draft.template.fragments.get(name, "")
        if fragment:
            names += [hole for hole in _part_holes(fragment, read_recipe(fragment)) if hole not in names]


def check_holes(draft: Draft) -> None:
    """Note holes that nothing fills, names that fill none, and misplaced names.

    A misspelt hole is one fault: the nearest name counts as used, as does a fragment that only the file
    without its overrides uses.
    """
    declared, axes, used = draft.declared_names(), draft.axes(), set[str | None]()
    fragments = named_fragments(draft.diagnostics.document.data)
    for path, text in _texts(draft):
        for hole in HOLE_PATTERN.finditer(text):
            used.add(hole[1])
            if hole[1] not in declared:
                hint = nearest_hint(hole[1], declared)
                used.add(_nearest_declared(hole[1], declared))  # one fault is enough
                draft.diagnostics.report_invalid(
                    path, f"nothing fills the hole {{{hole[1]}}}{hint}", within=hole.span()
                )
            elif path[0] in TRIAL_TABLES and (message := _misplacement_message(draft, path, hole[1])):
                draft.diagnostics.report_invalid(path, message, within=hole.span())
    labels = draft.design.labels
    for name in labels:
        if name in used:
            draft.diagnostics.report_error(
                ("study", "labels"), f"{name} is no label: it fills the hole {{{name}}}"
            )
    as_written = _holes_as_written(draft)
    for name in (*axes, *(fragment for fragment in fragments if fragment not in as_written)):
        if name not in (*used, *labels) and ("recipes", name) not in draft.diagnostics.invalid:
            path = ("recipes", name) if name in fragments else _declaration_path(draft, name)
            draft.diagnostics.report_error(path, f"nothing uses '{name}': no hole {{{name}}}", key=True)


def _holes_as_written(draft: Draft) -> set[str]:
    """Return the names of all holes of the file without its overrides."""
    document = draft.diagnostics.document
    tables = (document.as_written or document).data
    with_holes = (*TRIAL_TABLES, "recipes", "factors", "cells", "search")
    texts = iter_texts({name: tables.get(name) for name in with_holes})
    return {hole for _, text in texts for hole in HOLE_PATTERN.findall(text)}


def _misplacement_message(draft: Draft, path: KeyPath, name: str) -> str:
    """Return why a fragment or a size cannot be used at a key; empty if it can, or is neither."""
    if name in draft.template.fragments and path != RECIPE_PATH:
        return f"the fragment {{{name}}} can be used only in recipes"
    size = draft.design.matched_size
    if size and name == size[0] and path not in (RECIPE_PATH, D_MODEL_PATH):
        return f"the size {{{name}}} can be used only in recipes and in [model] d_model"
    return ""


def _declaration_path(draft: Draft, name: str) -> KeyPath:
    """Return the first place of the name of a factor, a dimension or a size."""
    if name in draft.space:
        return ("search", "space", name)
    if name in draft.design.combined_factors:
        return ("factors", name)
    return draft.axes()[name][0][0]


def _nearest_declared(hole: str, declared: set[str]) -> str | None:
    """Return the declared name nearest to that of an unfilled hole."""
    return None if hole in declared else nearest(hole, declared)


def _read(diagnostics: Diagnostics, path: KeyPath, text: str) -> Recipe | None:
    """Return the recipe at a path; report the faulty words and return None if it is invalid."""
    try:
        return read_recipe(text)
    except RecipeError as error:
        diagnostics.report_faults(path, error.faults)
        return None


def _expand(draft: Draft, path: KeyPath, text: str) -> Recipe | None:
    """Return the recipe of a valid text with its fragments expanded.

    Reports what does not fit and returns None.
    """
    try:
        return draft.template.expand(text)
    except RecipeError as error:
        for fault in error.faults:
            draft.diagnostics.report_invalid(path, fault.message)
        return None


def _part_holes(text: str, recipe: Recipe | None) -> list[str]:
    """Return the holes of a recipe that take parts; if it is unreadable, those that are not named values."""
    if recipe is None:
        names, values = HOLE_PATTERN.findall(text), frozenset(_NAMED_VALUE.findall(text))
    else:
        names, values = recipe.holes, value_holes(recipe.root)
    return [name for name in names if name not in values]


def _texts(draft: Draft) -> Iterator[tuple[KeyPath, str]]:
    """Every text that may have holes, with its path: the template's, fragments, textual levels."""
    yield from draft.template.texts.items()
    for name in named_fragments(draft.diagnostics.document.data):
        text = draft.diagnostics.document.data["recipes"][name]
        if isinstance(text, str):
            yield ("recipes", name), text
    for name, levels in draft.axes().items():
        for path, level in levels:
            tables = draft.template.table_levels.get(name, {})
            value = tables.get(level, level) if isinstance(level, str) else level
            yield from ((path, text) for _, text in iter_texts(value) if isinstance(level, str))
