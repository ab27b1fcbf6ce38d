"""`ablate = "parts"`: the model's recipe becomes a factor, with a level for each part that it can lack."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from ...grammar import RecipeError, parse
from ...grammar.ablation import ablations
from ..text.diagnostics import Diagnostics
from ..text.pydantic_messages import format_value

RECIPE = "recipe"
"""The name of the factor."""

_PATH = ("model", RECIPE)


def expand_ablation(diagnostics: Diagnostics) -> None:
    """Put the factor first among the document's, with the whole recipe as its first level; report faults.

    An invalid recipe stays as it is and is reported where recipes are checked.
    """
    data = cast("dict[str, Any]", diagnostics.document.data)
    model, factors = data.get("model"), data.get("factors", {})
    text = model.get(RECIPE) if isinstance(model, Mapping) else None
    if not isinstance(model, dict) or not isinstance(text, str) or not isinstance(factors, Mapping):
        return
    if RECIPE in factors:
        diagnostics.report_error(
            ("factors", RECIPE), "ablate makes a factor of this name: give yours another", key=True
        )
        return
    try:
        recipe = parse(text)
    except RecipeError:
        return
    without = ablations(recipe)
    if not without:
        message = f"expected a recipe with parts to take away, got {format_value(text)}"
        diagnostics.report_error(("study", "ablate"), message)
        return
    model[RECIPE] = f"{{{RECIPE}}}"
    data["factors"] = {RECIPE: [text, *(each.text for each in without)], **factors}
