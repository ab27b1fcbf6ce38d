"""Sequences with classes in numbers, in files that are mapped into memory; whoever asks first writes them."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from torch import Tensor

from ....studies.catalog.own_corpora import SPLITS
from ....studies.catalog.tasks import LabelledSettings
from ....studies.own_data.rows import CLASSES, Row
from ...corpora import DataError
from ..text.tokenization import smallest_dtype
from ..token_files import Split, open_numbers, write_numbers, write_once
from ..vocabularies import learn_vocabulary, load_vocabulary
from ..vocabularies.base import Vocabulary
from .own_rows import iter_own_rows

FORMAT = 1
"""Of the files; raised when they change, or the numbers in them."""

_ABOUT, _VOCABULARY = "about.json", "vocabulary"


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledSplit:
    """Sequences in numbers, and of each the number of its class (sequences,)."""

    sequences: Split
    labels: Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledCorpus:
    """Three splits of sequences with classes, whose names stand in the order of their numbers."""

    vocabulary: Vocabulary
    classes: tuple[str, ...]
    train: LabelledSplit
    dev: LabelledSplit
    test: LabelledSplit


def open_labelled(task: LabelledSettings, folder: Path) -> LabelledCorpus:
    """The sequences that a `[task]` table names, from the folder of all data.

    The first call writes them below `encoded/`; several processes may ask at once. Raises DataError where the
    files are not there, or not what they were.
    """
    name = task.corpus.dataset.name
    place = folder / "encoded" / _name(task)
    try:
        write_once(place, partial(_write, task, folder))
    except OSError as error:
        raise DataError(f"{name}: the sequences cannot be written: {error}") from error
    about = json.loads((place / _ABOUT).read_text("utf-8"))

    def split(name: str) -> LabelledSplit:
        tokens, lines, labels = (
            open_numbers(place, f"{name}.{kind}", about["files"]) for kind in ("tokens", "lines", "labels")
        )
        lengths = lines[1:] - lines[:-1]
        sequences = Split(tokens=tokens, lines=lines, line_words=lengths, words=len(tokens))
        return LabelledSplit(sequences=sequences, labels=labels)

    return LabelledCorpus(
        vocabulary=load_vocabulary(task.tokens, (place / _VOCABULARY).read_bytes()),
        classes=tuple(about["classes"]),
        train=split("train"),
        dev=split("dev"),
        test=split("test"),
    )


def _name(task: LabelledSettings) -> str:
    """The folder of these numbers: what they are, and a hash of all that they depend on."""
    parts = [task.corpus.dataset.name, task.tokens, str(task.vocab)]
    depends = [FORMAT, *parts, task.corpus.model_dump_json()]
    if task.tokens == "bpe":
        depends.append(importlib.metadata.version("sentencepiece"))
    return "-".join([*parts, hashlib.sha256(json.dumps(depends).encode()).hexdigest()[:12]])


def _write(task: LabelledSettings, folder: Path, place: Path) -> None:
    """Encode all splits into the files of a folder."""
    rows = [
        row._replace(sequence=task.normalise(row.sequence))
        for row in iter_own_rows(task.corpus, CLASSES, folder)
    ]
    train = (row.sequence for row in rows if row.split == "train")
    vocabulary = learn_vocabulary(task.tokens, train, task.vocab)
    classes = sort_classes({row.target for row in rows})
    files = {}
    for split in SPLITS:
        files |= _write_split(place, split, [row for row in rows if row.split == split], vocabulary, classes)
    (place / _VOCABULARY).write_bytes(vocabulary.content())
    about = {"corpus": task.corpus.dataset.name, "classes": classes, "files": files}
    (place / _ABOUT).write_text(json.dumps(about, indent=2), encoding="utf-8")


def sort_classes(classes: set[str]) -> list[str]:
    """Classes in the order of their numbers: whole numbers by size, anything else by spelling."""
    if all(each.removeprefix("-").isdecimal() for each in classes):
        return sorted(classes, key=lambda each: (int(each), each))
    return sorted(classes)


def _write_split(
    place: Path, name: str, rows: Sequence[Row], vocabulary: Vocabulary, classes: Sequence[str]
) -> dict[str, dict[str, str | int]]:
    """The numbers of one split; what is said of its files."""
    numbers = {each: number for number, each in enumerate(classes)}
    encoded = [vocabulary.encode(row.sequence) for row in rows]
    arrays = {
        "tokens": np.array([token for each in encoded for token in each], smallest_dtype(vocabulary.size)),
        "lines": np.cumsum([0, *map(len, encoded)], dtype="<i8"),
        "labels": np.array([numbers[row.target] for row in rows], "<i4"),
    }
    return {f"{name}.{kind}": write_numbers(place / f"{name}.{kind}", each) for kind, each in arrays.items()}
