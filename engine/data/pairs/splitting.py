"""Pairs of sentences are split by their source: no two splits share one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from ....studies.catalog.datasets import ParallelCorpus, source_key
from ....studies.catalog.own_corpora import OwnPairs
from ....studies.own_data.rows import PAIRS
from ..own_rows import iter_own_rows
from .reader import iter_pairs

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
    """Yield the same of pairs of one's own, in the splits that their layout says."""
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
