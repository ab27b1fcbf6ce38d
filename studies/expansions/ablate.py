"""`ablate = "parts"`: compares the recipe with copies that each lack one part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, Self

from ...grammar import RecipeError, parse
from ...grammar.difference import ablations
from ..schema.design import Expansion
from ..schema.settings import RECIPE_PATH
from ..text.document import Diagnostics
from ..text.strict_model import StrictModel, as_table, format_value

RECIPE = "recipe"
"""The factor that `ablate` creates from the model's recipe."""


class AblateSettings(StrictModel):
    """The key of `[study]` that removes parts of the recipe."""

    ablate: Literal["parts"] | None = None
    """adds a factor `recipe` with the model's recipe, first complete, then without each of its parts"""


@dataclass(frozen=True)
class Ablation(Expansion):
    """Expansion that adds the factor `recipe`: the complete recipe, and recipes that each lack one part."""

    recipes: tuple[str, ...]
    header_keys = AblateSettings
    patch = MappingProxyType({RECIPE_PATH: f"{{{RECIPE}}}"})

    @classmethod
    def read(cls, diagnostics: Diagnostics) -> Self | None:
        """Read the recipe to ablate. None if the recipe or the key `ablate` is invalid."""
        data = diagnostics.data
        text, factors = as_table(data.get("model")).get(RECIPE), data.get("factors", {})
        if diagnostics.validate_keys(AblateSettings, ("study",)) is None or "ladder" in data:
            return None  # [ladder] reports this fault itself
        if not isinstance(text, str) or not isinstance(factors, Mapping):
            return None
        if RECIPE in factors:
            message = "ablate creates a factor with this name: rename your factor"
            diagnostics.report(("factors", RECIPE), message, key=True)
            return None
        try:
            without = ablations(parse(text))
        except RecipeError:
            return None
        if not without:
            message = f"expected a recipe with removable parts, got {format_value(text)}"
            diagnostics.report(("study", "ablate"), message)
            return None
        diagnostics.origins["factors", RECIPE] = RECIPE_PATH
        return cls((text, *(each.text for each in without)))

    def add_factors(self, factors: Mapping[str, Any]) -> Mapping[str, Any]:
        return {RECIPE: [*self.recipes], **factors}


EXPANSION = Ablation
