"""Vocabularies of language models. They encode text to numbers, and decode numbers to text.

The code calls a vocabulary `symbols`. A new text is encoded in the same way as the training corpus. Some
tokenizers spell bytes: bytes themselves, `tokenizer.json` files, and ranks of tiktoken. Their libraries are
extras of this package, loaded when a study names such a file.
"""

from __future__ import annotations

import base64
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ....studies.own_data.summary import MIN_PIECES
from ....studies.own_data.tokenizers import read_ranks
from ...corpora.files import DataError
from ..token_files import smallest_dtype
from .tokenization import (
    END_OF_LINE,
    EncodedText,
    IntArray,
    TextEncoder,
    character_encoder,
    ensure_final_newline,
    word_encoder,
)

if TYPE_CHECKING:
    import tiktoken
    import tokenizers

_BYTES = 256
_LINES = 10_000  # lines encoded at a time

MARK = 0
"""The number of the mark that stands before a text, and after each line; token t has the number t + 1."""


class FileTokenizer(ABC):
    """Base class of tokenizers of texts; a text is a line or a document."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Return the number of tokens, which are numbered from 0."""

    @abstractmethod
    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Encode each text. No special tokens are added."""

    @abstractmethod
    def decode(self, tokens: Sequence[int]) -> bytes:
        """Decode tokens to bytes. If the last character is incomplete, it may be decoded as U+FFFD."""


class ByteTokenizer(FileTokenizer):
    """A tokenizer with one token for each byte of UTF-8."""

    @property
    def size(self) -> int:
        """Return the number of byte values, 256."""
        return _BYTES

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the UTF-8 bytes of each text."""
        return [list(text.encode()) for text in texts]

    def decode(self, tokens: Sequence[int]) -> bytes:
        """Return the tokens as bytes."""
        return bytes(tokens)


class JsonTokenizer(FileTokenizer):
    """A tokenizer from a file tokenizer.json of Hugging Face `tokenizers`."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    @property
    def size(self) -> int:
        """Return the number of tokens, which is the highest token number plus one."""
        return 1 + max(self._tokenizer.get_vocab(with_added_tokens=True).values())

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Encode each text in full, without the file's padding and truncation."""
        return [each.ids for each in self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)]

    def decode(self, tokens: Sequence[int]) -> bytes:
        """Decode tokens to bytes, including special tokens."""
        return self._tokenizer.decode(list(tokens), skip_special_tokens=False).encode()

    @cached_property
    def _tokenizer(self) -> tokenizers.Tokenizer:
        library = _load_tokenizers()
        try:
            tokenizer = library.Tokenizer.from_buffer(self._content)
        except Exception as error:  # the library raises no other class
            raise DataError(f"the tokenizer.json cannot be read: {error}") from error
        tokenizer.no_padding()
        tokenizer.no_truncation()
        return tokenizer


