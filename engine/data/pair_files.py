"""Sentences and their translations out of published files, plain, packed, or within an archive."""

from __future__ import annotations

import gzip
import hashlib
import io
import lzma
import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from ...studies.parallel_corpora import PairFiles, ParallelCorpus, Side
from ..corpora import DataError

_SUFFIXES = ("", ".xz", ".gz")
_DAMAGE = (OSError, EOFError, UnicodeDecodeError, lzma.LZMAError, zipfile.BadZipFile)
Stream = IO[bytes] | gzip.GzipFile | lzma.LZMAFile

_SEGMENT = re.compile(r"<seg\b[^>]*>(.*?)</seg>", re.IGNORECASE)


def pairs_of(corpus: ParallelCorpus, files: PairFiles, folder: Path) -> Iterator[tuple[str, str]]:
    """Sentences with their translations, as they stand in the files, without the ends of lines.

    Raises DataError, at the end too, where a file is missing, damaged or another, or the two sides differ in
    their number of lines.
    """
    place = folder / corpus.home
    source = _lines(corpus, files.source, place)
    if files.target is None:
        for number, line in enumerate(source, start=1):
            columns = line.split("\t")
            if len(columns) < 2:
                raise DataError(f"{corpus.name}: expected two columns in line {number:,}, got {line!r}")
            yield columns[0], columns[1]
        return
    target = _lines(corpus, files.target, place)
    for left in source:
        right = next(target, None)
        if right is None:
            break
        yield left, right
    else:
        if next(target, None) is None:
            return
    names = f"{files.source.names[0]} and {files.target.names[0]}"
    raise DataError(f"{corpus.name}: expected as many lines in {names}, got more in one")


def find_side(corpus: ParallelCorpus, side: Side, place: Path) -> Path | None:
    """The file that has a side, or the archive that has it within; None if there is neither."""
    if side.digest is not None:
        for name in side.names:
            for suffix in _SUFFIXES:
                if (path := place / (name + suffix)).is_file():
                    return path
    archive = None if side.archive is None else place / side.archive
    return archive if archive is not None and archive.is_file() else None


def _lines(corpus: ParallelCorpus, side: Side, place: Path) -> Iterator[str]:
    """The lines of a side, held against its checksum at the end."""
    path = find_side(corpus, side, place)
    if path is None:
        names = [] if side.digest is None else [f"{side.names[0]} (.xz, .gz)"]
        expected = " or ".join([*names, *([side.archive] if side.archive else [])])
        raise DataError(f"{corpus.name}: expected {expected} in {place}, got nothing")
    if side.digest is None:
        _check_archive(corpus, path)
    found = None if side.digest is None else hashlib.new(side.digest.partition(":")[0], usedforsecurity=False)
    try:
        with _opened(path, side) as file:
            for line in _sentences(file, side, path):
                if found is not None:
                    found.update(line)
                yield line.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8")
    except _DAMAGE as error:
        raise DataError(f"{corpus.name}: {path} cannot be read: {error}") from error
    if found is not None and side.digest != (got := f"{found.name}:{found.hexdigest()}"):
        raise DataError(f"{corpus.name}: {path}: expected a text of {side.digest}, got {got}")


def _check_archive(corpus: ParallelCorpus, path: Path) -> None:
    """DataError if an archive is not the one that was published."""
    digest = next(each.digest for each in corpus.downloads if each.name == path.name)
    rule = digest.partition(":")[0]
    with path.open("rb") as file:
        got = f"{rule}:{hashlib.file_digest(file, rule).hexdigest()}"
    if got != digest:
        raise DataError(f"{corpus.name}: {path}: expected {digest}, got {got}")


def _sentences(file: Stream, side: Side, path: Path) -> Iterator[bytes]:
    """The lines of a file that count, or the segments of one that is marked up."""
    if side.size is None:
        yield from file
        return
    marked = path.suffix == ".zip" and side.names[-1].endswith(".sgm")
    if not marked:
        yield from io.BytesIO(file.read(side.size))
        return
    for text in _SEGMENT.findall(file.read().decode("utf-8")):
        yield " ".join(filter(None, text.split(" "))).encode() + b"\n"


@contextmanager
def _opened(path: Path, side: Side) -> Iterator[Stream]:
    """A stream over a side, out of whatever file has it."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            name = next((each for each in side.names if each in archive.namelist()), None)
            if name is None:
                raise zipfile.BadZipFile(f"expected {side.names[-1]} within")
            with archive.open(name) as member:
                yield gzip.GzipFile(fileobj=member) if name.endswith(".gz") else member
    elif path.suffix in (".xz", ".gz"):
        with lzma.open(path) if path.suffix == ".xz" else gzip.open(path) as file:
            yield file
    else:
        with path.open("rb") as file:
            yield file
