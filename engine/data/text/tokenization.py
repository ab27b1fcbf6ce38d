"""Tokenisation of a text's bytes.

Each line ends with an end-of-line token, the end mark.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...corpora.files import DataError
from ..token_files import smallest_dtype

END_OF_LINE = b"<eos>"
"""The end of a line, as a word."""

UNKNOWN = b"<unk>"
"""The placeholder in a text for words that are not in its vocabulary."""

_CHUNK = 1 << 23  # bytes that are split into words at a time

_NON_SPACE = bytes(byte not in b" \t\r\v\f\n" for byte in range(256))
"""Lookup table over byte values: 1 for bytes other than white space."""

_NEWLINE_TO_SPACE = bytes.maketrans(b"\n", b" ")
_FIRST_WORD = re.compile(rb"[ \t\r\v\f]*(?:[^ \t\r\v\f\n]+|\n)")
_SPACES, _END_OF_SENTENCE = re.compile(rb" {2,}"), re.compile(rb" ([.?!]) ")

IntArray = NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedText:
    """The tokens of a split, with the offset and the number of words of each line.

    The offsets end with the end of the last line. Words are separated by spaces; a line's end counts as one
    more word, as in word perplexities. `bytes` counts each line's bytes in the original text, with its line
    break. `first_bytes` counts the first token's bytes. A text is `lossless` if its tokens determine every
    byte of it, so that bits per byte refer to the whole text.
    """

    tokens: IntArray
    lines: IntArray
    words: IntArray
    bytes: IntArray
    first_bytes: int
    lossless: bool


TextEncoder = Callable[[bytes], EncodedText]


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


def ensure_final_newline(data: bytes) -> bytes:
    """Return the text with a line break at its end."""
    return data if data.endswith(b"\n") else data + b"\n"


def sentences_as_lines(data: bytes) -> bytes:
    """Put each sentence of a text on its own line.

    The text has separated punctuation, as WikiText has. A sentence ends at a full stop, a question mark or an
    exclamation mark, not at the end of a line. WikiText-103 has 7,831 sentences for validation and 8,958 for
    the test; the program of the first paper counts 7,832 and 8,985 (WT3/feeder.py).
    """
    text = _SPACES.sub(b" ", data.translate(_NEWLINE_TO_SPACE)).strip()
    return ensure_final_newline(_END_OF_SENTENCE.sub(rb" \1\n", text))


def character_encoder(alphabet: bytes) -> TextEncoder:
    """Return an encoder that maps each byte to its position in an alphabet.

    Positions count from 1; a line end is 0.
    """
    known = b"\n" + alphabet
    table = bytearray(256)
    for place, byte in enumerate(known):
        table[byte] = place

    def encode(data: bytes) -> EncodedText:
        data = ensure_final_newline(data)
        if unknown := data.translate(None, known):
            byte, place = unknown[0], data.index(unknown[:1])
            shown = f" ({chr(byte)})" if 32 < byte < 127 else ""
            raise DataError(
                f"expected one of {len(alphabet)} characters, got byte {byte}{shown} at {place:,}"
            )
        tokens = np.frombuffer(data.translate(table), np.uint8)
        ends = np.flatnonzero(tokens == 0) + 1
        lines = _offsets(ends)
        return EncodedText(
            tokens=tokens,
            lines=lines,
            words=_words_of_lines(data, ends),
            bytes=np.diff(lines).astype(np.int32),
            first_bytes=1,
            lossless=True,
        )

    return encode


def build_vocabulary(train: bytes) -> list[bytes]:
    """Return the words of a text by falling frequency, after the end mark.

    Words of equal frequency are sorted alphabetically.
    """
    counts: Counter[bytes] = Counter()
    for chunk in _chunks(ensure_final_newline(train)):
        counts.update(chunk.split())
    counts.pop(END_OF_LINE, None)
    return [END_OF_LINE, *sorted(counts, key=lambda word: (-counts[word], word))]


def limit_vocabulary(known: list[bytes], size: int) -> list[bytes]:
    """Return a vocabulary of at most `size` symbols.

    They are the end mark, `<unk>`, and the most frequent words.
    """
    return [END_OF_LINE, UNKNOWN, *(word for word in known[1:] if word != UNKNOWN)][:size]


def word_encoder(known: list[bytes]) -> TextEncoder:
    """Return an encoder of words. A word outside the vocabulary becomes `<unk>` if there is one."""
    places = {word: place for place, word in enumerate(known)}
    unknown = places.get(UNKNOWN)

    def encode(data: bytes) -> EncodedText:
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
            parts.append(np.array(found, smallest_dtype(len(known))))
        tokens = np.concatenate(parts)
        lines = _offsets(np.flatnonzero(tokens == 0) + 1)
        first = _FIRST_WORD.match(data)
        return EncodedText(
            tokens=tokens,
            lines=lines,
            words=np.diff(lines).astype(np.int32),
            bytes=_bytes_of_lines(data, len(lines) - 1),
            first_bytes=first.end() if first else 0,
            lossless=known_words and data.count(b"\n") == len(lines) - 1 and layout.kept,
        )

    return encode


def _bytes_of_lines(data: bytes, count: int) -> IntArray:
    """Return the number of bytes of each of `count` lines.

    If the text does not have `count` line breaks, each line gets an equal share of the bytes.
    """
    sizes = np.diff(_offsets(np.flatnonzero(np.frombuffer(data, np.uint8) == ord("\n")) + 1))
    if len(sizes) != count:
        sizes = np.full(count, len(data) // count)
        sizes[: len(data) % count] += 1
    return sizes.astype(np.int32)


def _offsets(ends: IntArray) -> IntArray:
    return np.concatenate([[0], ends]).astype(np.int64)


def _words_of_lines(data: bytes, ends: IntArray) -> IntArray:
    # a word begins at each byte that is no space and follows a space
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
