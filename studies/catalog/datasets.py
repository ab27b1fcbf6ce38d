"""Datasets that models are trained on.

They are texts, pairs and treebanks, with their files and sources. The datasets in `datasets.toml` are read on
first use; plug-ins can register others.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, InstanceOf

from ...errors import ActivememError, nearest_hint
from ...plugins import PluginError, Registry


class CorpusError(ActivememError):
    """Error for a missing corpus, or for a kind of token that it does not support."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Download:
    """A published file: its download addresses, size and checksum. The first address that answers is used."""

    name: str
    urls: tuple[str, ...]
    size: int | None = None
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """A text file to download, either on its own or in an archive.

    `names` are the possible names of the file. Only the first `size` bytes are used; None means all. `digest`
    is a checksum such as `md5:…`. A file without a checksum is accepted only inside an archive with a known
    checksum.
    """

    names: tuple[str, ...]
    size: int | None = None
    digest: str | None = None
    archive: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset(ABC):
    """Base class of the datasets that a study can name.

    They are texts, sentence pairs and treebanks. `folder` is the dataset's folder inside the data folder,
    unless the dataset is `installed` with this package. `own` is true if a study file names its files.
    `manual_instructions` says where to get files that cannot be downloaded.
    """

    KIND: ClassVar[str] = "corpus"

    name: str
    title: str
    folder: str
    installed: bool = False
    own: bool = False
    downloads: tuple[Download, ...] = ()
    manual_instructions: str | None = None
    licence: str
    source: str

    @property
    @abstractmethod
    def sources(self) -> tuple[SourceFile, ...]:
        """The files from which the dataset is read, each once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnDataset(Dataset):
    """The user's rows, or the files of the user's tokenizer."""

    @property
    def sources(self) -> tuple[SourceFile, ...]:
        """No files, because the study file names them."""
        return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSlice:
    """The part of a file that is one split: its bytes from `start` to `stop`."""

    source: SourceFile
    start: int = 0
    stop: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus(Dataset):
    """A text with its train, dev and test splits.

    `size_mb` is the approximate size of the plain text. `splits` are train, dev and test. `alphabet` has all
    bytes of the text except line ends. `unigram_bits` is the entropy of a single character in the training
    split, if known; `word_vocab_size` is the size of the standard word vocabulary, if
    there is one. In a `pretokenized` text punctuation is already separated from words. `scored_words` are the
    words of a split after its first, and their bytes.
    """

    KIND: ClassVar[str] = "corpus"

    size_mb: float | None = None
    splits: Mapping[str, FileSlice]
    alphabet: bytes
    unigram_bits: float | None = None
    word_vocab_size: int | None = None
    pretokenized: bool = False
    scored_words: Mapping[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])

    @property
    def sources(self) -> tuple[SourceFile, ...]:
        """The files that contain the train, dev and test splits, each once."""
        return tuple(dict.fromkeys(part.source for part in self.splits.values()))


@dataclass(frozen=True, slots=True, kw_only=True)
class PairFiles:
    """A file of source sentences, and a file of their translations on the same lines.

    If there is no target file, the source file has both in columns.
    """

    source: SourceFile
    target: SourceFile | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOutFractions:
    """The shares of sentence pairs for the dev and test splits.

    These pairs are held out of training. The split of a pair depends only on its source sentence.
    """

    dev: float = 0.05
    test: float = 0.20

    def split_of(self, source: str) -> str:
        """Return the split of a pair with this source sentence. A hash of the sentence determines it."""
        # a number from 0 to 1 that does not depend on the machine or on other pairs
        place = int.from_bytes(source_key(source)[:8], "big") / 2**64
        if place < self.test:
            return "test"
        return "dev" if place < self.test + self.dev else "train"


def source_key(source: str) -> bytes:
    """Return the SHA-256 digest of a source sentence. Upper case and repeated spaces are ignored."""
    # sentences that differ only in case or spaces share a split, or a test sentence could occur in training
    return hashlib.sha256(" ".join(source.casefold().split()).encode()).digest()


@dataclass(frozen=True, slots=True, kw_only=True)
class ParallelCorpus(Dataset):
    """Sentence pairs of two languages, with their train, dev and test splits.

    `files` has the files of each split, or all under "train" if fractions are held out. `pairs` is the
    approximate number of training pairs.
    """

    KIND: ClassVar[str] = "parallel corpus"

    languages: tuple[str, str]
    files: Mapping[str, tuple[PairFiles, ...]]
    held_out: HeldOutFractions | None = None
    pairs: int

    @property
    def sources(self) -> tuple[SourceFile, ...]:
        """The files that contain the sentences of all splits, each once."""
        pairs = (each for files in self.files.values() for each in files)
        sides = (side for each in pairs for side in (each.source, each.target))
        return tuple(dict.fromkeys(side for side in sides if side is not None))


@dataclass(frozen=True, slots=True, kw_only=True)
class Treebank(Dataset):
    """Constituency trees in Penn bracket format, split by file.

    `splits` has the file numbers of train, dev and test: `wsj_2301.mrg` is file 2301, in section 23. Some
    files of each range must exist. `sentences` counts each split; `digest` is the checksum of all files
    concatenated, if they never vary; `tree_vocab_size` is the size of the vocabulary of trees.
    """

    KIND: ClassVar[str] = "treebank"

    splits: Mapping[str, tuple[InstanceOf[range], ...]]
    sentences: Mapping[str, int]
    digest: str | None = None
    tree_vocab_size: int = 128

    @property
    def sources(self) -> tuple[SourceFile, ...]:
        """No files, because the files of a treebank are found by their numbers."""
        return ()

    def split_of(self, file: int) -> str | None:
        """Return the split of the file with this number; None if the file belongs to no split."""
        found = (split for split, files in self.splits.items() if any(file in each for each in files))
        return next(found, None)


KINDS: dict[str, type[Dataset]] = {"texts": Corpus, "pairs": ParallelCorpus, "treebanks": Treebank}
"""The kinds of datasets, in listing order."""

DatasetT = TypeVar("DatasetT", bound=Dataset)


def register_dataset(dataset: Dataset) -> None:
    """Register a dataset; raise PluginError for an invalid dataset or a name that is taken."""
    if not isinstance(dataset, Dataset):
        raise PluginError(f"expected a Corpus, a ParallelCorpus or a Treebank, got {dataset!r}")
    all_datasets().register(dataset.name, dataset)


def dataset_code(name: str) -> str | None:
    """Return the plug-in that registered a dataset, with a digest of its code; None for a built-in one."""
    return all_datasets().code(name) if name in all_datasets() else None


def dataset_names(kind: type[Dataset] = Dataset) -> tuple[str, ...]:
    """Return the names of all datasets of a kind, sorted; by default of all kinds, sorted within each."""
    kinds = (each for each in KINDS.values() if issubclass(each, kind))
    known = sorted(all_datasets().items())
    return tuple(name for each in kinds for name, dataset in known if isinstance(dataset, each))


def require_dataset(name: str, kind: type[DatasetT] = Dataset) -> DatasetT:
    """Return the dataset with this name; raise CorpusError if there is none of this kind."""
    found = all_datasets().get(name)
    if not isinstance(found, kind):
        # a path in place of a name is a common mistake
        if "." in name or "/" in name:
            raise CorpusError(f'for a file of your own write corpus = {{ path = "{name}" }}')
        raise CorpusError(f"unknown {kind.KIND} '{name}'{nearest_hint(name, dataset_names(kind))}")
    return found


class _Tables(BaseModel):
    """Schema of `datasets.toml`. Both unknown and missing keys are errors."""

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True, defer_build=True)

    texts: dict[str, Corpus]
    pairs: dict[str, ParallelCorpus]
    treebanks: dict[str, Treebank]


@cache
def all_datasets() -> Registry[Dataset]:
    """Return every dataset by its name, built in or from plug-ins."""
    tables = tomllib.loads(Path(__file__).with_name("datasets.toml").read_text(encoding="utf-8"))
    read = _read_tables(tables)
    return Registry("corpus", {**read.texts, **read.pairs, **read.treebanks})


def _read_tables(tables: dict[str, Any]) -> _Tables:
    downloads, files = tables.pop("downloads"), tables.pop("files")
    for heading, datasets in tables.items():
        for name, table in datasets.items():
            fetched = [{"name": each, **downloads[each]} for each in table.get("downloads", ())]
            table |= {"name": name, "downloads": fetched}
            _resolve(heading, table, files)
    return _Tables.model_validate(tables)


def _resolve(heading: str, table: dict[str, Any], files: Mapping[str, Any]) -> None:
    """Replace the short forms in a table of `datasets.toml`, such as the key of a file, in place."""
    match heading:
        case "texts":
            symbol = re.compile(table["alphabet"].encode())
            table["alphabet"] = b"".join(filter(symbol.fullmatch, (bytes([byte]) for byte in range(256))))
            for part in table["splits"].values():
                part["source"] = files[part["source"]]
        case "pairs":
            for part in chain(*table["files"].values()):
                part |= {side: files[key] for side, key in part.items()}
        case _:
            for split, ranges in table["splits"].items():
                table["splits"][split] = [range(first, last + 1) for first, last in ranges]
