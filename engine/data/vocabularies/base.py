"""The interface of vocabularies of sentences."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence

PADDING, START, END, UNKNOWN = range(4)
"""Special numbers that every vocabulary begins with."""

FIRST_SYMBOL = UNKNOWN + 1


class Vocabulary(ABC):
    """A mapping between symbols and numbers, with a rule that splits sentences into symbols."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Return the number of symbols, special ones included."""

    @abstractmethod
    def encode(self, sentence: str) -> list[int]:
        """Encode a sentence, without a start or an end."""

    @abstractmethod
    def decode_symbols(self, symbols: Sequence[int]) -> str:
        """Join symbols into a sentence."""

    @abstractmethod
    def content(self) -> bytes:
        """Return the vocabulary as bytes, for `restore`."""

    def unknown(self, sentence: str) -> tuple[str, ...]:
        """Return a sentence's symbols that the vocabulary lacks; by default there are none."""
        del sentence
        return ()

    def normalise(self, sentence: str) -> str:
        """Return a sentence as encoding and decoding return it, unknown words aside; unchanged by default."""
        return sentence

    def decode(self, numbers: Iterable[int]) -> str:
        """Decode numbers to a sentence, up to the first end, without padding and starts."""
        symbols = []
        for number in numbers:
            if number == END:
                break
            if number not in (PADDING, START):
                symbols.append(int(number))
        return self.decode_symbols(symbols)


def most_frequent(counts: Counter[str], max_words: int) -> list[str]:
    """Return the most frequent words, by falling frequency; ties are sorted alphabetically."""
    return sorted(counts, key=lambda word: (-counts[word], word))[:max_words]
