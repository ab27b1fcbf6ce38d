"""What a recipe's costs are counted for: the model around it, and its sequences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...grammar import Analysis, Frame, Recipe, analyse_framed
from ...studies.text.units import plural


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """What an analysis depends on besides the recipe; `past` positions precede each sequence."""

    frame: Frame
    length: int
    batch: int
    past: int = 0

    def analyse(self, recipe: Recipe) -> Analysis:
        """The cost and reach of a recipe in a model of these sizes; RecipeError if it is still open."""
        return analyse_framed(recipe, self.frame, self.length, self.past)

    def describe(self) -> str:
        """What the figures depend on, except widths."""
        frame = self.frame
        rates = (("attention", frame.attention_dropout), ("embedding", frame.embedding_dropout))
        parts = [
            "no norms" if frame.norm == "none" else f"{frame.norm}-norm",
            *([] if frame.residual else ["no residuals"]),
            *(["tied"] if frame.tied else []),
            *([f"{len(frame.clusters)} clusters"] if frame.cutoffs else []),
            plural(self.length, "token") + (" of a stream" if self.past else ""),
            f"batch {self.batch}",
            f"dropout {frame.dropout:g}",
            *(f"{name} dropout {rate:g}" for name, rate in rates if rate),
        ]
        return ", ".join(parts)

    def as_data(self) -> dict[str, Any]:
        """Every size that the command line gives, by name; `masked` hides the future from every position."""
        frame = self.frame
        return {
            "d_model": frame.d_model,
            "length": self.length,
            "vocab": frame.vocab,
            "masked": frame.causal,
            "norm": frame.norm,
            "batch": self.batch,
            "dropout": frame.dropout,
        }
