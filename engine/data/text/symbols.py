"""Symbols of a language model: they encode text as in the training corpus, and decode numbers to text."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from .file_tokenizers import (
    ByteTokenizer,
    FileTokenizer,
    JsonTokenizer,
    RankTokenizer,
    document_encoder,
    tokenizer_encoder,
)
from .tokenization import END_OF_LINE, EncodedText, TextEncoder, character_encoder, word_encoder

END_OF_PIECES = 2
"""The end-of-line number of piece vocabularies. Other vocabularies use 0."""


class _Pieces(Protocol):
    """The decoder of pieces: SentencePiece's processor."""

    def Decode(self, ids: list[int], /) -> str: ...  # noqa: N802 -- its name


@dataclass(frozen=True)
class TextSymbols:
    """Characters, words or pieces (`kind`), and the bytes of their list.

    The bytes are the alphabet, the words line by line, SentencePiece's model, or the file of a tokenizer,
    whose kind is its format: `json`, or `ranks` with the `pattern` that splits a text. `separated` says that
    the text to split into pieces has separated punctuation already, as WikiText has. With `documents` the
    mark ends a document, and a line break is a character like any other.
    """

    kind: str
    content: bytes
    separated: bool = False
    pattern: str = ""
    documents: bool = False

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> TextSymbols:
        """Return the symbols from a description by `to_dict`."""
        content = base64.b64decode(record["content"], validate=True)
        return cls(
            kind=record["kind"],
            content=content,
            separated=record["separated"],
            pattern=record.get("pattern", ""),
            documents=record.get("documents", False),
        )

    def to_dict(self) -> dict[str, Any]:
        """Describe these symbols in plain values, for `from_dict`."""
        content = base64.b64encode(self.content).decode()
        found = {"kind": self.kind, "content": content, "separated": self.separated}
        more = {"pattern": self.pattern, "documents": self.documents}
        return found | {key: value for key, value in more.items() if value}

    @property
    def end_of_line(self) -> int:
        """Return the number of the end-of-line symbol."""
        return END_OF_PIECES if self.kind == "bpe" else 0

    @cached_property
    def encode_bytes(self) -> TextEncoder:
        """Return the encoder of a text's bytes, which ends each line, or a document, in an end mark."""
        if self.documents:
            return document_encoder(self.tokenizer)
        if self.kind == "characters":
            return character_encoder(self.content)
        if self.kind == "words":
            return word_encoder(self._words)
        if self.kind in ("json", "ranks"):
            return tokenizer_encoder(self.tokenizer)
        from . import subwords  # noqa: PLC0415  not every machine that reads characters needs the library

        normalise = subwords.lowered if self.separated else subwords.separate_punctuation
        return subwords.subword_encoder(self.content, normalise)

    def encode_text(self, text: str) -> EncodedText:
        """Encode a text, each line with its end. Raise DataError for text without a symbol."""
        return self.encode_bytes(text.encode())

    def encode_beginning(self, text: str) -> list[int]:
        """Encode an unfinished text: only a line break ends a line, and nothing a document."""
        if not text:
            return []
        encoded = self.encode_text(text)
        tokens = encoded.tokens[encoded.lines[0] :].tolist()
        return tokens if text.endswith("\n") and not self.documents else tokens[:-1]

    def decode(self, tokens: Sequence[int]) -> str:
        """Decode numbers to text; symbols without text, such as padding, are left out."""
        if self.kind == "characters" and not self.documents:
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
        if self.documents or self.kind in ("json", "ranks"):
            return self.tokenizer.decode([token - 1 for token in tokens]).decode("utf-8", "replace")
        return self._pieces.Decode([token for token in tokens if token])

    @cached_property
    def _words(self) -> list[bytes]:
        words = self.content.removesuffix(b"\n").split(b"\n")
        assert words[0] == END_OF_LINE, "the first word is the end of a line"
        return words

    @cached_property
    def tokenizer(self) -> FileTokenizer:
        """Return the tokenizer of a file's tokens, or of the bytes of documents."""
        if self.kind == "json":
            return JsonTokenizer(self.content)
        return RankTokenizer(self.content, self.pattern) if self.kind == "ranks" else ByteTokenizer()

    @cached_property
    def _pieces(self) -> _Pieces:
        import sentencepiece  # noqa: PLC0415  as above

        processor = sentencepiece.SentencePieceProcessor()
        processor.LoadFromSerializedProto(self.content)
        return processor
