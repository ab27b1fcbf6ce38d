"""Pairs of sentences are written in numbers."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import IO

import numpy as np

from ...corpora import DataError
from ..text.tokenization import smallest_dtype
from ..token_files import write_once
from ..vocabularies import learn_vocabulary
from ..vocabularies.base import END, Vocabulary
from .reader import Pair

FORMAT = 1
"""Of the files; raised when they change, or the numbers in them."""

ABOUT = "about.json"
SIDES = ("source", "target")
SPLITS = ("train", "dev", "test")


@dataclass(frozen=True, slots=True, kw_only=True)
class PairCorpusSpec:
    """The pairs to write, which can be read repeatedly, and the vocabularies that they need.

    `kinds` has for each side the kind of its vocabulary and its size, which are learnt from every pair of
    `stride` to train on. A `joint` vocabulary is that of both sides, and learnt from both.
    """

    name: str
    pairs: Callable[[], Iterator[Pair]]
    kinds: Mapping[str, tuple[str, int]]
    stride: int = 1
    joint: bool = False


def write_pairs(spec: PairCorpusSpec, place: Path) -> None:
    """Put pairs and their vocabularies into a folder, unless it is there already."""
    write_once(place, partial(_fill, spec))


def _fill(spec: PairCorpusSpec, place: Path) -> None:
    vocabularies = _learn(spec)
    files = _write_pairs(spec, vocabularies, place)
    for side, vocabulary in vocabularies.items():
        (place / f"{side}.vocabulary").write_bytes(vocabulary.content())
    kinds = {side: kind for side, (kind, _) in spec.kinds.items()}
    about = {"corpus": spec.name, "kinds": kinds, "files": files}
    (place / ABOUT).write_text(json.dumps(about, indent=2), encoding="utf-8")


def _learn(writing: PairCorpusSpec) -> dict[str, Vocabulary]:
    """Return the vocabulary of each side, from the pairs to train on."""

    def sentences(side: str) -> Iterator[str]:
        train = (pair for pair in writing.pairs() if pair.split == "train")
        return (getattr(pair, side) for pair in islice(train, 0, None, writing.stride))

    if writing.joint:
        kind, size = writing.kinds["target"]
        both = learn_vocabulary(kind, chain.from_iterable(map(sentences, SIDES)), size)
        return dict.fromkeys(SIDES, both)
    return {
        side: learn_vocabulary(kind, sentences(side), size) for side, (kind, size) in writing.kinds.items()
    }


class _SideFiles:
    """One side of a split, written pair by pair."""

    def __init__(
        self, stack: ExitStack, place: Path, name: str, vocabulary: Vocabulary, *, kept: bool
    ) -> None:
        self._vocabulary, self._name = vocabulary, name
        self._dtypes = {
            "tokens": smallest_dtype(vocabulary.size),
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

    def describe(self) -> dict[str, dict[str, str | int]]:
        """Return what was written: the type and the size of each file."""
        return {
            f"{self._name}.{kind}": {"dtype": dtype.str[1:], "size": self._sizes[kind]}
            for kind, dtype in self._dtypes.items()
        }

    def _put(self, kind: str, numbers: list[int]) -> None:
        self._files[kind].write(np.array(numbers, self._dtypes[kind]).tobytes())
        self._sizes[kind] += len(numbers)


def _write_pairs(
    writing: PairCorpusSpec, vocabularies: Mapping[str, Vocabulary], place: Path
) -> dict[str, dict[str, str | int]]:
    """Return the numbers of all splits, and the sentences of those that are not for training."""
    with ExitStack() as stack:
        writers = {
            (split, side): _SideFiles(stack, place, f"{split}.{side}", vocabulary, kept=split != "train")
            for split in SPLITS
            for side, vocabulary in vocabularies.items()
        }
        counts: Counter[str] = Counter()
        for pair in writing.pairs():
            counts[pair.split] += 1
            for side in SIDES:
                writers[pair.split, side].add(getattr(pair, side))
        if missing := [split for split in SPLITS if not counts[split]]:
            raise DataError(
                f"{writing.name}: expected pairs in every split, got none in {', '.join(missing)}"
            )
        return {name: about for writer in writers.values() for name, about in writer.describe().items()}
