"""The symbols of a language model, which encode text as in the training corpus and decode numbers to text."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from .tokenization import END_OF_LINE, EncodedText, TextEncoder, character_encoder, word_encoder

END_OF_PIECES = 2
"""The number of the end of a line where symbols are pieces; elsewhere it is 0, with which all texts begin."""


class _Pieces(Protocol):
    """The decoder of pieces: SentencePiece's processor."""

    def Decode(self, ids: list[int], /) -> str: ...  # noqa: N802 -- its name


@dataclass(frozen=True)
class TextSymbols:
    """Characters, words or pieces (`kind`), and the bytes of their list.

    These are the alphabet, the words line by line, or SentencePiece's model. `separated` says that
    punctuation stands apart already in texts that are cut into pieces, as in WikiText.
    """

    kind: str
    content: bytes
    separated: bool = False

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> TextSymbols:
        """Return the symbols that `to_dict` described."""
        content = base64.b64decode(record["content"], validate=True)
        return cls(kind=record["kind"], content=content, separated=record["separated"])

    def to_dict(self) -> dict[str, Any]:
        """Return all that it takes to have these symbols again, as plain values."""
        content = base64.b64encode(self.content).decode()
        return {"kind": self.kind, "content": content, "separated": self.separated}

    @property
    def end_of_line(self) -> int:
        """Return the number of the end of a line."""
        return END_OF_PIECES if self.kind == "bpe" else 0

    @cached_property
    def encode_bytes(self) -> TextEncoder:
        """Return what makes numbers of a text's bytes, each line with its end."""
        if self.kind == "characters":
            return character_encoder(self.content)
        if self.kind == "words":
            return word_encoder(self._words)
        from . import subwords  # noqa: PLC0415  not every machine that reads characters needs the library

        normalise = subwords.lowered if self.separated else subwords.separate_punctuation
        return subwords.subword_encoder(self.content, normalise)

    def encode_text(self, text: str) -> EncodedText:
        """Return a text in numbers, each line with its end. Raises DataError for text without a symbol."""
        return self.encode_bytes(text.encode())

    def encode_beginning(self, text: str) -> list[int]:
        """Return the numbers of an unfinished text: only a line break in it ends a line."""
        tokens = self.encode_text(text).tokens.tolist() if text else []
        return tokens if text.endswith("\n") else tokens[:-1]

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of numbers; leave out symbols without text, such as padding."""
        if self.kind == "characters":
            table = b"\n" + self.content
            return bytes(table[token] for token in tokens if token < len(table)).decode("utf-8", "replace")
        lines: list[list[int]] = [[]]
        for token in tokens:
            if token == self.end_of_line:
                lines.append([])
            else:
                lines[-1].append(token)
        return "\n".join(map(self._decode_line, lines))

    def _decode_line(self, tokens: list[int]) -> str:
        if self.kind == "words":
            words = [self._words[token] for token in tokens if token < len(self._words)]
            return b" ".join(words).decode("utf-8", "replace")
        return self._pieces.Decode([token for token in tokens if token])

    @cached_property
    def _words(self) -> list[bytes]:
        words = self.content.removesuffix(b"\n").split(b"\n")
        assert words[0] == END_OF_LINE, "the first word is the end of a line"
        return words

    @cached_property
    def _pieces(self) -> _Pieces:
        import sentencepiece  # noqa: PLC0415  as above

        processor = sentencepiece.SentencePieceProcessor()
        processor.LoadFromSerializedProto(self.content)
        return processor
