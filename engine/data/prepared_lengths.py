"""Lengths of a trial's training sequences, read from data already prepared on this machine."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from ...studies.catalog.datasets import CorpusError
from ...studies.catalog.tasks import (
    LabelledSettings,
    LanguageModelSettings,
    ParsingSettings,
    SentencePairSettings,
    TaskSettings,
    TranslationSettings,
)
from ...studies.planning.memory_estimates import LongestBatch
from ...studies.schema.settings import TrialSettings
from ..corpora.files import DataError
from .labelled_sequences import place_of_labelled
from .sentence_pairs import place_of_pairs
from .text.corpus import place_of_corpus
from .token_files import ABOUT, open_numbers
from .treebanks import place_of_trees


class PreparedLengths:
    """Sequence lengths read from the folder of all data, cached for each task and batch size."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._found = dict[tuple[str, int], LongestBatch | None]()

    def __call__(self, settings: TrialSettings) -> LongestBatch | None:
        """Return the longest batch of a training, as the model reads it.

        None if the task has no lines or they are not prepared yet; no data are read for it.
        """
        task, batch_size = settings.task, settings.train.batch_size
        key = task.model_dump_json(), batch_size
        if key not in self._found:
            try:
                self._found[key] = _longest_batch(task, batch_size, self._folder)
            except (CorpusError, DataError, OSError, ValueError, KeyError):  # reported when the trial begins
                self._found[key] = None
        return self._found[key]


def _longest_batch(task: TaskSettings, batch_size: int, folder: Path) -> LongestBatch | None:
    lengths = _train_lengths(task, folder)
    if lengths is None:
        return None
    if isinstance(task, SentencePairSettings):
        return _of_pairs(lengths, task.longest + 1, batch_size)
    assert isinstance(task, LabelledSettings | LanguageModelSettings), "other tasks have no files of lines"
    return _of_lines(lengths[0], task)


def _train_lengths(task: TaskSettings, folder: Path) -> list[Tensor] | None:
    """Return the number of tokens of each training line, end symbol included; for pairs one tensor a side.

    Raise DataError or OSError if the prepared files have changed.
    """
    match task:
        case LanguageModelSettings() if task.by_line:
            return _read(place_of_corpus(task, folder), ["train.lines"])
        case LabelledSettings():
            return _read(place_of_labelled(task, folder), ["train.lines"])
        case TranslationSettings():
            return _read(place_of_pairs(task, folder), ["train.source.lines", "train.target.lines"])
        case ParsingSettings():
            return _read(place_of_trees(task, folder), ["train.source.lines", "train.target.lines"])
        case _:
            return None


def _read(place: Path, names: Sequence[str]) -> list[Tensor] | None:
    """Return the number of tokens of each line in files of a prepared folder; None if it does not exist."""
    if not place.is_dir():
        return None
    files = json.loads((place / ABOUT).read_text("utf-8"))["files"]
    return [open_numbers(place, name, files).diff() for name in names]


def _of_pairs(sides: Sequence[Tensor], longest: int, batch_size: int) -> LongestBatch | None:
    sizes = torch.maximum(*sides)
    fitting = sizes.where(sizes <= longest, 0).topk(min(batch_size, len(sizes)))
    widest = int(fitting.values.amax()) if len(sizes) else 0
    return LongestBatch(widest, float(sides[1][fitting.indices].double().mean()) / widest) if widest else None


def _of_lines(lengths: Tensor, task: LabelledSettings | LanguageModelSettings) -> LongestBatch | None:
    """Return the longest batch of lines: the longest line together with lines of the mean length."""
    if isinstance(task, LabelledSettings):
        read = lengths.clamp(max=task.longest)  # of longer ones the beginning is read
    else:
        read = lengths[(lengths > 1) & (lengths <= task.longest + 1)]
    if not len(read):
        return None
    return LongestBatch(int(read.max()), float(read.double().mean() / read.max()))
