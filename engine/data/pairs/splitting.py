"""Pairs of sentences are split by their source: no two splits share one."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ....studies.catalog.datasets import HeldOutFractions, ParallelCorpus
from .reader import iter_pairs

_SPLITS = ("test", "dev", "train")  # a source that stands in several files is in the first of these


class Pair(NamedTuple):
    """A sentence and its translation, and the split that they are in."""

    split: str
    source: str
    target: str


def split_pairs(corpus: ParallelCorpus, folder: Path) -> Iterator[Pair]:
    """All pairs, each with its split, except those with an empty side.

    No source is in two splits, ignoring case and spaces: where the files are split already, a pair whose
    source is held out elsewhere is left out too.
    """
    if corpus.held_out is not None:
        for files in corpus.files["train"]:
            for source, target in iter_pairs(corpus, files, folder):
                if source.strip() and target.strip():
                    yield Pair(_assign_split(source, corpus.held_out), source, target)
        return
    held_out: set[bytes] = set()
    for split in _SPLITS:
        here: set[bytes] = set()
        for files in corpus.files[split]:
            for source, target in iter_pairs(corpus, files, folder):
                key = _key(source)
                if source.strip() and target.strip() and key not in held_out:
                    if split != "train":
                        here.add(key)
                    yield Pair(split, source, target)
        held_out |= here


def _assign_split(source: str, shares: HeldOutFractions) -> str:
    """The split of a source, by its hash."""
    place = int.from_bytes(_key(source)[:8], "big") / 2**64
    if place < shares.test:
        return "test"
    return "dev" if place < shares.test + shares.dev else "train"


def _key(source: str) -> bytes:
    return hashlib.sha256(" ".join(source.casefold().split()).encode()).digest()
