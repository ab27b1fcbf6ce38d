"""Sequences with labels in numbers, in files that are mapped into memory; whoever asks first writes them."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from ....studies.catalog.own_corpora import SPLITS
from ....studies.catalog.tasks import IGNORED, LabelledSettings, TaskKind
from ....studies.own_data.rows import CLASSES, NUMBERS, TAGS, Row, RowKind
from ...corpora import DataError
from ..own_rows import iter_own_rows
from ..text.tokenization import smallest_dtype
from ..token_files import Split, open_numbers, write_numbers, write_once
from ..vocabularies import learn_vocabulary, load_vocabulary
from ..vocabularies.base import Vocabulary

FORMAT = 1
"""Of the files; raised when they change, or the numbers in them."""

_ABOUT, _VOCABULARY = "about.json", "vocabulary"


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledSplit:
    """Sequences in numbers, and labels of each (sequences,) or of all their tokens (tokens,)."""

    sequences: Split
    labels: Tensor
    of_tokens: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledCorpus:
    """Three splits of sequences with labels.

    Labels are numbers of `classes`, int32, or where there are none, float64: then `scale` is the mean of
    those to train on, and their standard deviation.
    """

    vocabulary: Vocabulary
    classes: tuple[str, ...]
    train: LabelledSplit
    dev: LabelledSplit
    test: LabelledSplit

    @property
    def scale(self) -> tuple[float, float]:
        """Return what numbers are measured by."""
        numbers = self.train.labels
        return float(numbers.mean()), float(numbers.std(unbiased=False))


def open_labelled(task: LabelledSettings, folder: Path) -> LabelledCorpus:
    """Return the sequences that a `[task]` table names, from the folder of all data.

    The first call writes them below `encoded/`; several processes may ask at once. Raises DataError where the
    files are not there, or not what they were.
    """
    name = task.corpus.dataset.name
    place = place_of_labelled(task, folder)
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
        return LabelledSplit(
            sequences=sequences, labels=labels, of_tokens=task.spec.kind is TaskKind.TOKEN_CLASSIFICATION
        )

    return LabelledCorpus(
        vocabulary=load_vocabulary(task.vocabulary[0], (place / _VOCABULARY).read_bytes()),
        classes=tuple(about["classes"]),
        train=split("train"),
        dev=split("dev"),
        test=split("test"),
    )


def place_of_labelled(task: LabelledSettings, folder: Path) -> Path:
    """Return the folder that has the sequences, or will have them."""
    return folder / "encoded" / _name(task)


def _name(task: LabelledSettings) -> str:
    """Return the folder of these numbers: what they are, and a hash of all that they depend on."""
    kind, size = task.vocabulary
    parts = [task.corpus.dataset.name, kind, str(size)]
    depends = [FORMAT, *parts, task.name, task.corpus.model_dump_json()]
    if kind == "bpe":
        depends.append(importlib.metadata.version("sentencepiece"))
    return "-".join([*parts, hashlib.sha256(json.dumps(depends).encode()).hexdigest()[:12]])


def _write(task: LabelledSettings, folder: Path, place: Path) -> None:
    """Encode all splits into the files of a folder."""
    rows = [
        row._replace(sequence=task.normalise(row.sequence))
        for row in iter_own_rows(task.corpus, _KINDS[task.spec.kind], folder)
    ]
    train = (row.sequence for row in rows if row.split == "train")
    kind, size = task.vocabulary
    vocabulary = learn_vocabulary(kind, train, size)
    classes = sort_classes(_classes(task.spec.kind, rows))
    files = {}
    for split in SPLITS:
        files |= _write_split(place, split, [row for row in rows if row.split == split], vocabulary, classes)
    (place / _VOCABULARY).write_bytes(vocabulary.content())
    about = {"corpus": task.corpus.dataset.name, "classes": classes, "files": files}
    (place / _ABOUT).write_text(json.dumps(about, indent=2), encoding="utf-8")


_KINDS: Mapping[TaskKind, RowKind] = {
    TaskKind.CLASSIFICATION: CLASSES,
    TaskKind.TOKEN_CLASSIFICATION: TAGS,
    TaskKind.REGRESSION: NUMBERS,
}


def _classes(kind: TaskKind, rows: Sequence[Row]) -> set[str]:
    """Return all classes of the rows; none where they have numbers."""
    if kind is TaskKind.REGRESSION:
        return set()
    targets = (row.target if isinstance(row.target, tuple) else (row.target,) for row in rows)
    return {label for labels in targets for label in labels if label is not None}


def sort_classes(classes: set[str]) -> list[str]:
    """Return classes in the order of their numbers: whole numbers by size, anything else by spelling."""
    if all(each.removeprefix("-").isdecimal() for each in classes):
        return sorted(classes, key=lambda each: (int(each), each))
    return sorted(classes)


def _write_split(
    place: Path, name: str, rows: Sequence[Row], vocabulary: Vocabulary, classes: Sequence[str]
) -> dict[str, dict[str, str | int]]:
    """Return the numbers of one split; what is said of its files."""
    encoded = [vocabulary.encode(row.sequence) for row in rows]
    arrays = {
        "tokens": np.array([token for each in encoded for token in each], smallest_dtype(vocabulary.size)),
        "lines": np.cumsum([0, *map(len, encoded)], dtype="<i8"),
        "labels": _label_numbers(rows, classes),
    }
    return {f"{name}.{kind}": write_numbers(place / f"{name}.{kind}", each) for kind, each in arrays.items()}


def _label_numbers(rows: Sequence[Row], classes: Sequence[str]) -> NDArray[Any]:
    """Return the labels to learn: numbers of classes, for each row or each token, or numbers."""
    if not classes:
        return np.array([row.target for row in rows], "<f8")
    numbers: dict[str | None, int] = {each: number for number, each in enumerate(classes)}
    numbers[None] = IGNORED
    targets = (row.target if isinstance(row.target, tuple) else (row.target,) for row in rows)
    return np.array([numbers[label] for labels in targets for label in labels], "<i4")
