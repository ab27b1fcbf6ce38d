"""The user's own corpora, which a trial's settings identify by the SHA-256 of their content."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
)

from .datasets import Corpus, Dataset, FileSlice, OwnDataset, SourceFile

FOLDER = "own"
"""The folder inside the data folder with the user's own files, named by their SHA-256."""

SPLITS = ("train", "dev", "test")


NamedFiles = str | dict[str, Any]
"""What a study file says of a corpus: its name, or a table of files."""


def own_source(sha256: str) -> SourceFile:
    """Describe the user's file with this SHA-256. In the data folder, the SHA-256 is the file's name."""
    return SourceFile(names=(sha256,), digest=f"sha256:{sha256}")


def _described(facts: BaseModel, title: str) -> dict[str, Any]:
    common = {"folder": FOLDER, "own": True, "licence": "unknown", "source": "files that a study names"}
    return {"name": own_name(facts), "title": title, **common}


class _Facts(BaseModel):
    """Base class for facts about the user's files, such as hashes. They are part of a trial's settings."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", defer_build=True)


class OwnPart(_Facts):
    """One split of a text: the bytes from `start` to `stop` of a file, which have `lines` lines."""

    sha256: str
    start: int
    stop: int
    lines: int


class OwnText(_Facts):
    """The user's text in three splits: train, dev and test.

    `alphabet` has the bytes of the text except line ends, in hexadecimal digits.
    """

    train: OwnPart
    dev: OwnPart
    test: OwnPart
    alphabet: str

    @property
    def parts(self) -> Mapping[str, OwnPart]:
        """The three splits of the text by name."""
        return {"train": self.train, "dev": self.dev, "test": self.test}

    @property
    def dataset(self) -> Corpus:
        """The same text as a `Corpus`. The readers of data expect this class."""
        return Corpus(
            **_described(self, "your own text"),
            splits={
                name: FileSlice(source=own_source(part.sha256), start=part.start, stop=part.stop)
                for name, part in self.parts.items()
            },
            alphabet=bytes.fromhex(self.alphabet),
        )


Texts = Annotated[tuple[str, ...], Field(strict=False)]
"""A tuple of strings that is stored as a JSON list."""


class OwnShards(_Facts):
    """One source in a mixture of documents: a Parquet file, or a folder of Parquet files.

    `files` has the SHA-256 of each file, and `weight` sets how often training draws from them. `documents`
    and `bytes` count only the training split.
    """

    files: Texts
    weight: float
    documents: int
    bytes: int


class OwnCounts(_Facts):
    """The number of the user's rows in each split."""

    train: int
    dev: int
    test: int


class OwnDocuments(_Facts):
    """The user's documents, from one or more sources.

    They are texts in one column of Parquet files. A row of a mixture is drawn from a source by its weight.
    Files of `dev` and `test` are for these splits; a split without files gets a share of all sources.
    """

    column: str
    sources: Annotated[tuple[OwnShards, ...], Field(strict=False)]
    dev: Texts = ()
    test: Texts = ()
    dev_share: float = 0.0
    test_share: float = 0.0
    rows: OwnCounts

    @property
    def dataset(self) -> Corpus:
        """The same documents as a `Corpus`.

        The readers of data expect this class. The alphabet has all 256 bytes, because a document may contain
        any of them, even line breaks.
        """
        described = _described(self, "your own documents")
        return Corpus(**described, splits={}, alphabet=bytes(range(256)))


class OwnTokenizer(_Facts):
    """The SHA-256, the format and the vocabulary size of the user's tokenizer file.

    A tiktoken file has only ranks of tokens, and no rule for splitting a text into words. So `pattern` has
    the regular expression of that rule, in hexadecimal digits, because braces would be read as holes.
    """

    sha256: str
    form: str  # "json" or "ranks"
    size: int
    pattern: str = ""


def tokenizer_dataset(tokenizer: OwnTokenizer) -> Dataset:
    """Return a dataset whose only file is the tokenizer. The file lies with the user's corpora."""
    return OwnDataset(**_described(tokenizer, "your own tokenizer"))


class OwnLayout(_Facts):
    """How to read a user's rows: the format and the SHA-256 of the files, and the columns to read.

    If `split` names a column, that column has the split of each row. Rows of splits in `left_out` are not
    read. A split without its own rows gets a share of the training rows: of its groups, if `group` names a
    column. If `skips_bad_rows`, rows with faults are left out.
    """

    form: str
    train: Texts
    dev: Texts = ()
    test: Texts = ()
    columns: Texts
    split: str | None = None
    dev_share: float = 0.0
    test_share: float = 0.0
    split_names: Texts = ()
    left_out: Texts = ()
    group: str | None = None
    skips_bad_rows: bool = False


_LATER_KEYS: dict[str, Any] = {"group": None, "skips_bad_rows": False}
"""Later keys of `OwnLayout`, with the values at which the names of earlier corpora stay as they are."""


class OwnRows(_Facts):
    """Base class of corpora whose rows have two values, such as a sentence and its label."""

    layout: OwnLayout
    rows: OwnCounts

    @property
    def dataset(self) -> Dataset:
        """The same rows as a `Dataset`. The readers of data expect this class."""
        return OwnDataset(**_described(self, "your own rows"))


class OwnPairs(OwnRows):
    """A user's corpus of sentences and their translations.

    A layout without columns has two files, or uses the first two columns.
    """


class OwnSequences(OwnRows):
    """The user's labelled sequences.

    `classes` is the number of classes, or None for real-valued labels. `symbols` is the number of distinct
    tokens (separated by spaces, or list elements) in the training rows.
    """

    lists: bool
    symbols: int
    classes: int | None = None


def own_name(facts: BaseModel) -> str:
    """Return a name such as `own-1a2b3c4d5e6f`. It comes from a hash of all facts about the user's files."""
    layout = getattr(facts, "layout", None)
    unset = {key for key, value in _LATER_KEYS.items() if layout and getattr(layout, key) == value}
    text = facts.model_dump_json(exclude={"layout": unset} if unset else None)
    return f"own-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def read_facts(*kinds: type[BaseModel], named: bool = True) -> Callable[[object], object]:
    """Return a Pydantic validator that converts a TOML table to one of these classes.

    The result is the first of these classes that accepts the table. If `named` is set, the validator also
    accepts a string, which is the name of a corpus.
    """

    def read(corpus: object) -> object:
        if corpus is None or isinstance(corpus, kinds) or (named and isinstance(corpus, str)):
            return corpus
        if not isinstance(corpus, Mapping):
            expected = "the name of a corpus, or a table of files" if named else "a table of files"
            raise ValueError(f"expected {expected}, got {corpus!r}")
        for kind in kinds:
            with suppress(ValidationError):
                return kind.model_validate(corpus)
        raise ValueError(
            "a table of files cannot be a level, nor be used where the task is a factor: write [task] name = "
            '"language_model", or another task on files, and a study of its own for each text or other task'
        )

    return read
