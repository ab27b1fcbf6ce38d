"""Columns that tell the points of a search apart: the resolved recipe, and dimensions outside of it."""

from __future__ import annotations

from collections.abc import Mapping

from ...studies.resolve.template import RECIPE_PATH
from ...studies.schema.settings import Level
from ...studies.study import Study
from .promotion import RECIPE, outer_names


def column_names(study: Study) -> list[str]:
    """Return the recipe, if points differ in it, and the dimensions that fill holes outside of the recipe."""
    outer, inner = outer_names(study), study.template.names_at(RECIPE_PATH, study.factors)
    varies = any(name in inner or name not in outer for name in study.dimensions)
    names = [name for name in study.dimensions if name in outer]
    return list(dict.fromkeys([RECIPE, *names] if varies else names))


def column_levels(study: Study, values: Mapping[str, Level]) -> dict[str, Level]:
    """Return the values of a point together with its resolved recipe."""
    return {**values, RECIPE: study.trial_for(values).settings.model.recipe}
