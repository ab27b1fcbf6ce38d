"""The interface of vocabularies of sentences, and those of words, bytes, or a closed set of symbols."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Self

from ....studies.catalog.tasks import split_words
from ...corpora.files import DataError

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


_UNKNOWN = "<unk>"


class ListedVocabulary(Vocabulary):
    """A list of symbols; a sentence separates them by spaces."""

    def __init__(self, symbols: Sequence[str], size: int) -> None:
        self._symbols, self._size = tuple(symbols), size
        self._numbers = {symbol: number for number, symbol in enumerate(symbols, start=FIRST_SYMBOL)}

    @classmethod
    def restore(cls, content: bytes) -> Self:
        """Rebuild a vocabulary from its stored content."""
        size, *symbols = content.decode().split("\n")
        return cls(symbols, int(size))

    @property
    def size(self) -> int:
        return self._size

    def content(self) -> bytes:
        return "\n".join([str(self._size), *self._symbols]).encode()

    def encode(self, sentence: str) -> list[int]:
        return [
            self._numbers.get(symbol, UNKNOWN) for symbol in self.normalise(sentence).split(" ") if symbol
        ]

    def unknown(self, sentence: str) -> tuple[str, ...]:
        found = dict.fromkeys(self.normalise(sentence).split(" "))
        return tuple(symbol for symbol in found if symbol and symbol not in self._numbers)

    def decode_symbols(self, symbols: Sequence[int]) -> str:
        known = range(FIRST_SYMBOL, FIRST_SYMBOL + len(self._symbols))
        return " ".join(self._symbols[each - FIRST_SYMBOL] if each in known else _UNKNOWN for each in symbols)


class SymbolVocabulary(ListedVocabulary):
    """A closed set of symbols, learnt from sentences."""

    @classmethod
    def learn(cls, sentences: Iterable[str], size: int) -> Self:
        """Learn all symbols of the sentences, by falling frequency; raise DataError if there are too many."""
        counts = Counter(symbol for sentence in sentences for symbol in sentence.split(" "))
        if len(counts) > size - FIRST_SYMBOL:
            raise DataError(f"expected at most {size - FIRST_SYMBOL:,} symbols, got {len(counts):,}")
        return cls(most_frequent(counts, len(counts)), size)


class WordVocabulary(ListedVocabulary):
    """The most frequent words of a language, in lower case, with separated punctuation.

    Other words are unknown.
    """

    @classmethod
    def learn(cls, sentences: Iterable[str], size: int) -> Self:
        """Learn as many words as fit."""
        counts = Counter(word for sentence in sentences for word in split_words(sentence))
        return cls(most_frequent(counts, size - FIRST_SYMBOL), size)

    def normalise(self, sentence: str) -> str:
        return " ".join(split_words(sentence))


_BYTES = 256


class ByteVocabulary(Vocabulary):
    """Vocabulary with one symbol for each UTF-8 byte."""

    @classmethod
    def learn(cls, sentences: Iterable[str], size: int) -> Self:
        """Return the vocabulary; sentences and size are ignored."""
        del sentences, size
        return cls()

    @classmethod
    def restore(cls, content: bytes) -> Self:
        """Return the vocabulary; the content is ignored."""
        del content
        return cls()

    @property
    def size(self) -> int:
        return FIRST_SYMBOL + _BYTES

    def content(self) -> bytes:
        return b""

    def encode(self, sentence: str) -> list[int]:
        return [FIRST_SYMBOL + byte for byte in sentence.encode()]

    def decode_symbols(self, symbols: Sequence[int]) -> str:
        return bytes(number - FIRST_SYMBOL for number in symbols if number >= FIRST_SYMBOL).decode(
            "utf-8", errors="replace"
        )
