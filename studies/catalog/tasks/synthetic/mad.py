"""The six tasks of MAD; the answers of compression are decoded from the last position alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from pydantic import Field, model_validator

from .....grammar.vocabulary.spec import Reach
from ..generated import TaskSizes
from ..spec import ModelInterface
from .base import SyntheticTask, add_synthetic

RECALL = ("in_context_recall", "noisy_recall", "fuzzy_recall")
"""Those in which values are found by keys of the same sequence."""


class MadSettings(SyntheticTask):
    """`[task]` of mad; its defaults are the base setting of in-context recall."""

    problem: Literal[
        "in_context_recall",
        "noisy_recall",
        "fuzzy_recall",
        "selective_copying",
        "memorization",
        "compression",
    ] = "in_context_recall"
    """which of its tasks; in compression all symbols are decoded from what the model holds at the last one"""
    vocab: int = Field(default=16, ge=4, le=1_000_000)
    """how many symbols there are in all"""
    length: int = Field(default=128, ge=4, le=1 << 20)
    """tokens of a sequence"""
    train_examples: int = Field(default=12_800, ge=0, le=1_000_000)
    """how many examples there are to train on, the same for all trials; 0: fresh ones at each step"""
    noise_vocab: int = Field(default=16, ge=0)
    """of noisy_recall: how many of the symbols are noise"""
    noise: float = Field(default=0.2, ge=0, lt=1)
    """of noisy_recall: the share of pairs that are noise instead"""
    motif: int = Field(default=3, ge=1, le=4)
    """of fuzzy_recall: the most symbols of a key, and of a value"""
    copies: int = Field(default=16, ge=1)
    """of selective_copying: how many symbols are to be copied"""

    @model_validator(mode="after")
    def _check_sizes(self) -> MadSettings:
        if self.problem in RECALL and self.keys < (self.motif if self.problem == "fuzzy_recall" else 1):
            raise ValueError(f"vocab: expected more symbols for keys, got {self.vocab}")
        if self.problem == "selective_copying" and self.length < 2 * self.copies + 2:
            raise ValueError(f"length: expected at least {2 * self.copies + 2} tokens, got {self.length}")
        if self.problem == "fuzzy_recall" and self.length < 6 * self.motif:
            raise ValueError(f"length: expected at least {6 * self.motif} tokens, got {self.length}")
        if self.length % 2:
            raise ValueError(f"length: expected an even number of tokens, got {self.length}")
        return self

    @property
    def usual(self) -> int:
        """The default number of symbols that are keys or values, or are copied or compressed."""
        special = {
            "in_context_recall": 0,
            "noisy_recall": self.noise_vocab,
            "fuzzy_recall": 1,
            "selective_copying": 2,
            "memorization": 1,
            "compression": 1,
        }
        return self.vocab - special[self.problem]

    @property
    def keys(self) -> int:
        """The number of symbols that are keys; values follow."""
        return self.usual // 2

    @property
    def test_names(self) -> tuple[str, ...]:
        return ("all",)

    @property
    def sizes(self) -> TaskSizes:
        """The sizes with all symbols; the last symbol of recall only asks."""
        return TaskSizes(tokens=self.length - (self.problem in RECALL[:2]), vocab=self.vocab)

    @property
    def interface(self) -> ModelInterface:
        return replace(super().interface, bottleneck=self.problem == "compression")

    @property
    def has_one_shape(self) -> bool:
        return True

    @property
    def required_reach(self) -> Reach | None:
        return None


add_synthetic(
    "mad",
    MadSettings,
    "values found by keys of the sequence or learnt by heart, symbols copied, or compressed into one vector",
    "Poli et al. 2024 (Mechanistic Architecture Design), section 3.1 and their program",
    "Test set",
)
