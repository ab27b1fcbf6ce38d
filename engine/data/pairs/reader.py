"""The pairs of a corpus as text, in the splits that its layout says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from ....studies.catalog.datasets import PairFiles, ParallelCorpus, SourceFile, source_key
from ....studies.catalog.own_corpora import OwnPairs
from ....studies.own_data.rows import PAIRS
from ...corpora import DataError, dataset_folder, iter_lines
from ..own_rows import iter_own_rows


def iter_pairs(corpus: ParallelCorpus, files: PairFiles, folder: Path) -> Iterator[tuple[str, str]]:
    """Yield sentences with their translations, as in the files, without line ends.

    Raises DataError, possibly at the end, if a file is missing, damaged or not the published one, or if the
    two sides differ in their number of lines.
    """
    place = dataset_folder(corpus, folder)
    source = _sentences(corpus, files.source, place)
    if files.target is None:
        for number, line in enumerate(source, start=1):
            columns = line.split("\t")
            if len(columns) < 2:
                raise DataError(f"{corpus.name}: expected two columns in line {number:,}, got {line!r}")
            yield columns[0], columns[1]
        return
    target = _sentences(corpus, files.target, place)
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


def _sentences(corpus: ParallelCorpus, source: SourceFile, place: Path) -> Iterator[str]:
    """Yield the lines of a source as text."""
    for number, line in enumerate(iter_lines(corpus, source, place), start=1):
        try:
            yield line.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8")
        except UnicodeDecodeError as error:
            raise DataError(f"{corpus.name}: {source.names[0]}: line {number:,}: {error}") from error


_SPLITS = ("test", "dev", "train")  # a source that stands in several files is in the first of these


class Pair(NamedTuple):
    """A sentence and its translation, and the split that they are in."""

    split: str
    source: str
    target: str


def split_pairs(corpus: ParallelCorpus, folder: Path) -> Iterator[Pair]:
    """Yield all pairs, each with its split, except those with an empty side.

    No source is in two splits, ignoring case and spaces: where the files are split already, a pair whose
    source is held out elsewhere is left out too.
    """
    if corpus.held_out is not None:
        for files in corpus.files["train"]:
            for source, target in iter_pairs(corpus, files, folder):
                if source.strip() and target.strip():
                    yield Pair(corpus.held_out.split_of(source), source, target)
        return

    def read(split: str) -> Iterator[tuple[str, str]]:
        for files in corpus.files[split]:
            yield from iter_pairs(corpus, files, folder)

    yield from _without_held_out(read)


def split_own_pairs(facts: OwnPairs, folder: Path) -> Iterator[Pair]:
    """Yield the pairs of the user's own files, in the splits of their layout."""
    rows = list(iter_own_rows(facts, PAIRS, folder))
    yield from _without_held_out(lambda split: (row[1:] for row in rows if row.split == split))


def _without_held_out(read: Callable[[str], Iterator[tuple[str, str]]]) -> Iterator[Pair]:
    """Yield the pairs of each split, without empty sides and without sources that another split holds out."""
    held_out: set[bytes] = set()
    for split in _SPLITS:
        here: set[bytes] = set()
        for source, target in read(split):
            key = source_key(source)
            if source.strip() and target.strip() and key not in held_out:
                if split != "train":
                    here.add(key)
                yield Pair(split, source, target)
        held_out |= here
