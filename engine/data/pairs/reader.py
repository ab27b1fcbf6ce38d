"""Sentences and their translations out of published files, line by line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ....studies.catalog.datasets import PairFiles, ParallelCorpus, SourceFile
from ...corpora import DataError, dataset_folder, iter_lines


def iter_pairs(corpus: ParallelCorpus, files: PairFiles, folder: Path) -> Iterator[tuple[str, str]]:
    """Sentences with their translations, as in the files, without line ends.

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
