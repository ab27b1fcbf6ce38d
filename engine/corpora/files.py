"""Local copies of published files, and of the user's own files, which are named by their SHA-256."""

from __future__ import annotations

import gzip
import hashlib
import io
import lzma
import re
import shutil
import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from ...errors import ActivememError
from ...storage.files import replacing
from ...studies.catalog.datasets import Dataset, SourceFile
from ...studies.catalog.own_corpora import OwnRows, own_source
from ...studies.own_data.rows import Row, RowKind, read_rows


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock file of a path within this context. Create the path's folder if it is missing."""
    from filelock import FileLock  # noqa: PLC0415 -- a plan needs none

    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_name(f"{path.name}.lock")):
        yield


_SUFFIXES = ("", ".xz", ".gz")
_DAMAGE = (OSError, EOFError, UnicodeDecodeError, lzma.LZMAError, zipfile.BadZipFile, tarfile.TarError)
_INSTALLED = Path(__file__).parent
_SEGMENT = re.compile(r"<seg\b[^>]*>(.*?)</seg>", re.IGNORECASE)

Stream = IO[bytes] | gzip.GzipFile | lzma.LZMAFile


class DataError(ActivememError):
    """Error for data that are missing on this machine, differ from the published data, or cannot be used."""


def dataset_folder(dataset: Dataset, folder: Path) -> Path:
    """Return the folder of a dataset's files: below the data folder, or in this package if shipped."""
    return _INSTALLED if dataset.installed else folder / dataset.folder


def find_file(source: SourceFile, place: Path) -> Path | None:
    """Return the path of a dataset's file or, failing that, of the archive that contains it.

    Both are searched in the folder `place`. Return None if neither exists.
    """
    if source.digest is not None:
        for name in source.names:
            for suffix in _SUFFIXES:
                if (path := place / (name + suffix)).is_file():
                    return path
    archive = None if source.archive is None else place / source.archive
    return archive if archive is not None and archive.is_file() else None


def describe_files(source: SourceFile) -> str:
    """Return the names that a dataset's file may have: its own, a compressed copy's, or its archive's."""
    names = [] if source.digest is None else [f"{source.names[0]} (.xz, .gz)"]
    return " or ".join([*names, *([source.archive] if source.archive else [])])


def missing_error(dataset: Dataset, files: str) -> DataError:
    """Return the DataError for missing files of a dataset."""
    remedy = f"download it: activemem data fetch {dataset.name}"
    if dataset.own:
        remedy = "copy it there from the data folder of the machine that runs the study"
    return DataError(f"{dataset.name}: expected {files}, got nothing; {remedy}")


def read_source(dataset: Dataset, source: SourceFile, place: Path) -> bytes:
    """Return the bytes of a dataset's file. Raise DataError if it is missing or not the published file."""
    path = _require_file(dataset, source, place)
    # at once, because a large text as a list of lines would take several times the memory
    with as_data_error(dataset, path), _opened(path, source) as file:
        data = file.read()
    _verify(dataset, source, path, len(data), None if source.digest is None else _sum(source.digest, data))
    return data


def iter_lines(dataset: Dataset, source: SourceFile, place: Path) -> Iterator[bytes]:
    """Yield the lines of a dataset's file, then verify its checksum.

    Lines keep their ends. Raise DataError for a wrong checksum.
    """
    path = _require_file(dataset, source, place)
    found = None if source.digest is None else hashlib.new(_algorithm(source.digest), usedforsecurity=False)
    size = 0
    with as_data_error(dataset, path), _opened(path, source) as file:
        for line in file:
            size += len(line)
            if found is not None:
                found.update(line)
            yield line
    _verify(dataset, source, path, size, None if found is None else f"{found.name}:{found.hexdigest()}")


def verify_source(dataset: Dataset, source: SourceFile, place: Path) -> None:
    """Raise DataError if a dataset's file is missing, damaged, or differs from the published file."""
    if source.digest is None:
        _require_file(dataset, source, place)
    else:
        read_source(dataset, source, place)


def file_digest(path: Path, like: str) -> str:
    """Return the checksum of a whole file, by the same algorithm as the digest `like`."""
    # some published checksums are MD5, which Python refuses on some systems unless declared as insecure
    with path.open("rb") as file:
        found = hashlib.file_digest(file, lambda: hashlib.new(_algorithm(like), usedforsecurity=False))
    return f"{_algorithm(like)}:{found.hexdigest()}"


@contextmanager
def as_data_error(dataset: Dataset, path: Path) -> Iterator[None]:
    """Within this context, raise a DataError for a damaged file. The error names the file."""
    try:
        yield
    except _DAMAGE as error:
        raise DataError(f"{dataset.name}: {path} cannot be read: {error}") from error


