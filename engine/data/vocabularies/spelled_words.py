"""Vocabularies of frequent words that spell all other words by characters (second paper); lossless."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import ClassVar, Self

from ...corpora.files import DataError
from .words import FIRST_SYMBOL, Vocabulary, most_frequent

PUNCTUATION = """.,!?"':;()«»“”‘’„…"""
"""Signs that are always symbols of their own; the first ten are those of the released program."""

DIGITS_AND_SIGNS = PUNCTUATION + "0123456789][%$#@&*+}{|><=/^~_`-"
"""Signs that are symbols of their own in the released program, digits included."""

SPACE = FIRST_SYMBOL
_BYTES = SPACE + 1  # 256 numbers: a character that was never seen is spelt in bytes
_CHARACTERS = _BYTES + 256


def _token(marks: str) -> re.Pattern[str]:
    return re.compile(rf"[^\s{re.escape(marks)}]+|.", re.DOTALL)


class SpellingVocabulary(Vocabulary):
    """A vocabulary of every character and the most frequent words (Kaiser and Bengio 2016, section 3).

    A space is implied between two words of the vocabulary. Every other space is a symbol, so a word outside
    the vocabulary is spelled between two space symbols. White space and the class's marks separate words.
    Decoding returns any text unchanged: characters outside the vocabulary are spelled in UTF-8.
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
        """Learn all characters, and as many words as fit."""
        words: Counter[str] = Counter()
        marks: set[str] = set()
        for sentence in sentences:
            for token in cls.token.findall(sentence):
                if len(token) > 1 or not (token.isspace() or token in cls.marks):
                    words[token] += 1
                else:
                    marks.add(token)
        characters = sorted(marks.union(*words) - {" "})
        room = size - _CHARACTERS - len(characters)
        if room < 0:
            raise DataError(
                f"expected room for {_CHARACTERS + len(characters):,} symbols without words, got {size:,}"
            )
        return cls(characters, most_frequent(words, room), size)

    @classmethod
    def restore(cls, content: bytes) -> Self:
        """Rebuild a vocabulary from its stored content."""
        kept = json.loads(content)
        return cls(kept["characters"], kept["words"], kept["size"])

    @property
    def size(self) -> int:
        return self._size

    def content(self) -> bytes:
        kept = {"size": self._size, "characters": self._characters, "words": self._words}
        return json.dumps(kept, ensure_ascii=False).encode()

    def encode(self, sentence: str) -> list[int]:
        numbers: list[int] = []
        waiting = after_word = (
            False  # a space that may be implied; whether a word of the vocabulary is before
        )
        for token in self.token.findall(sentence):
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
            elif _BYTES <= number < _CHARACTERS:
                parts.append(bytes([number - _BYTES]))
            else:
                parts.append(b" " if number == SPACE else "�".encode())
            after_word = word
        return b"".join(parts).decode("utf-8", errors="replace")

    def _spelt(self, sign: str) -> list[int]:
        number = self._of_character.get(sign)
        return [number] if number is not None else [_BYTES + byte for byte in sign.encode()]


class SpelledVocabulary(SpellingVocabulary):
    """Spelling vocabulary whose words are separated by white space and punctuation."""

    marks = PUNCTUATION
    token = _token(PUNCTUATION)


class DigitSpellingVocabulary(SpellingVocabulary):
    """Spelling vocabulary that also separates words at digits and some forty signs (released program)."""

    marks = DIGITS_AND_SIGNS
    token = _token(DIGITS_AND_SIGNS)
