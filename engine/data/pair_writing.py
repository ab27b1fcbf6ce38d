"""Pairs of sentences are split by their source, and written in numbers."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np

from ...studies.parallel_corpora import ParallelCorpus, Shares
from ..corpora import DataError
from .encoding import dtype_of
from .pair_files import pairs_of
from .vocabularies import learn
from .vocabulary import END, Vocabulary

FORMAT = 1
"""Of the files; raised when they change, or the numbers in them."""

ABOUT = "about.json"
SIDES = ("source", "target")
_SPLITS = ("test", "dev", "train")  # a source that stands in several files is in the first of these
_LEARNT_FROM = 4_000_000  # pairs at most, evenly over all


class Pair(NamedTuple):
    """A sentence and its translation, and the split that they are in."""

    split: str
    source: str
    target: str


def write(corpus: ParallelCorpus, kinds: Mapping[str, tuple[str, int]], folder: Path, place: Path) -> None:
    """Put the pairs of a corpus into a folder that appears when it is complete.

    `kinds` has for each side the kind of its vocabulary and its size. Whoever calls holds the lock.
    """
    vocabularies = _learn(corpus, kinds, folder)
    temporary = place.with_name(f".{place.name}.unfinished")
    shutil.rmtree(temporary, ignore_errors=True)  # of one who died
    temporary.mkdir()
    try:
        files = _write_pairs(corpus, vocabularies, folder, temporary)
        for side, vocabulary in vocabularies.items():
            _put(temporary / f"{side}.vocabulary", vocabulary.content())
        about = {
            "corpus": corpus.name,
            "kinds": {side: kind for side, (kind, _) in kinds.items()},
            "files": files,
        }
        _put(temporary / ABOUT, json.dumps(about, indent=2).encode())
        temporary.rename(place)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


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


def _learn(
    corpus: ParallelCorpus, kinds: Mapping[str, tuple[str, int]], folder: Path
) -> dict[str, Vocabulary]:
    """The vocabulary of each side, from the pairs to train on."""
    stride = -(-corpus.pairs // _LEARNT_FROM)

    def sentences(side: str) -> Iterator[str]:
        train = (each for each in split_pairs(corpus, folder) if each.split == "train")
        return (getattr(each, side) for number, each in enumerate(train) if number % stride == 0)

    return {side: learn(kind, sentences(side), size) for side, (kind, size) in kinds.items()}


class _SideFiles:
    """One side of a split, written pair by pair."""

    def __init__(
        self, stack: ExitStack, place: Path, name: str, vocabulary: Vocabulary, *, kept: bool
    ) -> None:
        self._vocabulary, self._name = vocabulary, name
        self._dtypes = {
            "tokens": dtype_of(vocabulary.size),
            "lines": np.dtype("<i8"),
            "words": np.dtype("<i4"),
        }
        self._files: dict[str, IO[bytes]] = {
            kind: stack.enter_context((place / f"{name}.{kind}").open("xb")) for kind in self._dtypes
        }
        self._text = stack.enter_context((place / f"{name}.txt").open("xb")) if kept else None
        self._sizes = {"tokens": 0, "lines": 0, "words": 0}
        self._put("lines", [0])

    def add(self, sentence: str) -> None:
        """Write a sentence; its words are those between white space, and its end."""
        self._put("tokens", [*self._vocabulary.encode(sentence), END])
        self._put("lines", [self._sizes["tokens"]])
        self._put("words", [len(sentence.split()) + 1])
        if self._text is not None:
            self._text.write(sentence.encode() + b"\n")

    def close(self) -> dict[str, dict[str, str | int]]:
        """What was written: the type and the size of each file."""
        for file in self._files.values():
            file.flush()
            os.fsync(file.fileno())
        return {
            f"{self._name}.{kind}": {"dtype": dtype.str[1:], "size": self._sizes[kind]}
            for kind, dtype in self._dtypes.items()
        }

    def _put(self, kind: str, numbers: list[int]) -> None:
        self._files[kind].write(np.array(numbers, self._dtypes[kind]).tobytes())
        self._sizes[kind] += len(numbers)


def _write_pairs(
    corpus: ParallelCorpus, vocabularies: Mapping[str, Vocabulary], folder: Path, place: Path
) -> dict[str, dict[str, str | int]]:
    """The numbers of all splits, and the sentences of those that are not for training."""
    with ExitStack() as stack:
        writers = {
            (split, side): _SideFiles(stack, place, f"{split}.{side}", vocabulary, kept=split != "train")
            for split in _SPLITS
            for side, vocabulary in vocabularies.items()
        }
        counts: Counter[str] = Counter()
        for pair in split_pairs(corpus, folder):
            counts[pair.split] += 1
            for side in SIDES:
                writers[pair.split, side].add(getattr(pair, side))
        if missing := [split for split in _SPLITS if not counts[split]]:
            raise DataError(f"{corpus.name}: expected pairs in every split, got none in {', '.join(missing)}")
        return {name: about for writer in writers.values() for name, about in writer.close().items()}


def _put(path: Path, content: bytes) -> None:
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
