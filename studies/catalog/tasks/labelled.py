"""Sequences with labels of one's own: a class for each sequence."""

from __future__ import annotations

from abc import ABC
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from ..own_corpora import OwnSequences, read_facts
from .spec import LINE_TOKENS, ModelInterface, TaskKind, TaskSettings, TaskSpec, add_own_task

RESERVED_SYMBOLS = 4
"""The numbers of a vocabulary that are no text: padding, start, end and unknown."""

BYTES = 256


class LabelledSettings(TaskSettings, ABC):
    """The keys that tasks with labels share."""

    corpus: Annotated[OwnSequences, BeforeValidator(read_facts(OwnSequences, named=False))]
    """the files, as in `{ path = "my.csv", text = "text", label = "label" }`: `docs/data.md`"""
    tokens: Literal["words", "bpe", "characters", "symbols"]
    """what a token is; words: in lower case, marks apart; characters: bytes; symbols: what stands between
    spaces, or each element of a list"""
    pieces: int = Field(default=32000, ge=300, le=1_000_000)
    """the size of a vocabulary of words or bpe"""
    longest: int = Field(default=300, ge=1)
    """of longer sequences so many tokens are read"""

    @property
    def vocab(self) -> int:
        """How many symbols a model reads."""
        if self.tokens in ("words", "bpe"):
            return self.pieces
        return RESERVED_SYMBOLS + (BYTES if self.tokens == "characters" else self.corpus.symbols)

    def normalise(self, sequence: str) -> str:
        """The sequence with single spaces, where these separate symbols."""
        return " ".join(sequence.split()) if self.tokens == "symbols" else sequence

    @property
    def reference_tokens(self) -> int:
        """The length that represents all sequences."""
        return min(LINE_TOKENS, self.longest)


class SequenceClassificationSettings(LabelledSettings):
    """`[task]` of sequence_classification."""

    @property
    def interface(self) -> ModelInterface:
        """The symbols of the sequences, and as many classes as there are labels."""
        return ModelInterface(
            kind=TaskKind.CLASSIFICATION,
            vocab=self.vocab,
            classes=self.corpus.classes,
            tokens=self.reference_tokens,
        )


add_own_task(
    TaskSpec(
        name="sequence_classification",
        kind=TaskKind.CLASSIFICATION,
        summary="a sequence of one's own to its class",
        source="a table of one's own",
        settings=SequenceClassificationSettings,
    )
)
