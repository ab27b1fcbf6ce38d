"""Vocabularies of texts, whose lines or documents end in a mark: their interface, characters and words."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
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

_CHUNK = 1 << 23  # bytes that are split into words at a time
_LINES = 10_000  # lines encoded at a time

_NON_SPACE = bytes(byte not in b" \t\r\v\f\n" for byte in range(256))
"""Lookup table over byte values: 1 for bytes other than white space."""

_FIRST_WORD = re.compile(rb"[ \t\r\v\f]*(?:[^ \t\r\v\f\n]+|\n)")

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

    If `begins_with_mark`, a mark also precedes each text, so that its first token has a context and is
    scored. If `documents`, the mark ends a document, and a line break is a character like any other.
    """

    end = 0
    begins_with_mark: ClassVar[bool] = False
    documents: bool = False

    @property
    def mark(self) -> IntArray:
        """Return the mark that precedes each text, or an empty array, in the type of all tokens."""
        return np.array([self.end] if self.begins_with_mark else [], smallest_dtype(self.size))

    @abstractmethod
    def encode_bytes(self, data: bytes) -> EncodedText:
        """Encode a text line by line or as one document, with a mark after each.

        Raise DataError if a part of the text has no symbol.
        """

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
    """Vocabulary of the bytes of an alphabet. Their numbers count from 1; a line's end is 0."""

    kind = "characters"

    def __init__(self, alphabet: bytes) -> None:
        self._known = b"\n" + alphabet

    @property
    def size(self) -> int:
        return len(self._known)

    def content(self) -> bytes:
        return self._known[1:]

    def encode_bytes(self, data: bytes) -> EncodedText:
        data = ensure_final_newline(data)
        if unknown := data.translate(None, self._known):
            byte, place = unknown[0], data.index(unknown[:1])
            shown = f" ({chr(byte)})" if 32 < byte < 127 else ""
            raise DataError(
                f"expected one of the {self.size - 1} characters of the alphabet, "
                f"got byte {byte}{shown} at {place:,}"
            )
        table = bytes.maketrans(self._known, bytes(range(self.size)))
        tokens = np.frombuffer(data.translate(table), np.uint8)
        ends = np.flatnonzero(tokens == 0) + 1
        lengths = np.diff(_offsets(ends)).astype(np.int32)
        return EncodedText(
            tokens=tokens,
            lengths=lengths,
            words=_words_of_lines(data, ends),
            bytes=lengths,
            first_bytes=1,
            lossless=True,
        )

    def decode_symbols(self, symbols: Sequence[int]) -> str:
        return bytes(self._known[each] for each in symbols if each < self.size).decode("utf-8", "replace")


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
        for chunk in _chunks(ensure_final_newline(train)):
            counts.update(chunk.split())
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

    def encode_bytes(self, data: bytes) -> EncodedText:
        places, unknown = self._places, self._places.get(UNKNOWN)
        parts: list[IntArray] = []
        data = ensure_final_newline(data)
        layout, known_words = LineLayout(), True
        for chunk in _chunks(data):
            for line in chunk.removesuffix(b"\n").split(b"\n"):
                layout.add(line, b" ".join(line.split()))
            text = chunk.replace(b"\n", b" " + END_OF_LINE + b" ").split()
            found = [places.get(word, unknown) for word in text]
            if unknown is None and None in found:
                raise DataError(f"{text[found.index(None)].decode()} is not in the vocabulary of words")
            known_words = known_words and places.keys() >= set(text)
            parts.append(np.array(found, smallest_dtype(self.size)))
        tokens = np.concatenate(parts)
        lengths = np.diff(_offsets(np.flatnonzero(tokens == 0) + 1)).astype(np.int32)
        first = _FIRST_WORD.match(data)
        return EncodedText(
            tokens=tokens,
            lengths=lengths,
            words=lengths,
            bytes=_bytes_of_lines(data, len(lengths)),
            first_bytes=first.end() if first else 0,
            lossless=known_words and data.count(b"\n") == len(lengths) and layout.kept,
        )

    @cached_property
    def _places(self) -> dict[bytes, int]:
        return {word: place for place, word in enumerate(self._words)}

    def decode_symbols(self, symbols: Sequence[int]) -> str:
        words = [self._words[each] for each in symbols if each < self.size]
        return b" ".join(words).decode("utf-8", "replace")