def _require_file(dataset: Dataset, source: SourceFile, place: Path) -> Path:
    """Return the path from `find_file`; raise DataError if there is none, or for an altered archive."""
    path = find_file(source, place)
    if path is None:
        raise missing_error(dataset, f"{describe_files(source)} in {place}")
    if source.digest is None:
        published = next(each.digest for each in dataset.downloads if each.name == path.name)
        if (got := file_digest(path, published)) != published:
            raise DataError(f"{dataset.name}: {path}: expected {published}, got {got}")
    return path


def _verify(dataset: Dataset, source: SourceFile, path: Path, size: int, got: str | None) -> None:
    if source.size is not None and size < source.size:
        raise DataError(f"{dataset.name}: {path}: expected {source.size:,} bytes of text, got {size:,}")
    if got != source.digest:
        raise DataError(f"{dataset.name}: {path}: expected a text of {source.digest}, got {got}")


@contextmanager
def _opened(path: Path, source: SourceFile) -> Iterator[Stream]:
    with _unpacked(path, source) as file:
        if source.size is None:
            yield file
        elif path.suffix == ".zip" and source.names[-1].endswith(".sgm"):  # SGML: a <seg> for each sentence
            segments = _SEGMENT.findall(file.read().decode("utf-8"))
            lines = (" ".join(filter(None, text.split(" "))) for text in segments)
            yield io.BytesIO(b"".join(line.encode() + b"\n" for line in lines))
        else:
            yield io.BytesIO(file.read(source.size))


@contextmanager
def _unpacked(path: Path, source: SourceFile) -> Iterator[Stream]:
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            name = _member(archive.namelist(), source)
            with archive.open(name) as member:
                yield gzip.GzipFile(fileobj=member) if name.endswith(".gz") else member
    elif ".tar" in path.suffixes:
        with tarfile.open(path) as archive:
            member = archive.getmember(_member(archive.getnames(), source))
            if not member.isfile() or (file := archive.extractfile(member)) is None:
                raise tarfile.TarError(f"expected {member.name} to be a plain file")
            with file:
                yield file
    elif path.suffix in (".xz", ".gz"):
        with lzma.open(path) if path.suffix == ".xz" else gzip.open(path) as file:
            yield file
    else:
        with path.open("rb") as file:
            yield file


def _member(names: list[str], source: SourceFile) -> str:
    known = [name for name in source.names if name in names]
    if not known:
        raise zipfile.BadZipFile(f"expected {source.names[-1]} in it, got {', '.join(names) or 'nothing'}")
    return known[0]


def _algorithm(digest: str) -> str:
    return digest.partition(":")[0]


def _sum(like: str, data: bytes) -> str:
    return f"{_algorithm(like)}:{hashlib.new(_algorithm(like), data, usedforsecurity=False).hexdigest()}"


def keep_files(files: Mapping[str, Path], place: Path) -> None:
    """Copy files to a folder, where each is named by its SHA-256.

    Files that are there already are skipped. Raise DataError if a file has changed since the study was read.
    """
    for sha256, path in files.items():
        kept = place / sha256
        if kept.is_file():
            continue
        try:
            with locked(kept), replacing(kept) as temporary:
                shutil.copyfile(path, temporary)
                _compare(temporary, sha256, path)
        except OSError as error:
            raise DataError(f"{path} cannot be copied to {place}: {error}") from error


def _compare(copy: Path, sha256: str, path: Path) -> None:
    expected = f"sha256:{sha256}"
    if (got := file_digest(copy, expected)) != expected:
        raise DataError(f"{path} has changed since the study was read: expected {expected}, got {got}")


def find_own_file(dataset: Dataset, sha256: str, folder: Path) -> Path:
    """Return the path of the user's own file with this SHA-256, in the data folder.

    The caller can read a large file in pieces. Raise DataError if the file is missing or has changed.
    """
    path = dataset_folder(dataset, folder) / sha256
    if not path.is_file():
        raise missing_error(dataset, f"{sha256} in {path.parent}")
    _compare(path, sha256, path)
    return path


def read_own_rows(facts: OwnRows, kind: RowKind, folder: Path) -> list[Row]:
    """Return all rows of the user's own files, each with its split.

    `facts` names the files and describes their layout; `kind` has the readers of a row's two values. Raise
    DataError if a file is missing or has changed.
    """
    dataset = facts.dataset
    place = dataset_folder(dataset, folder)
    found = read_rows(
        facts.layout, kind, lambda digest: (digest, read_source(dataset, own_source(digest), place))
    )
    if found.faults:
        raise DataError("\n".join(f"{dataset.name}: {fault}" for fault in found.faults))
    return found.rows
