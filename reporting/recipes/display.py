"""Recipes for display: the parts of one recipe, or several recipes side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from string import ascii_lowercase
from typing import Any

from ...errors import ActivememError, argument_fault, check_arguments, number_fault
from ...grammar import Analysis, ModelConfig, Recipe, RecipeError, analyse, parse
from ...grammar.model_config import configure
from ...studies.text.units import WIDTH, format_bytes, format_reach, si_prefix, side_by_side
from . import breakdown, svg
from .breakdown import STATE_BYTES, RecipeCosts, describe_sizes, heading


@dataclass(frozen=True, slots=True)
class RecipeDisplay:
    """A recipe to display as text or as a picture. `analysis` has the costs and reach of its parts."""

    recipe: Recipe
    analysis: Analysis
    batch: int

    @property
    def costs(self) -> RecipeCosts:
        """Return the recipe's costs without rounding."""
        return RecipeCosts.of(self.recipe, self.analysis, self.batch)

    def __str__(self) -> str:
        return breakdown.render(self.recipe, self.analysis, self.batch)

    def _repr_svg_(self) -> str:
        return svg.render(self.recipe, self.analysis, self.batch)


@dataclass(frozen=True, slots=True)
class RecipeComparison:
    """Recipes side by side, each compared with the first."""

    recipes: tuple[Recipe, ...]
    analyses: tuple[Analysis, ...]
    batch: int

    @property
    def costs(self) -> list[RecipeCosts]:
        """Return each recipe's costs without rounding, and their differences from the first recipe's."""
        every = [
            RecipeCosts.of(recipe, analysis, self.batch)
            for recipe, analysis in zip(self.recipes, self.analyses, strict=True)
        ]
        first = every[0]

        def difference(each: RecipeCosts) -> dict[str, Any]:
            memory = {item: count - first.memory[item] for item, count in each.memory.items()}
            counts = {name: getattr(each, name) - getattr(first, name) for name in _COMPARED}
            return {**counts, "memory": memory}

        return [replace(each, parts=(), difference=difference(each)) for each in every]

    def __str__(self) -> str:
        """Return the recipes by letters, and a table with a column for each, side by side if they fit."""
        letters = [letter(number) for number in range(len(self.recipes))]
        listed = [heading(recipe, f"  {name}  ") for name, recipe in zip(letters, self.recipes, strict=True)]
        figures = [figure for figure in _compared_figures(self.analyses, self.batch) if any(figure[1])]
        columns: list[list[tuple[str, str]]] = []
        for number, (name, analysis) in enumerate(zip(letters, self.analyses, strict=True)):
            numbers = [
                (form(values[number]), _difference(values[number], values[0]) if number else "")
                for _, values, form in figures
            ]
            causal = "yes" if analysis.causal else "no"
            columns.append([(name, ""), *numbers, (format_reach(analysis.reach), ""), (causal, "")])
        names = ["", *(figure for figure, _, _ in figures), "reach", "causal"]
        blocks = side_by_side([_texts(column) for column in columns], names, width=WIDTH - 2, gap=_GAP)
        lines = [line for block in blocks for line in (*(f"  {row}".rstrip() for row in block), "")]
        return "\n".join([*listed, "", *lines, f"  {describe_sizes(self.analyses[0], self.batch)}", ""])

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def show_recipe(
    recipe: str | Recipe,
    config: ModelConfig | None = None,
    *,
    length: int,
    batch: int = 32,
    past: int = 0,
    **settings: object,
) -> RecipeDisplay:
    """Return a display of a recipe with the cost and reach of each part.

    `config` and `settings` are those that `build` takes. `length` is in tokens; `batch` counts the sequences
    of a training step; `past` positions precede each sequence, as in a stream. Raises the same errors as
    `analyse`.
    """
    check_arguments(number_fault("batch", batch, least=1))
    recipe, config = parse(recipe), configure(config, **settings)
    analysis = analyse(recipe, config, length=length, past=past)
    return RecipeDisplay(recipe, analysis, batch)


def compare_recipes(
    recipes: Sequence[str | Recipe],
    config: ModelConfig | None = None,
    *,
    length: int,
    batch: int = 32,
    **settings: object,
) -> RecipeComparison:
    """Return the cost and reach of several recipes side by side, each compared with the first.

    Raises ActivememError with the faults of all recipes that are wrong or still have choices or holes, and
    for fewer than two recipes.
    """
    check_arguments(
        argument_fault("recipes", recipes, (list, tuple), "a list of recipes"),
        number_fault("batch", batch, least=1),
    )
    if len(recipes) < 2:
        raise ActivememError(f"expected at least two recipes, got {len(recipes)}")
    config = configure(config, **settings)
    parsed: list[Recipe] = []
    analyses: list[Analysis] = []
    wrong: list[RecipeError] = []
    for text in recipes:
        try:
            recipe = parse(text)
            analyses.append(analyse(recipe, config, length=length))
            parsed.append(recipe)
        except RecipeError as error:
            wrong.append(error)
    if wrong:
        raise ActivememError("\n\n".join(map(str, wrong)))
    return RecipeComparison(tuple(parsed), tuple(analyses), batch)


_COMPARED = ("parameters", "flops", "flops_per_token", "training_flops", "state_per_token", "window")
_GAP = 3


def letter(number: int) -> str:
    """Return the letter that names a recipe: a to z, then a1 to z1 and so on."""
    turn, place = divmod(number, len(ascii_lowercase))
    return f"{ascii_lowercase[place]}{turn or ''}"


def _compared_figures(
    analyses: Sequence[Analysis], batch: int
) -> Iterator[tuple[str, list[float], Callable[[float], str]]]:
    """Yield the lines of a comparison of recipes: a name, a number of each recipe, and its format."""
    unit, size = si_prefix(max(each.flops_per_token for each in analyses))
    memories = [each.memory(batch) for each in analyses]

    def in_bytes_each(count: float) -> str:
        return format_bytes(STATE_BYTES * count) if count else "0"

    yield "parameters", [each.parameters for each in analyses], "{:,}".format
    flops = [each.flops_per_token for each in analyses]
    yield f"{unit}FLOPs/token", flops, lambda count: f"{count / size:,.1f}"
    yield "activations", [each.activations for each in memories], format_bytes
    yield "peak memory", [each.peak for each in memories], format_bytes
    yield "cache/token", [each.state for each in analyses], in_bytes_each
    yield "fixed state", [each.window for each in analyses], in_bytes_each


def _difference(value: float, first: float) -> str:
    if value == first:
        return "="
    if first == 0:
        return ""
    share = 100 * (value / first - 1)
    digits = 1 if abs(share) < 10 else 0
    return f"{share:+,.{digits}f} %".replace("-", "−")


def _texts(column: Sequence[tuple[str, str]]) -> list[str]:
    width = max(len(value) for value, _ in column)
    beside = max(len(difference) for _, difference in column)
    if not beside:
        return [f"{value:>{width}}" for value, _ in column]
    return [f"{value:>{width}}  {difference:>{beside}}" for value, difference in column]