class RankTokenizer(FileTokenizer):
    """Byte-level BPE tokenizer of tiktoken.

    It is read from a file of token ranks; `pattern` splits a text. The rank of a token is also its number.
    """

    def __init__(self, content: bytes, pattern: str) -> None:
        self._content, self._pattern = content, pattern

    @property
    def size(self) -> int:
        """Return the number of tokens, which is the highest rank plus one."""
        return self._encoding.n_vocab

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Encode each text. The name of a special token is encoded like any other text."""
        return [self._encoding.encode_ordinary(text) for text in texts]

    def decode(self, tokens: Sequence[int]) -> bytes:
        """Decode tokens to bytes."""
        return self._encoding.decode_bytes(tokens)

    @cached_property
    def _encoding(self) -> tiktoken.Encoding:
        try:
            import tiktoken  # noqa: PLC0415  an extra
        except ImportError as error:
            raise _missing("a file of ranks", "tiktoken") from error
        try:
            return tiktoken.Encoding(
                name="own",
                pat_str=self._pattern,
                mergeable_ranks=read_ranks(self._content),
                special_tokens={},
            )
        except Exception as error:  # tiktoken's error for an invalid pattern
            raise DataError(
                f"tiktoken cannot build a tokenizer from this file and its pattern: {error}"
            ) from error


class EncodedUnits(NamedTuple):
    """Encoded lines or documents, which are called units.

    `tokens` are those of all units, with end marks. `lengths` counts the tokens of each unit, and `words` its
    words. `bytes` counts the units' bytes without marks, and `lossless` is true if decoding restores the
    units.
    """

    tokens: IntArray
    lengths: IntArray
    words: IntArray
    bytes: IntArray
    lossless: bool


def encode_units(tokenizer: FileTokenizer, units: Sequence[bytes]) -> EncodedUnits:
    """Encode lines or documents, and add an end mark to each. An end mark counts as one word."""
    kind = smallest_dtype(tokenizer.size + 1)
    texts = [unit.decode("utf-8", errors="replace") for unit in units]
    found = tokenizer.encode(texts)
    tokens = [np.array([*(token + 1 for token in each), MARK], kind) for each in found]
    return EncodedUnits(
        tokens=np.concatenate(tokens) if tokens else np.array([], kind),
        lengths=np.array([len(each) for each in tokens], np.int64),
        words=np.array([len(text.split()) + 1 for text in texts], np.int32),
        bytes=np.array([len(unit) for unit in units], np.int32),
        lossless=all(tokenizer.decode(each) == unit for each, unit in zip(found, units, strict=True)),
    )


def _tokenizer_encoder(tokenizer: FileTokenizer) -> TextEncoder:
    """Return an encoder that encodes each line separately.

    So no token spans a line break. The text begins with an extra mark, so that its first token can be scored
    too.
    """

    def encode(data: bytes) -> EncodedText:
        lines = ensure_final_newline(data).removesuffix(b"\n").split(b"\n")
        starts = range(0, len(lines), _LINES)
        return _as_text([encode_units(tokenizer, lines[start : start + _LINES]) for start in starts], 1)

    return encode


def _document_encoder(tokenizer: FileTokenizer) -> TextEncoder:
    """Return an encoder that encodes a whole text as one document.

    There is an end mark before and after it.
    """
    return lambda data: _as_text([encode_units(tokenizer, [data])], 0)


def _as_text(parts: Sequence[EncodedUnits], end_bytes: int) -> EncodedText:
    """Join encoded lines or documents to one text that begins with an end mark.

    With this mark as input, the model also predicts the first token. `end_bytes` is the number of bytes of
    each unit's end, such as 1 for a line break.
    """
    tokens, lengths, words, sizes, lossless = zip(*parts, strict=True)
    return EncodedText(
        tokens=np.concatenate([np.array([MARK], tokens[0].dtype), *tokens]),
        lines=np.cumsum([1, *np.concatenate(lengths)], dtype=np.int64),
        words=np.concatenate(words),
        bytes=np.concatenate(sizes) + np.int32(end_bytes),
        first_bytes=0,
        lossless=all(lossless),
    )


def train_byte_bpe(texts: Iterable[str], size: int) -> bytes:
    """Train byte-level byte pair encoding of `size` tokens, and return its tokenizer.json.

    Words are split as in GPT-2. Raise DataError if the texts yield fewer tokens.
    """
    library = _load_tokenizers()
    tokenizer = library.Tokenizer(library.models.BPE())
    tokenizer.pre_tokenizer = library.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = library.decoders.ByteLevel()
    trainer = library.trainers.BpeTrainer(
        vocab_size=size, show_progress=False, initial_alphabet=library.pre_tokenizers.ByteLevel.alphabet()
    )
    tokenizer.train_from_iterator(texts, trainer)
    if (found := tokenizer.get_vocab_size()) < size:
        fewer = f"set [task] pieces to at most {found + 1:,}, " if found + 1 >= MIN_PIECES else ""
        raise DataError(
            f"no vocabulary of {size + 1:,} pieces can be learnt from this text: it yields {found + 1:,}; "
            f'{fewer}use tokens = "characters", or more text'
        )
    return tokenizer.to_str().encode()


def library_version() -> str:
    """Return the version of the package `tokenizers`.

    Another version may learn different tokens from the same text.
    """
    return _load_tokenizers().__version__


def _load_tokenizers():  # noqa: ANN202 -- a module
    try:
        import tokenizers  # noqa: PLC0415  an extra
    except ImportError as error:
        raise _missing("byte_bpe, or a tokenizer.json,", "tokenizers") from error
    return tokenizers


def _missing(what: str, package: str) -> DataError:
    return DataError(f'{what} needs the package {package}: pip install "activemem[tokenizers]"')


END_OF_PIECES = 2
"""The end-of-line number of piece vocabularies. Other vocabularies use 0."""


@dataclass(frozen=True)
class TextSymbols:
    """The vocabulary of a text.

    `kind` is, for example, characters, words or pieces. `content` is the alphabet, the words line by line,
    SentencePiece's model, or the file of a tokenizer, whose kind is its format: `json`, or `ranks` with the
    `pattern` that splits a text. `separated` says that the text to split into pieces has separated
    punctuation already, as WikiText has. With `documents` the mark ends a document, and a line break is a
    character like any other.
    """

    kind: str
    content: bytes
    separated: bool = False
    pattern: str = ""
    documents: bool = False

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> TextSymbols:
        """Rebuild a vocabulary from the dictionary that `to_dict` returned."""
        content = base64.b64decode(record["content"], validate=True)
        return cls(
            kind=record["kind"],
            content=content,
            separated=record["separated"],
            pattern=record.get("pattern", ""),
            documents=record.get("documents", False),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return this vocabulary as a dictionary of plain values, which `from_dict` reads."""
        content = base64.b64encode(self.content).decode()
        found = {"kind": self.kind, "content": content, "separated": self.separated}
        more = {"pattern": self.pattern, "documents": self.documents}
        return found | {key: value for key, value in more.items() if value}

    @property
    def end_of_line(self) -> int:
        """Return the number of the end-of-line symbol."""
        return END_OF_PIECES if self.kind == "bpe" else 0

    @property
    def begins_with_mark(self) -> bool:
        """Return whether each encoded text begins with an end mark.

        The first real token then has a context and is scored.
        """
        return self.documents or self.kind in ("json", "ranks")

    @cached_property
    def encode_bytes(self) -> TextEncoder:
        """Return an encoder of a text's bytes.

        It encodes line by line or, with `documents`, the text as one document. It adds an end mark to each
        line or document.
        """
        if self.documents:
            return _document_encoder(self.tokenizer)
        if self.kind == "characters":
            return character_encoder(self.content)
        if self.kind == "words":
            return word_encoder(self._words)
        if self.kind in ("json", "ranks"):
            return _tokenizer_encoder(self.tokenizer)
        from . import subwords  # noqa: PLC0415  not every machine that reads characters needs the library

        normalise = subwords.lowered if self.separated else subwords.separate_punctuation
        return subwords.subword_encoder(self.content, normalise)

    def encode_text(self, text: str) -> EncodedText:
        """Encode a text, each line with its end. Raise DataError if a part of the text has no symbol."""
        return self.encode_bytes(text.encode())

    def encode_beginning(self, text: str) -> list[int]:
        """Encode an unfinished text, without an end mark after it."""
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
        """Return the tokenizer of these symbols.

        It is read from a file if there is one; otherwise each byte is a token.
        """
        if self.kind == "json":
            return JsonTokenizer(self.content)
        return RankTokenizer(self.content, self.pattern) if self.kind == "ranks" else ByteTokenizer()

    @cached_property
    def _pieces(self) -> Any:  # noqa: ANN401 -- SentencePiece's processor has no types
        import sentencepiece  # noqa: PLC0415  as above

        processor = sentencepiece.SentencePieceProcessor()
        processor.LoadFromSerializedProto(self.content)
        return processor
