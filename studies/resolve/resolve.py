"""Turns a template and values into the settings of one trial, or reports all their problems."""

from __future__ import annotations

from collections.abc import Mapping

from ...grammar import RecipeError
from ..schema.factors import SEED
from ..schema.settings import Level, TrialSettings
from ..text.pydantic_messages import InvalidTableError, ValidationProblem, validate
from .compatibility import incompatibilities
from .template import RECIPE_PATH, Template

_PLACEHOLDER_RECIPE = "sa"  # for a recipe that is wrong, so that all else is checked too


def resolve_settings(template: Template, values: Mapping[str, Level]) -> TrialSettings:
    """The settings of the trial with these values; InvalidTableError with all its problems.

    `values` has a level for every hole and every dimension that needs one. The other tables are checked even
    if the recipe is wrong.
    """
    tables = template.fill(values)
    problems: list[ValidationProblem] = []
    if RECIPE_PATH in template.texts:
        try:
            tables["model"]["recipe"] = template.recipe(values)
        except RecipeError as error:
            problems += [ValidationProblem(RECIPE_PATH, fault.message) for fault in error.faults]
            tables["model"]["recipe"] = _PLACEHOLDER_RECIPE
    try:
        settings = validate(TrialSettings, {**tables, SEED: values.get(SEED, 0)})
    except InvalidTableError as error:
        raise InvalidTableError((*problems, *error.problems)) from error
    problems += incompatibilities(settings)
    if problems:
        raise InvalidTableError(tuple(problems))
    return settings
