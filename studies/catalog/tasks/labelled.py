"""Labelled sequences of the user: a class or a number for each, or a class for each token."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from ..own_corpora import OwnSequences, read_facts
from .spec import DEFAULT_PIECES, LINE_TOKENS, ModelInterface, TaskKind, TaskSettings, TaskSpec, add_own_task

RESERVED_SYMBOLS = 4
"""The numbers of a vocabulary that are no text: padding, start, end and unknown."""

BYTES = 256


class LabelledSettings(TaskSettings, ABC):
    """The keys that tasks with labels share."""

    corpus: Annotated[OwnSequences, BeforeValidator(read_facts(OwnSequences, named=False))]
    """the files, as in `{ path = "my.csv", text = "text", label = "label" }`: `docs/data.md`"""
    longest: int = Field(default=300, ge=1)
    """of longer sequences so many tokens are read"""

    @property
    @abstractmethod
    def vocabulary(self) -> tuple[str, int]:
        """The kind of a token, and the number of symbols."""

    @property
    def interface(self) -> ModelInterface:
        """The symbols of the sequences, and as many classes as there are labels, or a number."""
        kind, classes = self.spec.kind, self.corpus.classes
        return ModelInterface(
            kind=kind,
            vocab=self.vocabulary[1],
            classes=classes,
            targets=1 if classes is None else None,
            tokens=min(LINE_TOKENS, self.longest),
        )

    def normalise(self, sequence: str) -> str:
        """Return the sequence with single spaces where these separate symbols."""
        return " ".join(sequence.split()) if self.vocabulary[0] == "symbols" else sequence


class LabelledSequenceSettings(LabelledSettings):
    """`[task]` of sequence_classification and sequence_regression."""

    tokens: Literal["words", "bpe", "characters", "symbols"]
    """what a token is; words: in lower case, marks apart; characters: bytes; symbols: what stands between
    spaces, or each element of a list"""
    pieces: int = Field(default=DEFAULT_PIECES, ge=300, le=1_000_000)
    """the size of a vocabulary of words or bpe"""

    @property
    def vocabulary(self) -> tuple[str, int]:
        """The kind of a token, and the number of symbols; for a user's file those of the training rows."""
        if self.tokens in ("words", "bpe"):
            return self.tokens, self.pieces
        found = BYTES if self.tokens == "characters" else self.corpus.symbols
        return self.tokens, RESERVED_SYMBOLS + found


class TokenClassificationSettings(LabelledSettings):
    """`[task]` of token_classification."""

    @property
    def vocabulary(self) -> tuple[str, int]:
        """The symbols that are there to train on, each with a label."""
        return "symbols", RESERVED_SYMBOLS + self.corpus.symbols


for _name, _kind, _summary, _settings in (
    (
        "sequence_classification",
        TaskKind.CLASSIFICATION,
        "a sequence of one's own to its class",
        LabelledSequenceSettings,
    ),
    (
        "sequence_regression",
        TaskKind.REGRESSION,
        "a sequence of one's own to a number",
        LabelledSequenceSettings,
    ),
    (
        "token_classification",
        TaskKind.TOKEN_CLASSIFICATION,
        "each token of a sequence of one's own to its class",
        TokenClassificationSettings,
    ),
):
    add_own_task(
        TaskSpec(name=_name, kind=_kind, summary=_summary, source="a table of one's own", settings=_settings)
    )
