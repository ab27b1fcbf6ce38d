"""JSON output of `activemem recipe`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NotRequired

from typing_extensions import TypedDict

from ...grammar import parse
from . import SCHEMA

if TYPE_CHECKING:
    from ...reporting.recipes.nearest import NearRecipe, StoredResult


class RecipeFaultEntry(TypedDict):
    """A fault of a text from `start` up to `end`, in characters from 0."""

    start: int
    end: int
    message: str


class RecipeCheckPage(TypedDict):
    """A recipe, or its faults; of an upper bound of the number of architectures `exact` is false."""

    schema: int
    recipe: NotRequired[str]
    id: NotRequired[str]
    holes: NotRequired[list[str]]
    dimensions: NotRequired[list[str]]
    architectures: NotRequired[int | Literal["infinite"]]
    exact: NotRequired[bool]
    text: NotRequired[str]
    faults: NotRequired[list[RecipeFaultEntry]]


class RecipeNameEntry(TypedDict):
    """A recipe by its canonical text, and its id."""

    recipe: str
    id: str


class RecipeRenderPage(TypedDict):
    """A recipe's canonical text, and its id."""

    schema: int
    recipe: str
    id: str


class RecipeCostsEntry(TypedDict):
    """The cost of a recipe: FLOPs of a forward pass, memory of training in bytes, state in numbers.

    An unbounded reach is "all". `parts` are its parts as a tree, `difference` is from the first recipe.
    """

    recipe: str
    id: str
    d_model: int
    length: int
    vocab: int
    masked: bool
    norm: str
    batch: int
    dropout: float
    parameters: int
    flops: int
    flops_per_token: float
    training_flops: int
    memory: dict[str, int]
    reach: dict[str, int | str]
    causal: bool
    state_per_token: int
    window: int
    parts: NotRequired[list[dict[str, Any]]]
    difference: NotRequired[dict[str, Any]]


class RecipeShowPage(RecipeCostsEntry):
    """The cost of each part of a recipe."""

    schema: int


class RecipeComparePage(TypedDict):
    """Recipes side by side."""

    schema: int
    recipes: list[RecipeCostsEntry]


class RecipeSamplePage(TypedDict):
    """Architectures of a space; `within` is what a budget leaves of it."""

    schema: int
    recipe: str
    architectures: int | Literal["infinite"]
    exact: bool
    within: NotRequired[dict[str, float | None]]
    seed: int
    members: list[RecipeNameEntry]


class StoredResultEntry(TypedDict):
    """The results of a recipe in one cell of a study, over seeds; `ended` counts trainings by status."""

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
    """Return the nearest recipes for a program."""
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
