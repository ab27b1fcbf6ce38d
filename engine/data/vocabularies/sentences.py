"""Vocabularies of sentences: words, bytes and given symbols.

Spelling vocabularies have the frequent words, and write all other words character by character. They are
lossless.
"""

from __future__ import annotations

import json
import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import ClassVar, Self

from ....studies.catalog.tasks import split_words
from ....studies.catalog.tasks.sentence_pairs import BYTES
from ...corpora.files import DataError
from .vocabulary import END, FIRST_SYMBOL, PADDING, START, UNKNOWN, Vocabulary, most_frequent


class SentenceVocabulary(Vocabulary):
    """A vocabulary of single sentences, such as those of pairs and of labelled sequences."""

    end = END

    @classmethod
    @abstractmethod
    def learn(cls, sentences: Iterable[str], size: int) -> Self:
        """Learn a vocabulary from sentences. Raise DataError if `size` does not suit these sentences."""

    def unknown(self, sentence: str) -> tuple[str, ...]:
        """Return the symbols of a sentence that are not in the vocabulary."""
        return ()

    def normalise(self, sentence: str) -> str:
        """Return a sentence as it would be after encoding and decoding.

        Words outside the vocabulary are left as they are.
        """
        return sentence

    def decode(self, numbers: Iterable[int]) -> str:
        """Decode numbers to a sentence, up to the first end symbol."""
        symbols = []
        for number in numbers:
            if number == END:
                break
            if number not in (PADDING, START):
                symbols.append(int(number))
        return self.decode_symbols(symbols)


_UNKNOWN = "<unk>"


class ListedVocabulary(SentenceVocabulary):
    """Vocabulary given by a list of symbols. In a sentence, spaces separate the symbols."""

    def __init__(self, symbols: Sequence[str], size: int) -> None:
        self._symbols, self._size = tuple(symbols), size
        self._numbers = {symbol: number for number, symbol in enumerate(symbols, start=FIRST_SYMBOL)}

    @classmethod
    def restore(cls, content: bytes, **options: object) -> Self:
        size, *symbols = content.decode().split("\n")
        return cls(symbols, int(size))

    @property
    def size(self) -> int:
        return self._size

    def content(self) -> bytes:
        return "\n".join([str(self._size), *self._symbols]).encode()

    def encode(self, text: str) -> list[int]:
        return [self._numbers.get(symbol, UNKNOWN) for symbol in self.normalise(text).split(" ") if symbol]

    def unknown(self, sentence: str) -> tuple[str, ...]:
        found = dict.fromkeys(self.normalise(sentence).split(" "))
        return tuple(symbol for symbol in found if symbol and symbol not in self._numbers)

    def decode_symbols(self, symbols: Sequence[int]) -> str:
        known = range(FIRST_SYMBOL, FIRST_SYMBOL + len(self._symbols))
        return " ".join(self._symbols[each - FIRST_SYMBOL] if each in known else _UNKNOWN for each in symbols)


class SymbolVocabulary(ListedVocabulary):
    """Vocabulary of all symbols that occur in the sentences from which it is learnt."""

    kind = "symbols"

    @classmethod
    def learn(cls, sentences: Iterable[str], size: int) -> Self:
        """Learn all symbols of the sentences, most frequent first. Raise DataError if `size` is too small."""
        counts = Counter(symbol for sentence in sentences for symbol in sentence.split(" "))
        if len(counts) > size - FIRST_SYMBOL:
            raise DataError(f"expected at most {size - FIRST_SYMBOL:,} symbols, got {len(counts):,}")
        return cls(most_frequent(counts), size)


class WordVocabulary(ListedVocabulary):
    """The most frequent words of a language, in lower case.

    A punctuation mark is a word of its own. Other words are unknown.
    """

    kind = "words"

    @classmethod
    def learn(cls, sentences: Iterable[str], size: int) -> Self:
        """Learn the most frequent words, as many as fit into `size`."""
        counts = Counter(word for sentence in sentences for word in split_words(sentence))
        return cls(most_frequent(counts, size - FIRST_SYMBOL), size)

    def normalise(self, sentence: str) -> str:
        return " ".join(split_words(sentence))


class ByteVocabulary(SentenceVocabulary):
    """Vocabulary with one symbol for each UTF-8 byte."""

    kind = "characters"

    @classmethod
    def learn(cls, sentences: Iterable[str], size: int) -> Self:
        return cls()

    @classmethod
    def restore(cls, content: bytes, **options: object) -> Self:
        return cls()

    @property
    def size(self) -> int:
        return FIRST_SYMBOL + BYTES

    def content(self) -> bytes:
        return b""

    def encode(self, text: str) -> list[int]:
        return [FIRST_SYMBOL + byte for byte in text.encode()]

    def decode_symbols(self, symbols: Sequence[int]) -> str:
        # a model may write bytes that are not valid UTF-8
        return bytes(number - FIRST_SYMBOL for number in symbols if number >= FIRST_SYMBOL).decode(
            "utf-8", errors="replace"
        )


