"""From a template and values to the settings of one trial, or all that is wrong with them."""

from __future__ import annotations

from collections.abc import Mapping

from ..grammar import RecipeError
from .factors import SEED
from .mismatches import mismatches
from .settings import Level, Settings
from .template import RECIPE, Template
from .wording import Problem, ProblemsError, checked

_STAND_IN = "sa"  # for a recipe that is wrong, so that all else is checked too


def settle(template: Template, values: Mapping[str, Level]) -> Settings:
    """The settings of the trial that has these values; ProblemsError with all that is wrong with it.

    `values` has a level for every hole, and for every dimension that is to be settled. A wrong recipe does
    not keep the other tables from being checked.
    """
    tables = template.fill(values)
    problems: list[Problem] = []
    if RECIPE in template.texts:
        try:
            tables["model"]["recipe"] = template.recipe(values)
        except RecipeError as error:
            problems += [Problem(RECIPE, fault.message) for fault in error.faults]
            tables["model"]["recipe"] = _STAND_IN
    try:
        settings = checked(Settings, {**tables, SEED: values.get(SEED, 0)})
    except ProblemsError as error:
        raise ProblemsError((*problems, *error.problems)) from error
    problems += mismatches(settings)
    if problems:
        raise ProblemsError(tuple(problems))
    return settings
