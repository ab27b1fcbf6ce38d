"""The bytes of a sentence as its symbols: nothing is learnt and nothing is unknown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Self

from .base import FIRST_SYMBOL, Vocabulary

_BYTES = 256


class ByteVocabulary(Vocabulary):
    """Every byte of UTF-8 is a symbol."""

    @classmethod
    def learn(cls, sentences: Iterable[str], size: int) -> Self:
        """Return the same for all sentences and sizes."""
        del sentences, size
        return cls()

    @classmethod
    def restore(cls, content: bytes) -> Self:
        """Return the same for all content."""
        del content
        return cls()

    @property
    def size(self) -> int:
        """Return all bytes, and what is no text."""
        return FIRST_SYMBOL + _BYTES

    def content(self) -> bytes:
        """Return nothing: there is only one."""
        return b""

    def encode(self, sentence: str) -> list[int]:
        """Return the numbers of its bytes."""
        return [FIRST_SYMBOL + byte for byte in sentence.encode()]

    def decode_symbols(self, symbols: Sequence[int]) -> str:
        """Return the text of these bytes; those that are no text become �."""
        return bytes(number - FIRST_SYMBOL for number in symbols if number >= FIRST_SYMBOL).decode(
            "utf-8", errors="replace"
        )