PUNCTUATION = """.,!?"':;()«»“”‘’„…"""
"""Signs that are always symbols of their own; the first ten are those of the released program."""

DIGITS_AND_SIGNS = PUNCTUATION + "0123456789][%$#@&*+}{|><=/^~_`-"
"""Signs that are symbols of their own in the released program, digits included."""

SPACE = FIRST_SYMBOL
_BYTE_VALUES = SPACE + 1  # 256 numbers, one for each byte of characters outside the vocabulary
_CHARACTERS = _BYTE_VALUES + BYTES


def _token(marks: str) -> re.Pattern[str]:
    return re.compile(rf"[^\s{re.escape(marks)}]+|.", re.DOTALL)


class SpellingVocabulary(SentenceVocabulary):
    """Vocabulary that writes rare words character by character (Kaiser and Bengio 2016, section 3).

    It has every character and the most frequent words of the sentences. A space is implied between two words
    of the vocabulary. Every other space is a symbol, so a word outside the vocabulary is spelled between two
    space symbols. White space and the class's marks separate words. Decoding returns any text unchanged:
    characters outside the vocabulary are spelled in UTF-8.
    """

    marks: ClassVar[str]
    token: ClassVar[re.Pattern[str]]

    def __init__(self, characters: Sequence[str], words: Sequence[str], size: int) -> None:
        self._size = size
        self._characters, self._words = tuple(characters), tuple(words)
        self._first_word = _CHARACTERS + len(self._characters)
        self._of_character = {sign: number for number, sign in enumerate(characters, start=_CHARACTERS)}
        self._of_word = {word: number for number, word in enumerate(words, start=self._first_word)}

    @classmethod
    def learn(cls, sentences: Iterable[str], size: int) -> Self:
        """Learn all characters, then as many of the most frequent words as fit into `size`."""
        words: Counter[str] = Counter()
        marks: set[str] = set()
        for sentence in sentences:
            for token in cls.token.findall(sentence):
                # white space and marks are only characters, and would waste the numbers of words
                if len(token) > 1 or not (token.isspace() or token in cls.marks):
                    words[token] += 1
                else:
                    marks.add(token)
        characters = sorted(marks.union(*words) - {" "})
        room = size - _CHARACTERS - len(characters)
        if room < 0:
            raise DataError(
                f"expected at least {_CHARACTERS + len(characters):,} symbols, because the characters "
                f"alone need as many, got {size:,}"
            )
        return cls(characters, most_frequent(words, room), size)

    @classmethod
    def restore(cls, content: bytes, **options: object) -> Self:
        kept = json.loads(content)
        return cls(kept["characters"], kept["words"], kept["size"])

    @property
    def size(self) -> int:
        return self._size

    def content(self) -> bytes:
        kept = {"size": self._size, "characters": self._characters, "words": self._words}
        return json.dumps(kept, ensure_ascii=False).encode()

    def encode(self, text: str) -> list[int]:
        numbers: list[int] = []
        waiting = after_word = False  # a pending implied space, and whether the last symbol was a word
        for token in self.token.findall(text):
            word = self._of_word.get(token)
            if waiting and (word is None or not after_word):
                numbers.append(SPACE)
                after_word = False
            waiting = token == " "
            if word is not None:
                numbers.append(word)
                after_word = True
            elif not waiting:
                numbers += [number for sign in token for number in self._spelt(sign)]
                after_word = False
        return [*numbers, SPACE] if waiting else numbers

    def decode_symbols(self, symbols: Sequence[int]) -> str:
        parts: list[bytes] = []
        after_word = False
        for number in symbols:
            if word := self._first_word <= number < self._first_word + len(self._words):
                space = b" " if after_word else b""
                parts.append(space + self._words[number - self._first_word].encode())
            elif _CHARACTERS <= number < self._first_word:
                parts.append(self._characters[number - _CHARACTERS].encode())
            elif _BYTE_VALUES <= number < _CHARACTERS:
                parts.append(bytes([number - _BYTE_VALUES]))
            else:
                parts.append(b" " if number == SPACE else "�".encode())
            after_word = word
        return b"".join(parts).decode("utf-8", errors="replace")

    def _spelt(self, sign: str) -> list[int]:
        number = self._of_character.get(sign)
        return [number] if number is not None else [_BYTE_VALUES + byte for byte in sign.encode()]


class SpelledVocabulary(SpellingVocabulary):
    """Spelling vocabulary whose words end at white space and punctuation."""

    kind = "spelled"
    marks = PUNCTUATION
    token = _token(PUNCTUATION)


class DigitSpellingVocabulary(SpellingVocabulary):
    """Spelling vocabulary whose words also end at digits and at signs such as `%` and `$`.

    The program of Kaiser and Bengio (2016) does this.
    """

    kind = "spelled_digits"
    marks = DIGITS_AND_SIGNS
    token = _token(DIGITS_AND_SIGNS)
