"""One number for a whole sequence: the long-term problems, until all of the test sequences are right."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from ...blocks import Model
from ...studies.catalog.tasks import LongTermSettings
from ...studies.schema.settings import TrialSettings
from ..core.seeds import derive_seed
from ..tasks.long_term import LONG_TERM_PROBLEMS, TOLERANCE, RegressionBatch, draw_lengths
from .base import Metrics, Objective, StepShape

_TESTED = 1000
"""Test sequences: ten batches of a hundred; where lengths vary, ten at each of a hundred lengths."""

_TOGETHER = 10


class RegressionObjective(Objective[Model]):
    """Fresh batches, and after each epoch the same test sequences (Raffel and Ellis 2016, section 2)."""

    def __init__(self, settings: TrialSettings, device: torch.device, folder: Path) -> None:
        super().__init__(settings, device, folder)
        assert isinstance(settings.task, LongTermSettings), f"{settings.task.name} has no numbers"
        self._task, self._problem = settings.task, LONG_TERM_PROBLEMS[settings.task.name]
        self._shortest, self._longest = settings.task.length_range
        self._data = torch.Generator().manual_seed(derive_seed(settings.seed, "data"))
        self._epochs, self._best = 0, 0.0
        self._batch: RegressionBatch | None = None

    @property
    def solved(self) -> bool:
        """Whether all test sequences were right."""
        return self._best == 1.0

    @property
    def step_shape(self) -> StepShape:
        """A batch of middling length."""
        assert self.interface.tokens is not None, "the lengths are those of the task"
        return StepShape(sequences=self.settings.train.batch_size, tokens=self.interface.tokens)

    def loss(self, model: Model, part: int, parts: int) -> Tensor:
        """The mean squared error."""
        if part == 0:
            self._batch = self._draw()
        assert self._batch is not None, "a batch begins with its first part"
        batch = RegressionBatch(*(each.chunk(parts)[part].to(self.device) for each in self._batch))
        return functional.mse_loss(self._answers(model, batch), batch.targets)

    def evaluate(self, model: Model, *, last: bool) -> Metrics:
        """The share of test sequences that are right, the highest so far, and the epochs it took for all."""
        right = torch.zeros((), dtype=torch.int64, device=self.device)
        for batch in self._tests():
            here = RegressionBatch(*(each.to(self.device) for each in batch))
            right += ((self._answers(model, here) - here.targets).abs() < TOLERANCE).sum()
        accuracy = int(right) / _TESTED
        self._epochs += 1
        self._best = max(self._best, accuracy)
        measured = {"accuracy": accuracy, "best_accuracy": self._best}
        return measured | {"solved_epochs": float(self._epochs)} if self.solved else measured

    def state(self) -> dict[str, Any]:
        """The generator, and how far the problem is solved."""
        return {"data": self._data.get_state(), "reached": (self._epochs, self._best)}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self._data.set_state(state["data"].cpu())
        self._epochs, self._best = state["reached"]

    def _answers(self, model: Model, batch: RegressionBatch) -> Tensor:
        """What the model gives for each sequence, (batch,)."""
        lengths = None if self._task.padding == "read" else batch.lengths
        return model(batch.inputs, lengths).squeeze(-1)

    def _draw(self) -> RegressionBatch:
        """A batch of lengths of their own, or where lengths vary of one length that is drawn for it."""
        size, data = self.settings.train.batch_size, self._data
        if self._task.variable:
            lengths = draw_lengths(self._shortest, self._longest, 1, data).expand(size)
            return self._problem.batch(lengths, int(lengths[0]), data)
        lengths = draw_lengths(self._shortest, self._longest, size, data)
        return self._problem.batch(lengths, self._longest, data)

    def _tests(self) -> Iterator[RegressionBatch]:
        """The test sequences, made anew from their seed."""
        fresh = torch.Generator().manual_seed(derive_seed(self.settings.seed, "evaluation"))
        if not self._task.variable:
            size = _TESTED // _TOGETHER
            for _ in range(_TOGETHER):
                lengths = draw_lengths(self._shortest, self._longest, size, fresh)
                yield self._problem.batch(lengths, self._longest, fresh)
            return
        spread = torch.linspace(self._shortest, self._longest, _TESTED // _TOGETHER, dtype=torch.float64)
        for length in spread.long().tolist():
            yield self._problem.batch(torch.full((_TOGETHER,), length), length, fresh)
