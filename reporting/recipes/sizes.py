"""The model and the sequences for which a recipe's costs are computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...grammar import ModelConfig
from ...studies.text.units import plural


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """The sizes of an analysis beside the recipe; `past` is how many positions precede each sequence."""

    config: ModelConfig
    length: int
    batch: int
    past: int = 0

    def describe(self) -> str:
        """Return what the figures depend on, except widths."""
        config = self.config
        rates = (
            ("attention", config.attention_dropout),
            ("embedding", config.embedding_dropout),
            ("input", config.input_dropout),
        )
        parts = [
            "no norms" if config.norm == "none" else f"{config.norm}-norm",
            *([] if config.residual else ["no residuals"]),
            *(["tied" + (" but for biases" if config.tied_bias else "")] if config.tied else []),
            *(
                [
                    f"{len(config.clusters)} clusters"
                    + (", all projected" if config.project_first_cluster else "")
                ]
                if config.cutoffs
                else []
            ),
            plural(self.length, "token") + (" of a stream" if self.past else ""),
            f"batch {self.batch}",
            f"dropout {config.dropout:g}",
            *(f"{name} dropout {rate:g}" for name, rate in rates if rate),
        ]
        return ", ".join(parts)

    def as_data(self) -> dict[str, Any]:
        """Every size that the command line gives, by name; `masked` hides the future from every position."""
        config = self.config
        return {
            "d_model": config.d_model,
            "length": self.length,
            "vocab": config.vocab,
            "masked": config.causal,
            "norm": config.norm,
            "batch": self.batch,
            "dropout": config.dropout,
        }
