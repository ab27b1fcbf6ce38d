"""Objective of the long-term problems, which ask for one number per sequence.

Training ends when the predictions for all test sequences are right.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from ...blocks import Model
from ...studies.catalog.tasks import Examples, LongTermSettings, TaskKind
from ...studies.schema.settings import TrialSettings
from ..core.process import derive_seed
from ..tasks.long_term import LONG_TERM_PROBLEMS, TOLERANCE, RegressionBatch, draw_lengths
from .base import (
    FreshObjective,
    Metrics,
    RegisteredMetrics,
    StepShape,
    micro_batch_slice,
    micro_batch_weight,
    on_device,
)

_TEST_SEQUENCES = 1000
_TEST_BATCH_SIZE = 100
_TEST_LENGTHS = 100
"""The number of test lengths of a task with varying lengths; each gets the same number of sequences."""


class RegressionObjective(FreshObjective[RegressionBatch]):
    """Objective with fresh training sequences and fixed test sequences (Raffel and Ellis 2016, section 2)."""

    def __init__(self, settings: TrialSettings, device: torch.device, folder: Path) -> None:
        super().__init__(settings, device, folder)
        assert isinstance(settings.task, LongTermSettings), f"{settings.task.name} has no numbers"
        self._task, self._problem = settings.task, LONG_TERM_PROBLEMS[settings.task.name]
        self._shortest, self._longest = settings.task.length_range
        self._epochs, self._best = 0, 0.0

    @property
    def solved(self) -> bool:
        return self._best == 1.0

    @property
    def step_shape(self) -> StepShape:
        tokens = self.settings.task.interface.tokens
        assert tokens is not None, "a task's sizes include its length"
        return StepShape(sequences=self.settings.train.batch_size, tokens=tokens)

    def loss(self, model: Model, part: int, parts: int) -> Tensor:
        """Return the mean squared error of one micro-batch."""
        count = len(self._current.targets)
        here = micro_batch_slice(count, part, parts)
        batch = RegressionBatch(*(on_device(rows[here], self.device) for rows in self._current))
        predictions = self._predictions(model, batch)
        self._show(batch.inputs, predictions, batch.targets)
        return functional.mse_loss(predictions, batch.targets) * micro_batch_weight(count, part, parts)

    def evaluate(self, model: Model, *, last: bool) -> Metrics:
        """Return the test accuracy and its highest value so far.

        Once the highest accuracy is 1, also return the number of epochs that this took.
        """
        right = torch.zeros((), dtype=torch.int64, device=self.device)
        registered = RegisteredMetrics(TaskKind.REGRESSION)
        for drawn in self._test_batches():
            batch = RegressionBatch(*(rows.to(self.device) for rows in drawn))
            predictions = self._predictions(model, batch)
            registered.update(predictions, batch.targets)
            right += ((predictions - batch.targets).abs() < TOLERANCE).sum()
        accuracy = int(right) / _TEST_SEQUENCES
        self._epochs += 1
        self._best = max(self._best, accuracy)
        measured = {"accuracy": accuracy, "best_accuracy": self._best, **registered.compute()}
        return measured | {"solved_epochs": float(self._epochs)} if self.solved else measured

    def test_batches(self) -> Iterator[Examples]:
        for batch in self._test_batches():
            lengths = None if self._task.padding == "read" else batch.lengths
            yield Examples(batch.inputs, batch.targets.unsqueeze(-1), lengths)

    def state(self) -> dict[str, Any]:
        return {**super().state(), "reached": (self._epochs, self._best)}

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self._epochs, self._best = state["reached"]

    def _predictions(self, model: Model, batch: RegressionBatch) -> Tensor:
        lengths = None if self._task.padding == "read" else batch.lengths
        return model(batch.inputs, lengths).squeeze(-1)

    def _draw_batch(self) -> RegressionBatch:
        size, data = self.settings.train.batch_size, self._data
        if self._task.variable:
            # one length for the whole batch, so that it has no padding
            lengths = draw_lengths(self._shortest, self._longest, 1, data).expand(size)
            return self._problem.batch(lengths, int(lengths[0]), data)
        lengths = draw_lengths(self._shortest, self._longest, size, data)
        return self._problem.batch(lengths, self._longest, data)

    def _test_batches(self) -> Iterator[RegressionBatch]:
        # seeded at each call, so that the test sequences are always the same
        generator = torch.Generator().manual_seed(derive_seed(self.settings.seed, "evaluation"))
        if not self._task.variable:
            for _ in range(_TEST_SEQUENCES // _TEST_BATCH_SIZE):
                lengths = draw_lengths(self._shortest, self._longest, _TEST_BATCH_SIZE, generator)
                yield self._problem.batch(lengths, self._longest, generator)
            return
        spread = torch.linspace(self._shortest, self._longest, _TEST_LENGTHS, dtype=torch.float64)
        for length in spread.long().tolist():
            lengths = torch.full((_TEST_SEQUENCES // _TEST_LENGTHS,), length)
            yield self._problem.batch(lengths, length, generator)
