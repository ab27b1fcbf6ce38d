"""The interface of vocabularies of sentences."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence

PADDING, START, END, UNKNOWN = range(4)
"""Numbers of what is no text, in every vocabulary: it has its first symbol behind them."""

FIRST_SYMBOL = UNKNOWN + 1


class Vocabulary(ABC):
    """A one-to-one list of symbols and numbers, and the rule by which sentences become symbols."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Return the number of symbols, special ones included."""

    @abstractmethod
    def encode(self, sentence: str) -> list[int]:
        """Return the numbers of a sentence, without a start or an end."""

    @abstractmethod
    def decode_symbols(self, symbols: Sequence[int]) -> str:
        """Return the sentence that symbols of text stand for."""

    @abstractmethod
    def content(self) -> bytes:
        """Return all that it takes to have this vocabulary again."""

    def unknown(self, sentence: str) -> tuple[str, ...]:
        """Return the symbols of a sentence that are not in the vocabulary; by default it spells them all."""
        del sentence
        return ()

    def normalise(self, sentence: str) -> str:
        """Return a sentence as decoding gives it back, but for unknown words; unchanged by default."""
        return sentence

    def decode(self, numbers: Iterable[int]) -> str:
        """Return the sentence up to the first end, without padding and starts."""
        symbols = []
        for number in numbers:
            if number == END:
                break
            if number not in (PADDING, START):
                symbols.append(int(number))
        return self.decode_symbols(symbols)


def most_frequent(counts: Counter[str], max_words: int) -> list[str]:
    """Return this many words, the most frequent first, equally frequent ones by spelling."""
    return sorted(counts, key=lambda word: (-counts[word], word))[:max_words]
