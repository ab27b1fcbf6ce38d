"""Local files of a treebank: separate files, one joined file, or the published archive."""

from __future__ import annotations

import hashlib
import lzma
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ...studies.catalog.datasets import Treebank
from .files import DataError, as_data_error, missing_error

_FILE = re.compile(r"wsj_(\d{4})\.mrg")
_ROW = re.compile(r"wsj_(\d{4})\.mrg\t(\d+)(?:\t.*)?")
_BRACKET = re.compile(rb"[()]")


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeFiles:
    """The files of a treebank: their paths, and their numbers (42 for `wsj_0042.mrg`).

    `read` reads the contents of the numbered files.
    """

    paths: tuple[Path, ...] = ()
    numbers: tuple[int, ...] = ()
    read: Callable[[], Iterable[bytes]] = tuple


def find_treebank_files(treebank: Treebank, place: Path) -> TreeFiles:
    """Return the files of a treebank, in the order of their numbers.

    Three places are tried in turn:

    1. files anywhere below the folder
    2. one file that joins them, `….mrg` or `….mrg.xz`; the table `….index.tsv` has their names and sizes
    3. the published archive

    Raise DataError for a damaged table or archive.
    """
    named = ((_FILE.fullmatch(path.name), path) for path in sorted(place.rglob("*.mrg")))
    found = {int(name[1]): path for name, path in named if name}
    if found:
        numbers = tuple(sorted(found))
        paths = tuple(found[number] for number in numbers)
        return TreeFiles(paths=paths, numbers=numbers, read=partial(map, Path.read_bytes, paths))
    for index in sorted(place.glob("*.index.tsv")):
        return _joined(treebank, index)
    archives = (place / each.name for each in treebank.downloads)
    return next((_archived(treebank, path) for path in archives if path.is_file()), TreeFiles())


def read_treebank(treebank: Treebank, place: Path) -> list[tuple[int, bytes]]:
    """Return the numbers and contents of a treebank's files, in order.

    Raise DataError if there are no files, or if the joined files differ from the published treebank.
    """
    found = find_treebank_files(treebank, place)
    if not found.numbers:
        raise missing_error(treebank, describe_missing(treebank, place, found)[0])
    with as_data_error(treebank, found.paths[-1]):
        texts = list(found.read())
    digest = f"sha256:{hashlib.sha256(b''.join(texts)).hexdigest()}"
    if treebank.digest not in (None, digest):
        raise DataError(f"{treebank.name}: {place}: expected {treebank.digest}, got {digest}")
    return list(zip(found.numbers, texts, strict=True))


def describe_missing(treebank: Treebank, place: Path, found: TreeFiles) -> list[str]:
    """Describe the required files of a treebank that are missing."""
    ranges = [each for files in treebank.splits.values() for each in files]
    if not found.numbers:
        names = " or ".join([f"{_name(ranges[0][0])} and so on", *(each.name for each in treebank.downloads)])
        return [f"{names} in {place}"]
    absent = [each for each in ranges if not any(number in each for number in found.numbers)]
    return [f"some of {_name(each[0])} to {_name(each[-1])} in {place}" for each in absent]


def sentence_count_faults(treebank: Treebank, files: Iterable[tuple[int, bytes]]) -> list[str]:
    """Return an error message for each split with a wrong number of sentences."""
    counts = dict.fromkeys(treebank.splits, 0)
    for number, text in files:
        if (split := treebank.split_of(number)) is not None:
            counts[split] += _sentences(text)
    return [
        f"{treebank.name}: expected {treebank.sentences[split]:,} sentences in {split}, got {count:,}"
        for split, count in counts.items()
        if count != treebank.sentences[split]
    ]


def _sentences(text: bytes) -> int:
    depth = count = 0
    for bracket in _BRACKET.findall(text):
        depth += 1 if bracket == b"(" else -1
        count += not depth
    return count


def _name(number: int) -> str:
    return f"wsj_{number:04}.mrg"


def _joined(treebank: Treebank, index: Path) -> TreeFiles:
    plain = index.with_name(index.name.replace(".index.tsv", ".mrg"))
    path = plain if plain.is_file() else plain.with_name(f"{plain.name}.xz")
    if not path.is_file():
        raise missing_error(treebank, f"{plain.name} (.xz) in {index.parent}")
    with as_data_error(treebank, index):
        # without the heading, and without the empty text after the last line break
        rows = index.read_text("utf-8").split("\n")[1:-1]
    sizes: dict[int, int] = {}
    for row in rows:
        if (match := _ROW.fullmatch(row)) is None:
            raise DataError(
                f"{treebank.name}: {index}: expected a name such as wsj_0001.mrg and its number of bytes, "
                f"got {row!r}"
            )
        sizes[int(match[1])] = int(match[2])
    return TreeFiles(
        paths=(index, path), numbers=tuple(sizes), read=partial(_read_slices, path, tuple(sizes.values()))
    )


def _read_slices(path: Path, sizes: tuple[int, ...]) -> Iterator[bytes]:
    with lzma.open(path) if path.suffix == ".xz" else path.open("rb") as file:
        for size in sizes:
            yield file.read(size)


def _archived(treebank: Treebank, path: Path) -> TreeFiles:
    with as_data_error(treebank, path), zipfile.ZipFile(path) as archive:
        named = ((_FILE.fullmatch(name.rsplit("/", 1)[-1]), name) for name in archive.namelist())
        found = sorted((int(match[1]), name) for match, name in named if match)
    names = tuple(name for _, name in found)
    return TreeFiles(
        paths=(path,), numbers=tuple(number for number, _ in found), read=partial(_members, path, names)
    )


def _members(path: Path, names: tuple[str, ...]) -> Iterator[bytes]:
    with zipfile.ZipFile(path) as archive:
        for name in names:
            yield archive.read(name)
