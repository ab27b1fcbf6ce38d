"""Labelled sequences as numbers in memory-mapped files, which the first process that needs them writes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from ...studies.catalog.own_corpora import SPLITS
from ...studies.catalog.tasks import IGNORED, Examples, LabelledSettings, TaskKind
from ...studies.own_data.rows import CLASSES, NUMBERS, TAGS, Row, RowKind
from ..corpora.files import DataError, read_own_rows
from .token_files import (
    Split,
    SplitWriter,
    encoded_folder,
    iter_shuffled,
    open_numbers,
    open_split,
    prepared,
    smallest_dtype,
    write_numbers,
)
from .vocabularies.build import learn_vocabulary, load_vocabulary
from .vocabularies.sentences import SentenceVocabulary

FORMAT = 3
"""The version of the files. It grows when their layout or content changes."""

_VOCABULARY = "vocabulary"


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledSplit:
    """Encoded sequences and their labels. `labels` is (sequences,) or, if `of_tokens`, (tokens,)."""

    sequences: Split
    labels: Tensor
    of_tokens: bool = False


@dataclass(frozen=True, kw_only=True)
class LabelledCorpus:
    """Three splits of sequences with labels.

    Labels are indices of `classes` (int32) or, without classes, real numbers (float64). For real labels
    `scale` is the mean and standard deviation of the training labels.
    """

    vocabulary: SentenceVocabulary
    classes: tuple[str, ...]
    train: LabelledSplit
    dev: LabelledSplit
    test: LabelledSplit

    @cached_property
    def scale(self) -> tuple[float, float]:
        """Return the mean and standard deviation of the training labels, which standardise labels."""
        numbers = self.train.labels
        return float(numbers.mean()), float(numbers.std(unbiased=False))


def open_labelled(task: LabelledSettings, folder: Path) -> LabelledCorpus:
    """Open the labelled sequences that a `[task]` table names.

    `folder` is the folder of all data. The first call writes the encoded sequences below `encoded/`; several
    processes may call this at once. Raise DataError if files are missing or have changed.
    """
    kind, size = task.vocabulary
    parts = [task.corpus.dataset.name, kind, str(size)]
    depends = [FORMAT, *parts, task.name, task.corpus.model_dump_json()]
    place = encoded_folder(folder, parts, depends, pieces=kind == "bpe")
    about = prepared(place, task.corpus.dataset.name, partial(_write, task, folder))

    def split(name: str) -> LabelledSplit:
        sequences = open_split(place, name, about["files"])
        labels = open_numbers(place, f"{name}.labels", about["files"])
        return LabelledSplit(
            sequences=sequences, labels=labels, of_tokens=task.spec.kind is TaskKind.TOKEN_CLASSIFICATION
        )

    return LabelledCorpus(
        vocabulary=load_vocabulary(kind, (place / _VOCABULARY).read_bytes()),
        classes=tuple(about["classes"]),
        train=split("train"),
        dev=split("dev"),
        test=split("test"),
    )


def _write(task: LabelledSettings, folder: Path, place: Path) -> dict[str, Any]:
    rows = [
        row._replace(sequence=task.normalise(row.sequence))
        for row in read_own_rows(task.corpus, _KINDS[task.spec.kind], folder)
    ]
    train = (row.sequence for row in rows if row.split == "train")
    kind, size = task.vocabulary
    vocabulary = learn_vocabulary(kind, train, size)
    classes = list[str]()
    if task.spec.kind is not TaskKind.REGRESSION:
        classes = sort_classes({label for row in rows for label in _labels(row) if label is not None})
    numbers: dict[str | None, int] = {each: number for number, each in enumerate(classes)}
    numbers[None] = IGNORED
    files, no_mark = dict[str, Any](), np.array([], smallest_dtype(vocabulary.size))
    for split in SPLITS:
        here = [row for row in rows if row.split == split]
        with SplitWriter(place, split, no_mark) as writer:
            for row in here:
                tokens = vocabulary.encode(row.sequence)
                writer.add(tokens, [len(tokens)], [len(tokens)])
        if classes:
            labels = np.array([numbers[label] for row in here for label in _labels(row)], "<i4")
        else:
            labels = np.array([row.target for row in here], "<f8")
        files |= writer.about() | {f"{split}.labels": write_numbers(place / f"{split}.labels", labels)}
    (place / _VOCABULARY).write_bytes(vocabulary.content())
    return {"corpus": task.corpus.dataset.name, "classes": classes, "files": files}


_KINDS: Mapping[TaskKind, RowKind] = {
    TaskKind.CLASSIFICATION: CLASSES,
    TaskKind.TOKEN_CLASSIFICATION: TAGS,
    TaskKind.REGRESSION: NUMBERS,
}


def _labels(row: Row) -> tuple[Any, ...]:
    return row.target if isinstance(row.target, tuple) else (row.target,)


def format_number(number: float, deviation: float) -> str:
    """Return a label or a prediction as text, exact to a millionth of the labels' standard deviation."""
    digits = 7 + max(0, math.floor(math.log10(max(abs(number), deviation) / deviation)))
    return f"{number:.{min(digits, 17)}g}"


def sort_classes(classes: set[str]) -> list[str]:
    """Sort class names for numbering: whole numbers by value, other names alphabetically."""
    if all(each.removeprefix("-").isdecimal() for each in classes):
        return sorted(classes, key=lambda each: (Decimal(each), each))  # `int` refuses thousands of digits
    return sorted(classes)


def iter_labelled_batches(
    split: LabelledSplit, *, batch_size: int, longest: int, seed: int, position: int = 0
) -> Iterator[Examples]:
    """Yield batches of sequences without end, from batch number `position` on.

    Inputs are (batch, n), int64, padded at the end with 0. Targets are (batch,), or (batch, n) for labels of
    tokens, with IGNORED at padding. The order of each pass depends on the seed and the number of the pass; an
    incomplete last batch is dropped. Sequences are cut after `longest` tokens.
    """
    every = torch.arange(len(split.sequences.line_lengths))
    if len(every) < batch_size:
        raise DataError(f"expected at least {batch_size} sequences, got {len(every)}")
    for rows in iter_shuffled(every, batch_size=batch_size, seed=seed, what="rows", position=position):
        yield _collate(split, rows, longest)


def evaluation_order(split: LabelledSplit) -> list[int]:
    """Return the indices of a split's sequences, ordered by length."""
    return torch.argsort(split.sequences.line_lengths, stable=True).tolist()


def iter_labelled_eval(split: LabelledSplit, *, batch_size: int, longest: int) -> Iterator[Examples]:
    """Yield each sequence once, in `evaluation_order`, in batches, the last of which may be smaller."""
    order = evaluation_order(split)
    for place in range(0, len(order), batch_size):
        yield _collate(split, order[place : place + batch_size], longest)


def _collate(split: LabelledSplit, chosen: Sequence[int], longest: int) -> Examples:
    sequences, lengths = split.sequences.padded_lines(chosen)
    if split.of_tokens:
        bounds = split.sequences.lines
        rows = [split.labels[bounds[number] : bounds[number + 1]].long() for number in chosen]
        labels = pad_sequence(rows, batch_first=True, padding_value=IGNORED)[:, :longest]
    else:
        labels = split.labels[torch.tensor(chosen)]
        labels = labels if labels.is_floating_point() else labels.long()
    return Examples(sequences[:, :longest], labels, lengths.clamp(max=longest))
