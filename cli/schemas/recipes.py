"""What the commands of `activemem recipe` print for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypedDict

from ...grammar import parse
from . import SCHEMA

if TYPE_CHECKING:
    from ...reporting.recipes.nearest import NearRecipe, StoredResult


class StoredResultEntry(TypedDict):
    """What became of a recipe in one cell of a study, over seeds; `ended` counts trainings by status."""

    study: str
    task: str
    levels: dict[str, Any]
    d_model: int
    parameters: int
    metric: str | None
    mean: float | None
    sd: float | None
    n: int
    ended: dict[str, int]


class NearRecipeEntry(TypedDict):
    """A stored recipe, how far it is from the one asked for, and how it differs."""

    recipe: str
    id: str
    distance: float
    difference: str
    results: list[StoredResultEntry]


class NearestPage(TypedDict):
    """`recipe nearest`: the recipe that was asked for, and the stored ones, the nearest first."""

    schema: int
    recipe: str
    id: str
    nearest: list[NearRecipeEntry]


def nearest_page(recipe: str, found: Sequence[NearRecipe]) -> NearestPage:
    """The nearest recipes for a program."""
    asked = parse(recipe)
    entries: list[NearRecipeEntry] = [
        {
            "recipe": each.recipe.text,
            "id": each.recipe.id,
            "distance": each.distance,
            "difference": each.difference,
            "results": [_result(result) for result in each.results],
        }
        for each in found
    ]
    return {"schema": SCHEMA, "recipe": asked.text, "id": asked.id, "nearest": entries}


def _result(result: StoredResult) -> StoredResultEntry:
    return {
        "study": result.study,
        "task": result.task,
        "levels": dict(result.levels),
        "d_model": result.d_model,
        "parameters": result.parameters,
        "metric": result.metric,
        "mean": result.mean,
        "sd": result.sd,
        "n": result.n,
        "ended": dict(result.ended),
    }
