"""A class for each sequence of one's own: cross-entropy, accuracy, macro F1 and calibration."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from ...blocks import Model
from ...studies.catalog.tasks import LabelledSettings
from ...studies.schema.settings import TrialSettings
from ..core.seeds import derive_seed
from ..data.labelled.batches import LabelledBatch, iter_labelled_batches, iter_labelled_eval
from ..data.labelled.corpus import LabelledSplit, open_labelled
from ..data.vocabularies import vocabulary_to_dict
from ..measures import ClassificationScore
from .base import Metrics, Objective, StepShape
from .registered_metrics import RegisteredMetrics


class ClassificationObjective(Objective[Model]):
    """Whole sequences in batches, and scores of the dev and the test split."""

    def __init__(self, settings: TrialSettings, device: torch.device, folder: Path) -> None:
        super().__init__(settings, device, folder)
        assert isinstance(settings.task, LabelledSettings), f"{settings.task.name} has no labels"
        self._task, self._corpus = settings.task, open_labelled(settings.task, folder)
        self._batches: Iterator[LabelledBatch] | None = None
        self._batch: LabelledBatch | None = None
        self._position = self._padded = self._drawn = 0

    @property
    def step_shape(self) -> StepShape:
        """Sequences of the mean length of those drawn so far, padding included."""
        tokens = self._padded // max(self._drawn, 1)
        return StepShape(sequences=self.settings.train.batch_size, tokens=tokens)

    def loss(self, model: Model, part: int, parts: int) -> Tensor:
        """The mean over the sequences."""
        if part == 0:
            self._batch = self._next_batch()
        assert self._batch is not None, "a batch begins with its first part"
        batch = self._to_device(LabelledBatch(*(rows.chunk(parts)[part] for rows in self._batch)))
        lost = functional.cross_entropy(model(batch.sequences, batch.lengths), batch.labels, reduction="sum")
        return lost * parts / len(self._batch.labels)

    def evaluate(self, model: Model, *, last: bool) -> Metrics:
        """The scores of the dev split, and after the last epoch of the test split."""
        measured = self._scores(model, self._corpus.dev, "dev")
        return measured | self._scores(model, self._corpus.test, "test") if last else measured

    def symbols(self) -> dict[str, Any]:
        """The vocabulary, and the names of the classes."""
        return {
            "source": vocabulary_to_dict(self._corpus.vocabulary),
            "classes": list(self._corpus.classes),
        }

    def state(self) -> dict[str, Any]:
        """How many batches have been read."""
        return {"position": self._position, "padded": self._padded, "drawn": self._drawn}

    def restore(self, state: dict[str, Any]) -> None:
        """Resume from a state."""
        self._position, self._batches = state["position"], None
        self._padded, self._drawn = state["padded"], state["drawn"]

    def _next_batch(self) -> LabelledBatch:
        """The next sequences."""
        if self._batches is None:
            self._batches = iter_labelled_batches(
                self._corpus.train,
                batch_size=self.settings.train.batch_size,
                longest=self._task.longest,
                seed=derive_seed(self.settings.seed, "data"),
                position=self._position,
            )
        self._position += 1
        batch = next(self._batches)
        self._padded += batch.sequences.numel()
        self._drawn += len(batch.sequences)
        return batch

    def _scores(self, model: Model, split: LabelledSplit, name: str) -> Metrics:
        """The scores of a split, each sequence once."""
        score = ClassificationScore(len(self._corpus.classes))
        registered = RegisteredMetrics(self._task.spec.kind, name)
        size = self.settings.train.batch_size
        for drawn in iter_labelled_eval(split, batch_size=size, longest=self._task.longest):
            batch = self._to_device(drawn)
            logits = model(batch.sequences, batch.lengths).float()
            score.update(logits, batch.labels)
            registered.update(logits, batch.labels)
        measured = {f"{name}_{metric}": value for metric, value in score.compute().items()}
        return measured | registered.compute()

    def _to_device(self, batch: LabelledBatch) -> LabelledBatch:
        return LabelledBatch(*(rows.to(self.device) for rows in batch))
