"""The contract of vocabularies, and the special numbers of those of sentences."""

from __future__ import annotations

import base64
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, AnyStr, ClassVar, Self

PADDING, START, END, UNKNOWN = range(4)
"""Special numbers that every vocabulary of sentences begins with."""

FIRST_SYMBOL = UNKNOWN + 1


class Vocabulary(ABC):
    """A mapping between symbols and numbers, with a rule that splits a text into symbols.

    `kind` names the rule in files. `end` is the number of the mark after each sentence, line or document.
    """

    kind: ClassVar[str]
    end: ClassVar[int]

    @property
    @abstractmethod
    def size(self) -> int:
        """Return the number of symbols, including special symbols."""

    @abstractmethod
    def encode(self, text: str) -> list[int]:
        """Encode a text, without marks before and after it."""

    @abstractmethod
    def decode(self, numbers: Iterable[int]) -> str:
        """Decode numbers to a text. Special symbols without text are left out."""

    @abstractmethod
    def decode_symbols(self, symbols: Sequence[int]) -> str:
        """Join the symbols of a sentence, line or document, which are without its marks."""

    @abstractmethod
    def content(self) -> bytes:
        """Return the vocabulary as bytes, from which `restore` rebuilds it."""

    @classmethod
    def restore(cls, content: bytes, **options: Any) -> Self:  # noqa: ANN401 -- of the constructor
        """Rebuild a vocabulary from its `content` and its `options`."""
        return cls(content, **options)  # pyright: ignore[reportCallIssue] -- each class has its own

    @property
    def options(self) -> dict[str, Any]:
        """Return the further arguments of `restore`."""
        return {}

    def to_dict(self) -> dict[str, Any]:
        """Return the vocabulary as a dictionary of plain values, which `vocabulary_from_dict` reads."""
        return {
            "kind": self.kind,
            "content": base64.b64encode(self.content()).decode(),
            **self.options,
        }


def most_frequent(counts: Counter[AnyStr], max_words: int | None = None) -> list[AnyStr]:
    """Return the most frequent words, by falling frequency; ties are sorted alphabetically."""
    return sorted(counts, key=lambda word: (-counts[word], word))[:max_words]
