"""Pairs of sentences are split by their source: no two splits share one."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ...studies.parallel_corpora import ParallelCorpus, Shares
from .pair_files import pairs_of

_SPLITS = ("test", "dev", "train")  # a source that stands in several files is in the first of these


class Pair(NamedTuple):
    """A sentence and its translation, and the split that they are in."""

    split: str
    source: str
    target: str


def split_pairs(corpus: ParallelCorpus, folder: Path) -> Iterator[Pair]:
    """All pairs, each with its split; those with nothing on a side are left out.

    No source stands in two splits, whatever its case and its spaces: where the files are split already, a
    pair whose source is held out elsewhere is left out too.
    """
    if corpus.shares is not None:
        for files in corpus.files["train"]:
            for source, target in pairs_of(corpus, files, folder):
                if source.strip() and target.strip():
                    yield Pair(_drawn(source, corpus.shares), source, target)
        return
    held_out: set[bytes] = set()
    for split in _SPLITS:
        here: set[bytes] = set()
        for files in corpus.files[split]:
            for source, target in pairs_of(corpus, files, folder):
                key = _key(source)
                if source.strip() and target.strip() and key not in held_out:
                    if split != "train":
                        here.add(key)
                    yield Pair(split, source, target)
        held_out |= here


def _drawn(source: str, shares: Shares) -> str:
    """The split of a source, by its hash."""
    place = int.from_bytes(_key(source)[:8], "big") / 2**64
    if place < shares.test:
        return "test"
    return "dev" if place < shares.test + shares.dev else "train"


def _key(source: str) -> bytes:
    return hashlib.sha256(" ".join(source.casefold().split()).encode()).digest()
