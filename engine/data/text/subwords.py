"""Byte pair encoding by SentencePiece, trained on a text's train split."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator

import numpy as np
import sentencepiece

from ..token_files import smallest_dtype
from ..vocabularies.subwords import train_pieces
from .tokenization import EncodedText, LineLayout, TextEncoder, ensure_final_newline

PADDING, UNSEEN, END = 0, 1, 2
"""Special token numbers: padding, unknown (unused, as pieces fall back to bytes), and end of line."""

NORMALISATION = 1
"""The version of the normalisation of lines. It grows when the output of the normalisation changes."""

_PROTECTED = r"<unk>|@[-,.]@"
_HYPHEN = re.compile(r"(?<=\w)-(?=\w)")
_MARKS = re.compile(rf"({_PROTECTED}|[^\w\s])")
_LINES = 10_000  # lines encoded at a time
_MAX_CHARACTERS = 2_000  # characters of a line that are encoded at a time


Normalise = Callable[[str], str]
"""A function that normalises a line, and separates its words by single spaces."""


def lowered(line: str) -> str:
    """Return a line in lower case, with single spaces between its words.

    Use it for texts like WikiText, which already separate punctuation and hyphens by spaces.
    """
    return " ".join(line.lower().split())


def separate_punctuation(line: str) -> str:
    """Return a line in lower case, with spaces around punctuation.

    A hyphen inside a word becomes ` @-@ `. The first paper trains on this form (section 4.1). Marks that
    already have this form stay: `<unk>`, `@-@`, `@,@`, `@.@`.
    """
    return " ".join(_MARKS.sub(r" \1 ", _HYPHEN.sub(" @-@ ", line.lower())).split())


def train_subwords(data: bytes, vocab_size: int, normalise: Normalise) -> bytes:
    """Train a SentencePiece model of `vocab_size` pieces.

    They include special pieces and single bytes. Raise DataError if that is impossible.
    """
    return train_pieces(
        (part for line in _lines(data) for part in _split_long_line(normalise(line))),
        vocab_size,
        user_defined_symbols=["▁<unk>"],  # with the leading space of all pieces that begin a word
        max_sentence_length=8 * _MAX_CHARACTERS,
        pad_id=PADDING,
        unk_id=UNSEEN,
        eos_id=END,
        bos_id=-1,
        pad_piece="<pad>",
        unk_piece="<unseen>",
        eos_piece="<eos>",
    )


def subword_encoder(model: bytes, normalise: Normalise) -> TextEncoder:
    """Return an encoder from lines to pieces. Each line is normalised first, and ends with an end mark."""
    processor = sentencepiece.SentencePieceProcessor()
    processor.LoadFromSerializedProto(model)
    kind = smallest_dtype(processor.GetPieceSize())

    def encode(data: bytes) -> EncodedText:
        tokens, lengths, words, sizes = [], [0], [], []
        layout = LineLayout()
        for batch in _batches(_lines(data)):
            words += [len(line.split()) + 1 for line in batch]
            sizes += [len(line.encode()) for line in batch]
            parts = [_split_long_line(normalise(line)) for line in batch]
            found = processor.Encode([part for each in parts for part in each], num_threads=1)
            spelt = iter(processor.Decode(found, num_threads=1))
            pieces = iter(found)
            for text, each in zip(batch, parts, strict=True):
                line = [piece for _ in each for piece in next(pieces)] + [END]
                lengths.append(len(line))
                tokens.append(np.array(line, kind))
                layout.add(text.removesuffix("\n").encode(), " ".join(next(spelt) for _ in each).encode())
        return EncodedText(
            tokens=np.concatenate(tokens),
            lines=np.cumsum(lengths, dtype=np.int64),
            words=np.array(words, np.int32),
            bytes=np.array(sizes, np.int32),
            first_bytes=sizes[0] if tokens[0][0] == END else _bytes_of_piece(processor, int(tokens[0][0])),
            lossless=layout.kept,
        )

    return encode


def _bytes_of_piece(processor: sentencepiece.SentencePieceProcessor, piece: int) -> int:
    """Return how many bytes a piece has without its leading space.

    At the beginning of a text, it stands for these bytes.
    """
    return 1 if processor.IsByte(piece) else len(processor.IdToPiece(piece).removeprefix("▁").encode())


def _lines(data: bytes) -> Iterator[str]:
    for line in io.BytesIO(ensure_final_newline(data)):
        yield line.decode("utf-8", errors="replace")


def _split_long_line(line: str) -> list[str]:
    """Split a long line between words.

    No piece spans two words, so the line gets the same pieces as without the split.
    """
    parts = []
    while len(line) > _MAX_CHARACTERS:
        cut = line.find(" ", _MAX_CHARACTERS)
        if cut < 0:
            break
        parts.append(line[:cut])
        line = line[cut + 1 :]
    return [*parts, line]


def _batches(lines: Iterator[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    for line in lines:
        batch.append(line)
        if len(batch) == _LINES:
            yield batch
            batch = []
    if batch:
        yield batch
