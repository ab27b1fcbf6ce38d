"""Vocabularies of texts, whose lines or documents end in a mark: their interface, characters and words."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ...corpora.files import DataError
from ..token_files import smallest_dtype
from .vocabulary import Vocabulary, most_frequent

END_OF_LINE = b"<eos>"
"""The end of a line, as a word."""

UNKNOWN = b"<unk>"
"""The placeholder in a text for words that are not in its vocabulary."""

_LINES = 10_000  # lines encoded at a time

_NON_SPACE = bytes(byte not in b" \t\r\v\f\n" for byte in range(256))
"""Lookup table over byte values: 1 for bytes other than white space."""

IntArray = NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedText:
    """The tokens of a text, without a mark before it, and the numbers of tokens and words of each line.

    Words are separated by spaces; a line's end counts as one more word, as in word perplexities. `bytes`
    counts each line's bytes in the original text, with its line break. `first_bytes` counts the bytes of the
    first token, or of the mark before it. A text is `lossless` if its tokens determine every byte of it, so
    that bits per byte refer to the whole text.
    """

    tokens: IntArray
    lengths: IntArray
    words: IntArray
    bytes: IntArray
    first_bytes: int
    lossless: bool


class LineLayout:
    """Record of whether a text's lines can be restored from their tokens.

    The text can be restored if all original lines equal the decoded lines or if, as in WikiText, all have one
    more space at both ends.
    """

    def __init__(self) -> None:
        self._plain = self._padded = True

    @property
    def kept(self) -> bool:
        """Return whether the original lines can be restored from their decoded tokens."""
        return self._plain or self._padded

    def add(self, line: bytes, spelt: bytes) -> None:
        """Compare a line with its decoded tokens `spelt`. Both are without a line break."""
        self._plain = self._plain and line == spelt
        self._padded = self._padded and line == (b" " + spelt + b" " if spelt else b" ")


class TextVocabulary(Vocabulary):
    """A vocabulary of whole texts. A new text is encoded in the same way as the training corpus.

    Each line or document is encoded on its own, and a mark follows it: no token spans two. If
    `begins_with_mark`, a mark also precedes each text, so that its first token has a context and is scored.
    If `documents`, the mark ends a document, and a line break is a character like any other.
    """

    end = 0
    begins_with_mark: bool = False
    is_exact: ClassVar[bool] = False  # every text can be restored, without a comparison
    documents: bool = False

    @property
    def mark(self) -> IntArray:
        """Return the mark that precedes each text, or an empty array, in the type of all tokens."""
        return np.array([self.end] if self.begins_with_mark else [], smallest_dtype(self.size))

    @abstractmethod
    def encode_each(self, units: Sequence[bytes]) -> Sequence[Any]:
        """Encode each line or document as a sequence or array of numbers, without marks.

        Raise DataError if a part has no symbol.
        """

    def count_words(self, unit: bytes) -> int:
        """Return the number of words of a line or document."""
        return len(decoded(unit).split())

    def first_bytes(self, token: int, unit: bytes) -> int:
        """Return how many bytes the first token of a text covers, given its first line or document."""
        return 0  # it is a mark

    def encode_units(
        self, units: Sequence[bytes], layout: LineLayout
    ) -> tuple[IntArray, IntArray, IntArray, IntArray]:
        """Encode lines or documents, add an end mark to each, and compare them with their decoded tokens.

        Return their tokens, and the numbers of tokens, words and bytes of each. An end mark counts as a
        word, and has no bytes.
        """
        kind = smallest_dtype(self.size)
        mark, found = np.array([self.end], kind), self.encode_each(units)
        if not self.is_exact:
            for unit, each in zip(units, found, strict=True):
                if layout.kept:
                    layout.add(unit, self.decode_symbols(each).encode())
        parts = [part for each in found for part in (np.asarray(each, kind), mark)]
        return (
            np.concatenate(parts) if parts else np.array([], kind),
            np.array([len(each) + 1 for each in found], np.int64),
            np.array([self.count_words(unit) + 1 for unit in units], np.int32),
            np.array([len(unit) for unit in units], np.int32),
        )

    def encode_bytes(self, data: bytes) -> EncodedText:
        """Encode a text line by line or as one document, with a mark after each.

        Raise DataError if a part of the text has no symbol.
        """
        units = [data] if self.documents else split_lines(data)
        layout, starts = LineLayout(), range(0, len(units), _LINES)
        parts = [self.encode_units(units[start : start + _LINES], layout) for start in starts]
        tokens, lengths, words, sizes = map(np.concatenate, zip(*parts, strict=True))
        return EncodedText(
            tokens=tokens,
            lengths=lengths,
            words=words,
            bytes=sizes + np.int32(not self.documents),  # a line break is a byte
            first_bytes=self.first_bytes(int(tokens[0]), units[0]),
            lossless=layout.kept,
        )

    def encode(self, text: str) -> list[int]:
        """Encode an unfinished text, without marks before and after it."""
        if not text:
            return []
        tokens = self.encode_bytes(text.encode()).tokens.tolist()
        return tokens if text.endswith("\n") and not self.documents else tokens[:-1]

    def decode(self, numbers: Iterable[int]) -> str:
        lines: list[list[int]] = [[]]
        for number in numbers:
            if number == self.end:
                lines.append([])
            else:
                lines[-1].append(number)
        return "\n".join(map(self.decode_symbols, lines))


class CharacterVocabulary(TextVocabulary):
    """Vocabulary of the bytes of an alphabet. Their numbers count from 1; the mark is 0."""

    kind = "characters"
    is_exact = True

    def __init__(self, alphabet: bytes, *, documents: bool = False) -> None:
        self._alphabet, self.documents = alphabet, documents
        self.begins_with_mark = documents
        self._numbers = np.zeros(256, smallest_dtype(self.size))  # of each byte
        self._numbers[list(alphabet)] = range(1, self.size)

    @property
    def size(self) -> int:
        return 1 + len(self._alphabet)

    def content(self) -> bytes:
        return self._alphabet

    @property
    def options(self) -> dict[str, Any]:
        return {"documents": self.documents}

    def encode_each(self, units: Sequence[bytes]) -> Sequence[Any]:
        return [self._numbers[np.frombuffer(unit, np.uint8)] for unit in units]

    def encode_bytes(self, data: bytes) -> EncodedText:
        if unknown := data.translate(None, self._alphabet + b"\n"):
            byte, place = unknown[0], data.index(unknown[:1])
            shown = f" ({chr(byte)})" if 32 < byte < 127 else ""
            raise DataError(
                f"expected one of the {self.size - 1} characters of the alphabet, "
                f"got byte {byte}{shown} at {place:,}"
            )
        return super().encode_bytes(data)

    def count_words(self, unit: bytes) -> int:
        if self.documents:
            return super().count_words(unit)
        # a word begins at each byte that is not a space and follows one; a text may be one line of 100 MB
        ink = np.frombuffer((b" " + unit).translate(_NON_SPACE), np.bool_)
        return int(np.count_nonzero(ink[1:] & ~ink[:-1]))

    def first_bytes(self, token: int, unit: bytes) -> int:
        return 0 if self.begins_with_mark else 1

    def decode_symbols(self, symbols: Sequence[int]) -> str:
        # a model may write the mark, and then it is a line break
        known = b"\n" + self._alphabet
        return bytes(known[each] for each in symbols if each < self.size).decode("utf-8", "replace")


class TextWordVocabulary(TextVocabulary):
    """Vocabulary of the words between spaces.

    `content` has the words line by line, the end mark first. A word outside the vocabulary becomes `<unk>` if
    there is one.
    """

    kind = "words"

    def __init__(self, content: bytes) -> None:
        self._words = content.removesuffix(b"\n").split(b"\n")
        assert self._words[0] == END_OF_LINE, "the first word is the end of a line"

    @classmethod
    def learn(cls, train: bytes, size: int | None = None) -> Self:
        """Learn the words of a text by falling frequency, after the end mark.

        Words of equal frequency are sorted alphabetically. With `size`, `<unk>` comes second, and only the
        most frequent words fit.
        """
        counts: Counter[bytes] = Counter()
        for line in split_lines(train):
            counts.update(line.split())
        counts.pop(END_OF_LINE, None)
        special = [END_OF_LINE]
        if size is not None:
            counts.pop(UNKNOWN, None)
            special.append(UNKNOWN)
        return cls(b"\n".join([*special, *most_frequent(counts)][:size]) + b"\n")

    @property
    def size(self) -> int:
        return len(self._words)

    def content(self) -> bytes:
        return b"\n".join(self._words) + b"\n"

    def encode_each(self, units: Sequence[bytes]) -> Sequence[Any]:
        places, unknown = self._places, self._places.get(UNKNOWN)
        encoded = list[Sequence[Any]]()
        for unit in units:
            words = unit.split()
            found = [places.get(word, unknown) for word in words]
            if None in found:
                raise DataError(f"{words[found.index(None)].decode()} is not in the vocabulary of words")
            encoded.append(found)
        return encoded

    def count_words(self, unit: bytes) -> int:
        return len(unit.split())

    def first_bytes(self, token: int, unit: bytes) -> int:
        first = unit.split(None, 1)
        return unit.index(first[0]) + len(first[0]) if first else len(unit) + 1

    @cached_property
    def _places(self) -> dict[bytes, int]:
        return {word: place for place, word in enumerate(self._words) if place}  # a mark is no word

    def decode_symbols(self, symbols: Sequence[int]) -> str:
        words = [self._words[each] for each in symbols if each < self.size]
        return b" ".join(words).decode("utf-8", "replace")


def decoded(unit: bytes) -> str:
    """Return a line or document as text, whose invalid bytes are replaced."""
    return unit.decode("utf-8", errors="replace")


def ensure_final_newline(data: bytes) -> bytes:
    """Return the text with a line break at its end."""
    return data if data.endswith(b"\n") else data + b"\n"


def split_lines(data: bytes) -> list[bytes]:
    """Return the lines of a text without their line breaks."""
    return data.removesuffix(b"\n").split(b"\n")
