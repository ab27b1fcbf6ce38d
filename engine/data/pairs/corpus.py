"""Pairs of sentences in numbers, in files that are mapped into memory; whoever asks first writes them."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ....studies.catalog.datasets import ParallelCorpus, require_dataset
from ....studies.catalog.own_corpora import OwnPairs
from ....studies.catalog.tasks import TranslationSettings
from ...corpora import DataError
from ..token_files import Split, open_split
from ..vocabularies import load_vocabulary
from ..vocabularies.base import Vocabulary
from .reader import Pair, split_own_pairs, split_pairs
from .writer import ABOUT, FORMAT, SIDES, PairCorpusSpec, write_pairs

_MAX_LEARNING_PAIRS = 4_000_000  # vocabularies are learnt from at most this many, spread evenly


@dataclass(frozen=True, slots=True, kw_only=True)
class PairSplit:
    """Sentences and their translations in numbers, each with an end.

    Pair i is line i of both sides. The files that begin with `path_prefix` have the sentences as they were,
    if the split is not for training.
    """

    source: Split
    target: Split
    path_prefix: Path | None = None

    def sentences(self, side: str) -> list[str]:
        """Return the sentences of a side, source or target, as they were before they became numbers."""
        if self.path_prefix is None:
            raise DataError("expected a split with its sentences, got one of numbers alone")
        return (
            self.path_prefix.with_name(f"{self.path_prefix.name}.{side}.txt")
            .read_text("utf-8")
            .split("\n")[:-1]
        )

    def target_bytes(self) -> list[int] | None:
        """Return the bytes of each target in UTF-8 with the end of its line; None if no text is known."""
        if self.path_prefix is None:
            return None
        return [len(sentence.encode()) + 1 for sentence in self.sentences("target")]


@dataclass(frozen=True, slots=True, kw_only=True)
class ParallelText:
    """A corpus of pairs: a vocabulary for each language, three splits of which no two share a source."""

    source: Vocabulary
    target: Vocabulary
    train: PairSplit
    dev: PairSplit
    test: PairSplit


def open_pairs(task: TranslationSettings, folder: Path) -> ParallelText:
    """Return the pairs that a `[task]` table names, from the folder of all data.

    The first call writes them below `encoded/`; several processes may ask at once. Raises CorpusError, and
    DataError where the pairs are not there, or not those that were published.
    """
    return open_or_write(*_writing_of(task, folder), folder)


def place_of_pairs(task: TranslationSettings, folder: Path) -> Path:
    """Return the folder that has the pairs, or will have them."""
    return place_of_writing(*_writing_of(task, folder), folder)


def _writing_of(task: TranslationSettings, folder: Path) -> tuple[PairCorpusSpec, list[Any]]:
    """Return what is to be written for a `[task]` table, and what it depends on."""
    if isinstance(task.corpus, OwnPairs):
        facts = task.corpus
        writing = _writing(
            task, facts.dataset.name, lambda: split_own_pairs(facts, folder), count=facts.rows.train
        )
        return writing, [facts.model_dump(mode="json")]
    corpus = require_dataset(task.corpus, ParallelCorpus)
    writing = _writing(task, corpus.name, lambda: split_pairs(corpus, folder), count=corpus.pairs)
    files = {split: [asdict(each) for each in files] for split, files in corpus.files.items()}
    shares = corpus.held_out and asdict(corpus.held_out)
    return writing, [files, [each.digest for each in corpus.downloads], shares]


def _writing(
    task: TranslationSettings, name: str, pairs: Callable[[], Iterator[Pair]], *, count: int
) -> PairCorpusSpec:
    """Return what is to be written of a corpus with about so many pairs to train on."""
    return PairCorpusSpec(
        name=name,
        pairs=pairs,
        kinds=dict.fromkeys(SIDES, (task.tokens, task.pieces)),
        stride=-(-count // _MAX_LEARNING_PAIRS),
        joint=task.joint_vocabulary,
    )


def open_or_write(spec: PairCorpusSpec, depends: list[Any], folder: Path) -> ParallelText:
    """Return prepared pairs from their folder below `encoded/`; write them there first if missing."""
    place = place_of_writing(spec, depends, folder)
    try:
        write_pairs(spec, place)
    except OSError as error:
        raise DataError(f"{spec.name}: the pairs cannot be written: {error}") from error
    return open_written(place)


def place_of_writing(spec: PairCorpusSpec, depends: list[Any], folder: Path) -> Path:
    """Return the folder of what is to be written, whose name has a hash of all that its content depends on.

    That is `depends` besides the writing's own.
    """
    (kind, size), target = spec.kinds["source"], spec.kinds["target"]
    depends = [FORMAT, *depends, kind, size, *target, *(["joint"] if spec.joint else [])]
    if "bpe" in (kind, target[0]):
        depends.append(importlib.metadata.version("sentencepiece"))
    digest = hashlib.sha256(json.dumps(depends).encode()).hexdigest()
    return folder / "encoded" / f"{spec.name}-{kind}-{size}-{digest[:12]}"


def open_written(place: Path) -> ParallelText:
    """Return the pairs that were written to a folder."""
    about = json.loads((place / ABOUT).read_text("utf-8"))
    files = about["files"]

    def vocabulary(side: str) -> Vocabulary:
        return load_vocabulary(about["kinds"][side], (place / f"{side}.vocabulary").read_bytes())

    def split(name: str) -> PairSplit:
        source, target = (open_split(place, f"{name}.{side}", files) for side in SIDES)
        return PairSplit(source=source, target=target, path_prefix=None if name == "train" else place / name)

    source, target = (vocabulary(side) for side in SIDES)
    return ParallelText(
        source=source, target=target, train=split("train"), dev=split("dev"), test=split("test")
    )
