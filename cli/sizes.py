"""The model that a recipe is taken for: its sizes, as the command line gives them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ..grammar import Analysis, Norm, Recipe, analyse
from .figures import plural


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """What an analysis depends on besides the recipe; `masked` hides the future from every position."""

    d_model: int
    length: int
    vocab: int
    masked: bool
    norm: Norm
    batch: int
    dropout: float

    def analyse(self, recipe: Recipe) -> Analysis:
        """The cost and reach of a recipe in a model of these sizes; RecipeError if it is still open."""
        return analyse(
            recipe,
            d_model=self.d_model,
            length=self.length,
            vocab=self.vocab,
            causal=self.masked,
            norm=self.norm,
            dropout=self.dropout,
        )

    def words(self) -> str:
        """What the figures depend on, but for the widths."""
        tokens = plural(self.length, "token")
        return f"{self.norm}-norm, {tokens}, batch {self.batch}, dropout {self.dropout:g}"

    def as_data(self) -> dict[str, Any]:
        """Every size by name."""
        return asdict(self)
