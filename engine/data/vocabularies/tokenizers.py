"""Vocabularies of files of tokenizers.

They are `tokenizer.json` files, and ranks of tiktoken. The libraries are extras of this package, loaded when
a study names such a file.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from ....studies.own_data.summary import MIN_PIECES
from ....studies.own_data.tokenizers import read_ranks
from ...corpora.files import DataError
from .texts import TextVocabulary, decoded

if TYPE_CHECKING:
    import tiktoken
    import tokenizers


class FileTokenizer(TextVocabulary):
    """Vocabulary of a tokenizer's file, `content`. Its token t has the number t + 1, after the mark."""

    begins_with_mark = True

    def __init__(self, content: bytes, *, documents: bool = False) -> None:
        self._content, self.documents = content, documents

    def content(self) -> bytes:
        return self._content

    @property
    def options(self) -> dict[str, Any]:
        return {"documents": self.documents}


class JsonTokenizer(FileTokenizer):
    """Vocabulary of a file tokenizer.json of Hugging Face `tokenizers`."""

    kind = "json"

    @classmethod
    def learn(cls, texts: Iterable[str], size: int) -> Self:
        """Learn byte-level byte pair encoding of `size` numbers, of which one is the mark.

        Words are split as in GPT-2. Raise DataError if the texts yield fewer.
        """
        library = _load_tokenizers()
        tokenizer = library.Tokenizer(library.models.BPE())
        tokenizer.pre_tokenizer = library.pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = library.decoders.ByteLevel()
        trainer = library.trainers.BpeTrainer(
            vocab_size=size - 1,
            show_progress=False,
            initial_alphabet=library.pre_tokenizers.ByteLevel.alphabet(),
        )
        tokenizer.train_from_iterator(texts, trainer)
        if (found := 1 + tokenizer.get_vocab_size()) < size:
            fewer = f"set [task] pieces to at most {found:,}, " if found >= MIN_PIECES else ""
            raise DataError(
                f"no vocabulary of {size:,} pieces can be learnt from this text: it yields {found:,}; "
                f"{fewer}use other tokens, or more text"
            )
        return cls(tokenizer.to_str().encode())

    @property
    def size(self) -> int:
        return 2 + max(self._tokenizer.get_vocab(with_added_tokens=True).values())

    def encode_each(self, units: Sequence[bytes]) -> list[list[int]]:
        # without special tokens, and without the file's padding and truncation
        found = self._tokenizer.encode_batch_fast(list(map(decoded, units)), add_special_tokens=False)
        return [[1 + token for token in each.ids] for each in found]

    def decode_symbols(self, symbols: Sequence[int]) -> str:
        return self._tokenizer.decode([each - 1 for each in symbols], skip_special_tokens=False)

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
    """Vocabulary of byte-level BPE of tiktoken.

    The file has the rank of each token, which is also its number in tiktoken. `pattern` splits a text.
    """

    kind = "ranks"

    def __init__(self, content: bytes, pattern: str, *, documents: bool = False) -> None:
        super().__init__(content, documents=documents)
        self._pattern = pattern

    @property
    def size(self) -> int:
        return 1 + self._encoding.n_vocab

    def encode_each(self, units: Sequence[bytes]) -> list[list[int]]:
        # the name of a special token is encoded like any other text
        return [[1 + token for token in self._encoding.encode_ordinary(decoded(unit))] for unit in units]

    def decode_symbols(self, symbols: Sequence[int]) -> str:
        return self._encoding.decode_bytes([each - 1 for each in symbols]).decode("utf-8", "replace")

    @property
    def options(self) -> dict[str, Any]:
        return {**super().options, "pattern": self._pattern}

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


def library_version() -> str:
    """Return the version of the package `tokenizers`, on which the learnt tokens may depend."""
    return _load_tokenizers().__version__


def _load_tokenizers():  # noqa: ANN202 -- a module
    try:
        import tokenizers  # noqa: PLC0415  an extra
    except ImportError as error:
        raise _missing("byte_bpe, or a tokenizer.json,", "tokenizers") from error
    return tokenizers


def _missing(what: str, package: str) -> DataError:
    return DataError(f'{what} needs the package {package}: pip install "activemem[tokenizers]"')
