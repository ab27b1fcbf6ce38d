"""Reader of the points that a program hands in; all faults of a point are reported at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....diagnostics import nearest_hint
from ....errors import ActivememError
from ....grammar import Recipe, RecipeError, parse, render
from ....grammar.nodes import ChoiceDimension, Dimension
from ....studies.catalog.metrics import METRICS_AND_COSTS, metric_family
from ....studies.planning.reused_trials import RecipeSpace
from ....studies.resolve.search_points import contains
from ....studies.schema.search import as_listed, options_by_name, representative_values
from ....studies.schema.settings import Level
from ....studies.study import Study
from ....studies.text.strict_model import format_value
from .stored_points import SearchPoint

KEYS = ("values", "recipe", "id")
"""The keys that identify a point; values or a recipe are enough, and all that is given must agree."""

PROPOSAL_KEYS = ("schema", "recipe_id", "proposed_by", "parameters", "seeds", "trials", "settings")
"""Further keys of a proposal, so that it can be handed in unchanged."""

RESULT_KEYS = ("value", "metric", "metrics", "result", "results", "mean", "score", "loss", "accuracy")
"""Keys that hold a result, besides names of metrics; they are refused."""


class PointError(ActivememError):
    """A line that is no point of a search, with all its faults."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__("\n".join(faults))
        self.faults = faults


def read_handed_in(study: Study, line: object) -> SearchPoint:
    """Return the point of a line of JSON: its `values` by dimension, its `recipe`, or both.

    Dimensions that its recipe does not tell must be among the values. Raises PointError for a line that is no
    point of the study's space, or that comes with a result: results are those of trainings.
    """
    if not isinstance(line, Mapping):
        raise PointError([f"expected an object with values or a recipe, got {_kind(line)}"])
    faults = [_key_fault(str(key)) for key in line if key not in (*KEYS, *PROPOSAL_KEYS)]
    if "values" not in line and "recipe" not in line:
        faults.append("expected values or a recipe, got neither")
    given, recipe = line.get("values", {}), None
    if not isinstance(given, Mapping):
        faults.append(f"values: expected an object, got {_kind(given)}")
        given = {}
    if "recipe" in line:
        recipe = _read_recipe(line["recipe"], faults)
    known = dict(given)
    if recipe is not None:
        told = RecipeSpace(study).values(recipe)
        if told is None:
            faults.append(f"recipe: {recipe.text} is not in the space of {study.name}")
        else:
            known = {**told, **given}
    if faults:
        if recipe is None and given:
            _choose(study, known, faults)
        raise PointError(faults)
    point = _make_point(study, _choose(study, known, faults), faults)
    if recipe is not None and parse(point.trials[0].settings.model.recipe) != recipe:
        built = parse(point.trials[0].settings.model.recipe)
        raise PointError([f"recipe: expected {built.text}, which the values make, got {recipe.text}"])
    if "id" in line and line["id"] != point.name:
        raise PointError([f"id: expected {point.name}, got {line['id']!r}"])
    return point


def _choose(study: Study, given: Mapping[str, Any], faults: list[str]) -> dict[str, Level]:
    """Return the values of the dimensions that a point takes; collect what is missing or wrong."""
    missing: list[str] = []

    def take(name: str, dimension: Dimension) -> Level:
        if name not in given:
            missing.append(name)
        elif (level := _level(dimension, given[name])) is not None:
            return level
        else:
            faults.append(f"{name}: expected {_text(dimension)}, got {format_value(given[name])}")
        return representative_values(dimension)[0]

    used = study.choose(take)
    faults += [f"{name}: expected {_text(study.dimensions[name])}, got nothing" for name in missing]
    for name in (each for each in given if each not in used):
        if name not in study.dimensions:
            hint = nearest_hint(str(name), study.dimensions)
            faults.append(f"{name}: {study.name} has no such dimension{hint}")
        elif _level(study.dimensions[name], given[name]) is None:
            expected = _text(study.dimensions[name])
            faults.append(f"{name}: expected {expected}, got {format_value(given[name])}")
        elif not missing:
            faults.append(f"{name}: the other values make a point that has no such dimension")
    return used


def _make_point(study: Study, values: dict[str, Level], faults: list[str]) -> SearchPoint:
    """Return the point of these values. Raises PointError for faults, and for a point over the budget."""
    if faults:
        raise PointError(faults)
    try:
        point = SearchPoint(values, study.point_trials(values))
    except ValueError as error:
        raise PointError([str(error)]) from error
    if not study.budget.allows(point.trials[0].settings):
        raise PointError([f"over the budget: {study.budget.describe_excess(point.trials[0].settings)}"])
    return point


def _level(dimension: Dimension, value: object) -> Level | None:
    """Return the dimension's value for a value of JSON; None if it has none."""
    if not isinstance(value, str | int | float):
        return None
    if isinstance(dimension, ChoiceDimension):
        names = options_by_name(dimension)
        return names.find(value) if names.has(value) else None
    if not contains(dimension, value):
        return None
    return as_listed(dimension, value)


def _read_recipe(text: object, faults: list[str]) -> Recipe | None:
    """Return the recipe of one architecture; collect its faults."""
    if not isinstance(text, str):
        faults.append(f"recipe: expected a text, got {_kind(text)}")
        return None
    try:
        recipe = parse(text)
    except RecipeError as error:
        faults += [f"recipe, column {fault.start + 1}: {fault.message}" for fault in error.faults]
        return None
    if open_ones := [*recipe.holes, *(name for name, _ in recipe.dimensions)]:
        faults.append(f"recipe: expected one architecture, got one in which {', '.join(open_ones)} is open")
        return None
    return recipe


def _key_fault(key: str) -> str:
    if key in RESULT_KEYS or metric_family(key) in METRICS_AND_COSTS:
        return f"{key}: expected a point without a result, which a training gives: study run trains it"
    return f"unknown key '{key}'{nearest_hint(key, (*KEYS, *PROPOSAL_KEYS))}"


def _text(dimension: Dimension) -> str:
    return render(dimension)


def _kind(value: object) -> str:
    """Return the name of a JSON value's kind."""
    names = {dict: "an object", list: "a list", str: "a text", bool: "a truth value", type(None): "null"}
    return names.get(type(value), "a number")
