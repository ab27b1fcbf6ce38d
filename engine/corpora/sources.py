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
_INSTALLED = Path(__file__).parent


class DataError(ActivememError):
    """A text that is not on this machine, or is not the one that was published."""


class Readable(Protocol):
    """A stream of bytes."""

    def read(self, size: int = -1, /) -> bytes:
        """At most so many bytes more, all if negative."""
        ...


def home(corpus: Corpus, folder: Path) -> Path:
    """The folder of a corpus' files: in that of all data, or where this package is installed."""
    return _INSTALLED if corpus.installed else folder / corpus.home


def sources(corpus: Corpus) -> list[Source]:
    """The text files of a corpus, each once."""
    return list(dict.fromkeys(part.source for part in corpus.splits.values()))


def find(corpus: Corpus, source: Source, place: Path) -> Path | None:
    """The file of a folder that has a source, or the archive that has it within; None if there is neither."""
    for name in source.names:
        for suffix in _SUFFIXES:
            if (path := place / (name + suffix)).is_file():
                return path
    archives = (place / each.name for each in corpus.downloads)
    return next((path for path in archives if path.is_file()), None)


def read(corpus: Corpus, source: Source, place: Path) -> bytes:
    """The bytes of a source, held against its checksum; DataError where it is missing, damaged or another."""
    path = find(corpus, source, place)
    if path is None:
        expected = " or ".join([f"{source.names[0]} (.xz, .gz)", *(each.name for each in corpus.downloads)])
        remedy = f"get it: activemem data fetch {corpus.name}"
        raise DataError(f"{corpus.name}: expected {expected} in {place}, got nothing; {remedy}")
    try:
        with _opened(path, source) as file:
            data = file.read(-1 if source.size is None else source.size)
    except _DAMAGE as error:
        raise DataError(f"{corpus.name}: {path} cannot be read: {error}") from error
    if source.size is not None and len(data) < source.size:
        raise DataError(f"{corpus.name}: {path}: expected {source.size:,} bytes of text, got {len(data):,}")
    rule = source.digest.partition(":")[0]
    found = f"{rule}:{hashlib.new(rule, data, usedforsecurity=False).hexdigest()}"
    if found != source.digest:
        raise DataError(f"{corpus.name}: {path}: expected a text of {source.digest}, got {found}")
    return data


@contextmanager
def _opened(path: Path, source: Source) -> Iterator[Readable]:
    """A stream over a source, out of whatever file has it."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive, archive.open(_member(archive.namelist(), source)) as file:
            yield file
    elif ".tar" in path.suffixes:
        with tarfile.open(path) as archive:
            file = archive.extractfile(_member(archive.getnames(), source))
            assert file is not None, "a text is a plain file"
            with file:
                yield file
    elif path.suffix in (".xz", ".gz"):
        with lzma.open(path) if path.suffix == ".xz" else gzip.open(path) as file:
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
