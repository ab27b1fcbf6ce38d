"""Recipes that show themselves: one part by part, or several side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Literal, Unpack

from ...diagnostics import hint
from ...errors import ActivememError, argument_fault, check_arguments, describe_value, number_fault
from ...grammar import Analysis, ModelConfig, Recipe, RecipeError, analyse, parse
from ...grammar.model_config import configure
from . import breakdown, comparison, svg
from .breakdown import RecipeCosts, Sizes

if TYPE_CHECKING:
    from ...grammar.model_config import ModelKeywords


@dataclass(frozen=True, slots=True)
class RecipeDisplay:
    """A recipe that shows what its parts cost and how far they see: `analysis` has the figures."""

    recipe: Recipe
    analysis: Analysis
    sizes: Sizes

    @property
    def costs(self) -> RecipeCosts:
        """The figures with all digits."""
        return RecipeCosts.of(self.recipe, self.analysis, self.sizes)

    def render(self, form: Literal["text", "svg"] = "text") -> str:
        """Return a line for each part, or a picture of the residual stream."""
        if form not in ("text", "svg"):
            near = hint(str(form), ("text", "svg"))
            raise ActivememError(f"form: expected text or svg, got {describe_value(form)}{near}")
        drawn = svg if form == "svg" else breakdown
        return drawn.render(self.recipe, self.analysis, self.sizes)

    def __str__(self) -> str:
        return self.render()

    def _repr_svg_(self) -> str:
        return self.render("svg")


@dataclass(frozen=True, slots=True)
class RecipeComparison:
    """Recipes side by side, each compared with the first."""

    recipes: tuple[Recipe, ...]
    analyses: tuple[Analysis, ...]
    sizes: Sizes

    @property
    def costs(self) -> list[RecipeCosts]:
        """The figures of each recipe with all digits, and by how much they differ from the first's."""
        return comparison.costs(self.recipes, self.analyses, self.sizes)

    def __str__(self) -> str:
        return comparison.render(self.recipes, self.analyses, self.sizes)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def show_recipe(
    recipe: str | Recipe,
    config: ModelConfig | None = None,
    *,
    length: int,
    batch: int = 32,
    past: int = 0,
    **settings: Unpack[ModelKeywords],
) -> RecipeDisplay:
    """Return the cost and reach of each part of a recipe, in a model with the settings that `build` takes.

    `length` is in tokens; `batch` counts the sequences of a training step; `past` positions precede each
    sequence, as in a stream. Raises what `analyse` raises.
    """
    check_arguments(number_fault("batch", batch, least=1))
    recipe, config = parse(recipe), configure(config, settings)
    analysis = analyse(recipe, config, length=length, past=past)
    return RecipeDisplay(recipe, analysis, Sizes(config=config, length=length, batch=batch, past=past))


def compare_recipes(
    recipes: Sequence[str | Recipe],
    config: ModelConfig | None = None,
    *,
    length: int,
    batch: int = 32,
    past: int = 0,
    **settings: Unpack[ModelKeywords],
) -> RecipeComparison:
    """Return the cost and reach of several recipes side by side, each compared with the first.

    Raises ActivememError with the faults of all recipes that are wrong or still open, and for fewer than
    two.
    """
    check_arguments(
        argument_fault("recipes", recipes, (list, tuple), "a list of recipes"),
        number_fault("batch", batch, least=1),
    )
    if len(recipes) < 2:
        raise ActivememError(f"expected at least two recipes, got {len(recipes)}")
    config = configure(config, settings)
    parsed: list[Recipe] = []
    analyses: list[Analysis] = []
    wrong: list[RecipeError] = []
    for text in recipes:
        try:
            recipe = parse(text)
            analyses.append(analyse(recipe, config, length=length, past=past))
            parsed.append(recipe)
        except RecipeError as error:
            wrong.append(error)
    if wrong:
        raise ActivememError("\n\n".join(map(str, wrong)))
    sizes = Sizes(config=config, length=length, batch=batch, past=past)
    return RecipeComparison(tuple(parsed), tuple(analyses), sizes)
