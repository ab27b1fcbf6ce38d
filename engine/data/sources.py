"""The files of a corpus as they are published, plain or packed, and as they are found on this machine."""

from __future__ import annotations

import gzip
import hashlib
import lzma
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from ...errors import ActivememError
from ...studies.corpora import Corpus, Source

_SUFFIXES = ("", ".xz", ".gz")
_DAMAGE = (OSError, EOFError, lzma.LZMAError, zipfile.BadZipFile, tarfile.TarError)


class Readable(Protocol):
    """A stream of bytes."""

    def read(self, size: int = -1, /) -> bytes:
        """At most so many bytes more, all if negative."""
        ...


class DataError(ActivememError):
    """A text that is not on this machine, or is not the one that was published."""


def home(corpus: Corpus, folder: Path) -> Path:
    """The folder of a corpus' files, in the folder of all data."""
    return folder / corpus.home


def find(corpus: Corpus, source: Source, folder: Path) -> Path | None:
    """The file that has a source, or the archive that has it within; None if there is neither."""
    place = home(corpus, folder)
    for name in source.names:
        for suffix in _SUFFIXES:
            if (path := place / (name + suffix)).is_file():
                return path
    archives = (place / each.name for each in corpus.downloads)
    return next((path for path in archives if path.is_file()), None)


def read(corpus: Corpus, source: Source, folder: Path) -> bytes:
    """The bytes of a source, held against its checksum; DataError where it is missing, damaged or another."""
    path = find(corpus, source, folder)
    if path is None:
        raise DataError(
            f"{corpus.name}: expected {source.names[0]} (or its .xz, .gz or {_archives(corpus)}) in "
            f"{home(corpus, folder)}, got none; get it: activemem data fetch {corpus.name}"
        )
    try:
        with _opened(path, source) as file:
            data = file.read(-1 if source.size is None else source.size)
    except _DAMAGE as error:
        raise DataError(f"{corpus.name}: {path} cannot be read: {error}") from error
    if source.size is not None and len(data) < source.size:
        raise DataError(f"{corpus.name}: {path}: expected {source.size:,} bytes, got {len(data):,}")
    found = digest_of(data, source.digest)
    if found != source.digest:
        raise DataError(f"{corpus.name}: {path}: expected {source.digest}, got {found}")
    return data


def digest_of(data: bytes, like: str) -> str:
    """The checksum of bytes, by the rule that another one names, as `md5:…`."""
    rule = like.partition(":")[0]
    return f"{rule}:{hashlib.new(rule, data, usedforsecurity=False).hexdigest()}"


def _archives(corpus: Corpus) -> str:
    return " or ".join(each.name for each in corpus.downloads)


@contextmanager
def _opened(path: Path, source: Source) -> Iterator[Readable]:
    """A stream over a source, out of whatever file has it."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive, archive.open(_member(archive.namelist(), source)) as file:
            yield file
    elif ".tar" in path.suffixes:
        with tarfile.open(path) as archive:
            file = archive.extractfile(_member(archive.getnames(), source))
            assert file is not None
            with file:
                yield file
    elif path.suffix == ".xz":
        with lzma.open(path) as file:
            yield file
    elif path.suffix == ".gz":
        with gzip.open(path) as file:
            yield file
    else:
        with path.open("rb") as file:
            yield file


def _member(names: list[str], source: Source) -> str:
    """The name that a source has within an archive."""
    known = [name for name in source.names if name in names]
    if not known:
        raise zipfile.BadZipFile(f"expected {source.names[-1]} within, got {', '.join(names) or 'nothing'}")
    return known[0]