class UnitVocabulary(TextVocabulary):
    """A vocabulary of a library, which encodes each line or document on its own: no token spans two."""

    begins_with_mark = True

    @abstractmethod
    def encode_each(self, texts: Sequence[str]) -> list[list[int]]:
        """Encode each line or document, without marks."""

    def first_bytes(self, token: int, line_bytes: int) -> int:
        """Return how many bytes the first token of a text covers, given the bytes of the first line."""
        return 0  # it is a mark

    def encode_units(
        self, units: Sequence[bytes], layout: LineLayout
    ) -> tuple[IntArray, IntArray, IntArray, IntArray]:
        """Encode lines or documents, add an end mark to each, and compare them with their decoded tokens.

        Return their tokens, and the numbers of tokens, words and bytes of each. An end mark counts as a
        word, and has no bytes.
        """
        kind = smallest_dtype(self.size)
        texts = [unit.decode("utf-8", errors="replace") for unit in units]
        found = self.encode_each(texts)
        for unit, each in zip(units, found, strict=True):
            if layout.kept:
                layout.add(unit, self.decode_symbols(each).encode())
        tokens = [np.array([*each, self.end], kind) for each in found]
        return (
            np.concatenate(tokens) if tokens else np.array([], kind),
            np.array([len(each) for each in tokens], np.int64),
            np.array([len(text.split()) + 1 for text in texts], np.int32),
            np.array([len(unit) for unit in units], np.int32),
        )

    def encode_bytes(self, data: bytes) -> EncodedText:
        units = [data] if self.documents else split_lines(data)
        layout, starts = LineLayout(), range(0, len(units), _LINES)
        parts = [self.encode_units(units[start : start + _LINES], layout) for start in starts]
        tokens, lengths, words, sizes = map(np.concatenate, zip(*parts, strict=True))
        sizes += np.int32(not self.documents)  # a line break is a byte
        return EncodedText(
            tokens=tokens,
            lengths=lengths,
            words=words,
            bytes=sizes,
            first_bytes=self.first_bytes(int(tokens[0]), int(sizes[0])),
            lossless=layout.kept,
        )


def ensure_final_newline(data: bytes) -> bytes:
    """Return the text with a line break at its end."""
    return data if data.endswith(b"\n") else data + b"\n"


def split_lines(data: bytes) -> list[bytes]:
    """Return the lines of a text without their line breaks."""
    return data.removesuffix(b"\n").split(b"\n")


def _bytes_of_lines(data: bytes, count: int) -> IntArray:
    """Return the bytes of each of `count` lines: equal shares if the text has another number of breaks."""
    sizes = np.diff(_offsets(np.flatnonzero(np.frombuffer(data, np.uint8) == ord("\n")) + 1))
    if len(sizes) != count:
        sizes = np.full(count, len(data) // count)
        sizes[: len(data) % count] += 1
    return sizes.astype(np.int32)


def _offsets(ends: IntArray) -> IntArray:
    return np.concatenate([[0], ends]).astype(np.int64)


def _words_of_lines(data: bytes, ends: IntArray) -> IntArray:
    # a word begins at each byte that is not a space and follows one
    ink = np.frombuffer(data.translate(_NON_SPACE), np.bool_)
    begins = ink.copy()
    begins[1:] &= ~ink[:-1]
    return np.add.reduceat(begins, _offsets(ends)[:-1], dtype=np.int32) + 1


def _chunks(data: bytes) -> Iterator[bytes]:
    start = 0
    while start < len(data):
        # `find` always succeeds, because the text ends with a line break
        stop = data.find(b"\n", min(start + _CHUNK, len(data) - 1)) + 1
        yield data[start:stop]
        start = stop
