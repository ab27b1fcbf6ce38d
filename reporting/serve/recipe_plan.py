"""The cost and reach of an entered recipe, or the faults of the recipe and of its sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...errors import ActivememError
from ...grammar import ModelConfig, RecipeError, Space, parse
from ...studies.text.units import si_prefix
from ..recipes import breakdown
from ..recipes.display import RecipeDisplay, show_recipe

MAX_RECIPE_LENGTH = 4000
MAX_NUMBER = 10**7

FIELDS: Mapping[str, str] = {
    "recipe": "",
    "d_model": "128",
    "length": "40",
    "vocab": "20",
    "batch": "32",
    "causal": "",
}
"""The fields by name, with their initial values."""

_HEADS = ("part", "parameters", "FLOPs/token", "memory", "reach", "state/token", "window")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipePlan:
    """A recipe's parts as lines of a table, and sentences about the total; or `faults`, with carets."""

    faults: str = ""
    text: str = ""
    id: str = ""
    heads: Sequence[str] = ()
    parts: Sequence[tuple[str, int, Sequence[str]]] = ()
    notes: Sequence[str] = ()


def plan_recipe(given: Mapping[str, str]) -> RecipePlan | None:
    """Return the costs of the entered recipe, or its faults; None without a recipe."""
    text = given["recipe"].strip()
    if not text:
        return None
    if len(text) > MAX_RECIPE_LENGTH:
        return RecipePlan(faults=f"expected at most {MAX_RECIPE_LENGTH:,} characters, got {len(text):,}")
    numbers, wrong = read_numbers(given)
    try:
        recipe = parse(text)
    except RecipeError as error:
        return RecipePlan(faults="\n".join([str(error), *wrong]))
    if wrong:
        return RecipePlan(faults="\n".join(wrong))
    config = ModelConfig(d_model=numbers["d_model"], vocab=numbers["vocab"], causal=bool(given["causal"]))
    choices = [f"{Space(recipe).count}"] if recipe.dimensions else []
    try:
        shown = show_recipe(recipe, config, length=numbers["length"], batch=numbers["batch"])
    except ActivememError as error:
        return RecipePlan(faults="\n".join([str(error), *choices]))
    return _plan_of(shown)


def read_numbers(given: Mapping[str, str]) -> tuple[dict[str, int], list[str]]:
    """Return the whole numbers of the fields, and the faults of others."""
    numbers, wrong = dict[str, int](), list[str]()
    for name in ("d_model", "length", "vocab", "batch"):
        text = given[name].strip().replace(",", "")
        if text.isascii() and text.isdigit() and len(text) < 9 and 1 <= int(text) <= MAX_NUMBER:
            numbers[name] = int(text)
        else:
            wrong.append(f"{name}: expected a whole number from 1 to {MAX_NUMBER:,}, got {given[name]!r}")
    return numbers, wrong


def _plan_of(shown: RecipeDisplay) -> RecipePlan:
    analysis, sizes = shown.analysis, shown.sizes
    tree = analysis.tree_with_memory(sizes.batch)
    unit, size = si_prefix(analysis.flops_per_token)
    lines = [
        (label, depth, breakdown.format_costs(part, sizes, size))
        for label, depth, part in breakdown.iter_parts(tree)
    ]
    lines.append(("total", 0, breakdown.format_costs(tree, sizes, size)))
    kept = [place for place in range(len(_HEADS) - 1) if any(costs[place] for *_, costs in lines)]
    heads = [_HEADS[place + 1].replace("FLOPs", f"{unit}FLOPs") for place in kept]
    return RecipePlan(
        text=shown.recipe.text,
        id=shown.recipe.id,
        heads=["part", *heads],
        parts=[(label, depth, [costs[place] for place in kept]) for label, depth, costs in lines],
        notes=breakdown.sentences(analysis, sizes),
    )
