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
from ...studies.catalog.tasks import TOLERANCE, Examples, LongTermSettings, TaskKind
from ...studies.schema.settings import TrialSettings
from ..core.process import derive_seed
from ..tasks.long_term import LONG_TERM_PROBLEMS, draw_lengths
from .base import (
    Answers,
    FreshObjective,
    Metrics,
    RegisteredMetrics,
    micro_batch,
    micro_batch_weight,
    on_device,
)

_TEST_SEQUENCES = 1000
_TEST_BATCH_SIZE = 100
_TEST_LENGTHS = 100
"""The number of test lengths of a task with varying lengths; each gets the same number of sequences."""


class RegressionObjective(FreshObjective):
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

    def loss(self, model: Model, part: int, parts: int) -> Tensor:
        inputs, predictions, targets = self._answers(model, micro_batch(self.batch, part, parts))
        self._show(inputs, predictions, targets)
        weight = micro_batch_weight(len(self.batch.targets), part, parts)
        return functional.mse_loss(predictions, targets) * weight

    def evaluate(self, model: Model, *, last: bool) -> Metrics:
        """Return the test accuracy and its highest value so far.

        Once the highest accuracy is 1, also return the number of epochs that this took.
        """
        right = torch.zeros((), dtype=torch.int64, device=self.device)
        registered = RegisteredMetrics(TaskKind.REGRESSION)
        for drawn in self._test_batches():
            _, predictions, targets = self._answers(model, drawn)
            registered.update(predictions, targets)
            right += ((predictions - targets).abs() < TOLERANCE).sum()
        accuracy = int(right) / _TEST_SEQUENCES
        self._epochs += 1
        self._best = max(self._best, accuracy)
        measured = {"accuracy": accuracy, "best_accuracy": self._best, **registered.compute()}
        return measured | {"solved_epochs": float(self._epochs)} if self.solved else measured

    def test_batches(self) -> Iterator[Examples]:
        for batch in self._test_batches():
            yield batch._replace(targets=batch.targets.unsqueeze(-1))

    def state(self) -> dict[str, Any]:
        return {**super().state(), "reached": (self._epochs, self._best)}

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self._epochs, self._best = state["reached"]

    def _answers(self, model: Model, batch: Examples) -> Answers:
        inputs, targets = on_device(batch.inputs, self.device), on_device(batch.targets, self.device)
        lengths = None if batch.lengths is None else on_device(batch.lengths, self.device)
        return Answers(inputs, model(inputs, lengths).squeeze(-1), targets)

    def _draw(self, lengths: Tensor, longest: int, generator: torch.Generator) -> Examples:
        batch = self._problem.batch(lengths, longest, generator)
        return batch._replace(lengths=None) if self._task.padding == "read" else batch

    def _draw_batch(self) -> Examples:
        size, data = self.settings.train.batch_size, self._data
        if self._task.variable:
            # one length for the whole batch, so that it has no padding
            lengths = draw_lengths(self._shortest, self._longest, 1, data).expand(size)
            return self._draw(lengths, int(lengths[0]), data)
        return self._draw(draw_lengths(self._shortest, self._longest, size, data), self._longest, data)

    def _test_batches(self) -> Iterator[Examples]:
        # seeded at each call, so that the test sequences are always the same
        generator = torch.Generator().manual_seed(derive_seed(self.settings.seed, "evaluation"))
        if not self._task.variable:
            for _ in range(_TEST_SEQUENCES // _TEST_BATCH_SIZE):
                lengths = draw_lengths(self._shortest, self._longest, _TEST_BATCH_SIZE, generator)
                yield self._draw(lengths, self._longest, generator)
            return
        spread = torch.linspace(self._shortest, self._longest, _TEST_LENGTHS, dtype=torch.float64)
        for length in spread.long().tolist():
            lengths = torch.full((_TEST_SEQUENCES // _TEST_LENGTHS,), length)
            yield self._draw(lengths, length, generator)
