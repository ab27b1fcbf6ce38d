"""Datasets that models are trained on: texts, pairs and treebanks, with their files and sources."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from pydantic import InstanceOf

from ...errors import ActivememError


class CorpusError(ActivememError):
    """A corpus that does not exist, or tokens that it cannot be cut into."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Download:
    """A published file: its addresses (the first that answers is used), size and checksum."""

    name: str
    urls: tuple[str, ...]
    size: int | None = None
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """A text file under any of its names, as a download of its own or inside a downloaded archive.

    Only the first `size` bytes are used, all of them if it is None. `digest` is a checksum such as `md5:…`.
    A file without one is accepted only inside an archive whose checksum is known.
    """

    names: tuple[str, ...]
    size: int | None = None
    digest: str | None = None
    archive: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """A dataset and its files.

    `folder` is its folder in the data folder, unless it is `installed` with this package. `own` is true if
    a study file names its files. `manual_instructions` says where to get files that cannot be downloaded.
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
    def sources(self) -> tuple[SourceFile, ...]:
        """The text files that are known by name, each once."""
        return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSlice:
    """The bytes of one split."""

    source: SourceFile
    start: int = 0
    stop: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus(Dataset):
    """One text in three splits.

    `size_mb` is the approximate size of the plain text. `splits` are train, dev and test. `alphabet` has all
    bytes of the text except line ends; `word_vocab_size` is the size of the standard word vocabulary, if
    there is one. In a `pretokenized` text punctuation is already set apart from words.
    """

    KIND: ClassVar[str] = "corpus"

    size_mb: float | None = None
    splits: Mapping[str, FileSlice]
    alphabet: bytes
    word_vocab_size: int | None = None
    pretokenized: bool = False

    @property
    def sources(self) -> tuple[SourceFile, ...]:
        """The text files, each once."""
        return tuple(dict.fromkeys(part.source for part in self.splits.values()))


@dataclass(frozen=True, slots=True, kw_only=True)
class PairFiles:
    """Sentences and, line by line, their translations; without a target the source has both in columns."""

    source: SourceFile
    target: SourceFile | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOutFractions:
    """The fractions of a collection that are held out; the split of a pair depends on its source alone."""

    dev: float = 0.05
    test: float = 0.20

    def split_of(self, source: str) -> str:
        """Return the split of a source, chosen by its hash."""
        place = int.from_bytes(source_key(source)[:8], "big") / 2**64
        if place < self.test:
            return "test"
        return "dev" if place < self.test + self.dev else "train"


def source_key(source: str) -> bytes:
    """Return a source without differences in case and spaces."""
    return hashlib.sha256(" ".join(source.casefold().split()).encode()).digest()


@dataclass(frozen=True, slots=True, kw_only=True)
class ParallelCorpus(Dataset):
    """Pairs of sentences in two languages, in three splits.

    `files` has them by split, or all under "train" if fractions are held out. `pairs` is the approximate
    number of training pairs.
    """

    KIND: ClassVar[str] = "parallel corpus"

    languages: tuple[str, str]
    files: Mapping[str, tuple[PairFiles, ...]]
    held_out: HeldOutFractions | None = None
    pairs: int

    @property
    def sources(self) -> tuple[SourceFile, ...]:
        """The files of sentences, each once."""
        pairs = (each for files in self.files.values() for each in files)
        sides = (side for each in pairs for side in (each.source, each.target))
        return tuple(dict.fromkeys(side for side in sides if side is not None))


@dataclass(frozen=True, slots=True, kw_only=True)
class Treebank(Dataset):
    """Constituency trees in Penn bracket format, split by file.

    `splits` has the numbers of the files of train, dev and test: `wsj_2301.mrg` is file 2301, in section 23.
    Some files of each range must exist. `sentences` counts each split; `digest` is the checksum of all files
    concatenated, if they never vary; `tree_vocab_size` is the size of the vocabulary of trees.
    """

    KIND: ClassVar[str] = "treebank"

    splits: Mapping[str, tuple[InstanceOf[range], ...]]
    sentences: Mapping[str, int]
    digest: str | None = None
    tree_vocab_size: int = 128

    def split_of(self, file: int) -> str | None:
        """Return the split that a file belongs to, if any."""
        found = (split for split, files in self.splits.items() if any(file in each for each in files))
        return next(found, None)
