"""The six tasks of mechanistic architecture design (MAD).

In the compression task, all symbols are decoded from the model's output at the last position.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from pydantic import Field, model_validator

from ..generated import Examples, TaskSizes
from ..spec import TaskInterface
from .base import RULES, SyntheticTask, add_synthetic

if TYPE_CHECKING:
    from torch import Generator

RECALL = ("in_context_recall", "noisy_recall", "fuzzy_recall")
"""The tasks in which values are looked up by keys of the same sequence."""


NOISE_VOCAB = 16
"""The number of symbols that are noise, in noisy_recall."""

NOISE = 0.2
"""The share of pairs that noise replaces, in noisy_recall."""

MOTIF = 3
"""The maximum number of symbols of a key, and of a value, in fuzzy_recall."""


_SPECIAL = {
    "in_context_recall": 0,
    "noisy_recall": NOISE_VOCAB,
    "fuzzy_recall": 1,
    "selective_copying": 2,
    "memorization": 1,
    "compression": 1,
}
"""The number of special symbols of each problem."""


class MadSettings(SyntheticTask):
    """Keys of `[task]` for the task mad. The defaults are the paper's settings for in-context recall."""

    problem: Literal[*_SPECIAL] = "in_context_recall"  # pyright: ignore[reportInvalidTypeForm]
    """the MAD task; in compression all symbols are decoded from the model's last position"""
    vocab: int = Field(default=16, ge=4, le=1_000_000)
    """the total number of symbols"""
    length: int = Field(default=128, ge=4, le=1 << 20)
    """the number of tokens of a sequence"""
    train_examples: int = Field(default=12_800, ge=0, le=1_000_000)
    """the size of the training pool, which all trials share; 0 draws fresh examples at each step"""
    copies: int = Field(default=16, ge=1)
    """for selective_copying: the number of symbols to copy"""
    dev_examples: int = Field(default=1000, ge=1)
    """the number of examples that are scored after each epoch, drawn like the test examples"""

    @model_validator(mode="after")
    def _check_sizes(self) -> MadSettings:
        if self.problem in RECALL and self.keys < (MOTIF if self.problem == "fuzzy_recall" else 1):
            raise ValueError(f"vocab: {self.vocab} symbols leave too few for the keys: raise vocab")
        if self.problem == "selective_copying" and self.length < 2 * self.copies + 2:
            raise ValueError(f"length: expected at least {2 * self.copies + 2} tokens, got {self.length}")
        if self.problem == "fuzzy_recall" and self.length < 6 * MOTIF:
            raise ValueError(f"length: expected at least {6 * MOTIF} tokens, got {self.length}")
        if self.length % 2:
            raise ValueError(f"length: expected an even number of tokens, got {self.length}")
        return self

    @property
    def usual(self) -> int:
        """The number of ordinary symbols: `vocab` minus the special symbols that the problem uses."""
        return self.vocab - _SPECIAL[self.problem]

    @property
    def keys(self) -> int:
        """The number of symbols that are keys: half of the ordinary symbols. The other half are values."""
        return self.usual // 2

    @property
    def test_names(self) -> tuple[str, ...]:
        return ("all",)

    def draw_dev(self, count: int, generator: Generator) -> Examples:
        return RULES[self.name].draw(self, count, self.test_names[0], generator)

    @property
    def sizes(self) -> TaskSizes:
        """The number of tokens that the model reads, and the number of symbols.

        In in-context recall and noisy recall, the model does not read the last token of a sequence.
        """
        return TaskSizes(tokens=self.length - (self.problem in RECALL[:2]), vocab=self.vocab)

    @property
    def interface(self) -> TaskInterface:
        found = super().interface
        model = found.model.model_copy(update={"bottleneck": self.problem == "compression"})
        return replace(found, model=model)

    @property
    def has_one_shape(self) -> bool:
        return True


add_synthetic(
    "mad",
    MadSettings,
    "one of six tasks: recall values by their keys, or memorise, copy or compress symbols",
    "Poli et al. 2024 (Mechanistic Architecture Design), section 3.1 and their program",
    "Test set",
    symbols="keys are the lower symbols, values the higher ones; blanks and markers come last",
)
