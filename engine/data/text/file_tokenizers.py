"""Tokenizers that spell bytes: bytes themselves, `tokenizer.json` files, and ranks of tiktoken.

Their libraries are extras of this package, loaded when a study names such a file.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ....studies.own_data.summary import MIN_PIECES
from ....studies.own_data.tokenizers import read_ranks
from ...corpora.files import DataError
from ..token_files import smallest_dtype
from .tokenization import EncodedText, IntArray, TextEncoder, ensure_final_newline

if TYPE_CHECKING:
    import tiktoken
    import tokenizers

_BYTES = 256
_LINES = 10_000  # encoded at a time

MARK = 0
"""The number of the mark that stands before a text, and after each line; token t has the number t + 1."""


class FileTokenizer(ABC):
    """A tokenizer of texts, which are lines or documents."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Return the number of tokens; they are numbered from 0."""

    @abstractmethod
    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Encode each text, without special tokens around it."""

    @abstractmethod
    def decode(self, tokens: Sequence[int]) -> bytes:
        """Decode tokens; the first bytes of an unfinished character may come back as U+FFFD."""


class ByteTokenizer(FileTokenizer):
    """A token for each byte of UTF-8."""

    @property
    def size(self) -> int:
        """Return the number of bytes."""
        return _BYTES

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the bytes of each text."""
        return [list(text.encode()) for text in texts]

    def decode(self, tokens: Sequence[int]) -> bytes:
        """Return the bytes."""
        return bytes(tokens)


class JsonTokenizer(FileTokenizer):
    """A tokenizer of Hugging Face `tokenizers`."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    @property
    def size(self) -> int:
        """Return the highest number and one."""
        return 1 + max(self._tokenizer.get_vocab(with_added_tokens=True).values())

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Encode each text in full, whatever the file says of padding and truncation."""
        return [each.ids for each in self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)]

    def decode(self, tokens: Sequence[int]) -> bytes:
        """Decode tokens, special ones included."""
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
    """Byte-level byte pair encoding by tiktoken: the rank of each token, and a pattern that splits a text."""

    def __init__(self, content: bytes, pattern: str) -> None:
        self._content, self._pattern = content, pattern

    @property
    def size(self) -> int:
        """Return the highest rank and one."""
        return self._encoding.n_vocab

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Encode each text; special tokens are spelt like other text."""
        return [self._encoding.encode_ordinary(text) for text in texts]

    def decode(self, tokens: Sequence[int]) -> bytes:
        """Decode tokens."""
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
        except Exception as error:  # of an invalid pattern
            raise DataError(f"tiktoken cannot use this file with its pattern: {error}") from error


class EncodedUnits(NamedTuple):
    """Encoded lines or documents: all tokens, each unit's with its mark, and of each its length and words.

    `bytes` are those of the units alone, and `lossless` says that decoding returns them.
    """

    tokens: IntArray
    lengths: IntArray
    words: IntArray
    bytes: IntArray
    lossless: bool


def encode_units(tokenizer: FileTokenizer, units: Sequence[bytes]) -> EncodedUnits:
    """Encode lines or documents; each ends in a mark, which counts as a word."""
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


def tokenizer_encoder(tokenizer: FileTokenizer) -> TextEncoder:
    """Return an encoder of a text's lines, so that no token spans a line break.

    The text begins with a mark, which no line has, so that all of it can be scored.
    """

    def encode(data: bytes) -> EncodedText:
        lines = ensure_final_newline(data).removesuffix(b"\n").split(b"\n")
        starts = range(0, len(lines), _LINES)
        return _as_text([encode_units(tokenizer, lines[start : start + _LINES]) for start in starts], 1)

    return encode


def document_encoder(tokenizer: FileTokenizer) -> TextEncoder:
    """Return an encoder of a text as one document, with a mark before it and behind."""
    return lambda data: _as_text([encode_units(tokenizer, [data])], 0)


def _as_text(parts: Sequence[EncodedUnits], end_bytes: int) -> EncodedText:
    """Return units as a text with a mark before it; the end of each has so many bytes."""
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
    """Return the version of `tokenizers`, on which trained pieces may depend."""
    return _load_tokenizers().__version__


def _load_tokenizers():  # noqa: ANN202 -- a module
    try:
        import tokenizers  # noqa: PLC0415  an extra
    except ImportError as error:
        raise _missing("byte_bpe, or a tokenizer.json,", "tokenizers") from error
    return tokenizers


def _missing(what: str, package: str) -> DataError:
    return DataError(f'{what} needs the package {package}: pip install "activemem[tokenizers]"')
