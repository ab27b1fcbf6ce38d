"""An output for each token: the algorithmic tasks, whose length grows with what the model has learnt."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from ...blocks import Model
from ...studies.catalog.tasks import TaskKind
from ...studies.schema.settings import TrialSettings
from ..core.seeds import derive_seed
from ..tasks import Batch, get_task
from .base import Metrics, Objective, StepShape
from .registered_metrics import RegisteredMetrics


class TaggingObjective(Objective[Model]):
    """Fresh batches of one length, which grows whenever the accuracy on one of them is high enough."""

    def __init__(self, settings: TrialSettings, device: torch.device, folder: Path) -> None:
        super().__init__(settings, device, folder)
        curriculum = settings.train.curriculum
        assert curriculum is not None, "an algorithmic task without a curriculum"
        self._task = get_task(settings.task.name)
        self._data = torch.Generator().manual_seed(derive_seed(settings.seed, "data"))
        self._fresh = torch.Generator().manual_seed(derive_seed(settings.seed, "evaluation"))
        self._curriculum = Curriculum(
            length=curriculum.start, step=self._task.spec.length_step, grow_at=curriculum.grow_at
        )
        self._batch: Batch | None = None

    @property
    def step_shape(self) -> StepShape:
        """A batch of the current length."""
        tokens = self._task.spec.sequence_length(self._curriculum.length)
        return StepShape(sequences=self.settings.train.batch_size, tokens=tokens)

    def loss(self, model: Model, part: int, parts: int) -> Tensor:
        """Cross-entropy of every token."""
        if part == 0:
            self._batch = self._draw(self._data)
        assert self._batch is not None, "a batch begins with its first part"
        inputs, targets = (rows.chunk(parts)[part].to(self.device) for rows in self._batch)
        # (batch, tokens, vocab) against (batch, tokens)
        return functional.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())

    def evaluate(self, model: Model, *, last: bool) -> Metrics:
        """The fraction of right tokens in one fresh batch, its length, and the longest length passed."""
        length = self._curriculum.length
        inputs, targets = (rows.to(self.device) for rows in self._draw(self._fresh))
        logits, registered = model(inputs), RegisteredMetrics(TaskKind.TAGGING)
        registered.update(logits.flatten(0, 1), targets.flatten())
        accuracy = float((logits.argmax(-1) == targets).double().mean())
        self._curriculum.record(accuracy)
        return {
            "accuracy": accuracy,
            "length": float(length),
            "max_length": float(self._curriculum.passed),
            **registered.compute(),
        }

    def state(self) -> dict[str, Any]:
        """The generators and the curriculum."""
        return {
            "data": self._data.get_state(),
            "fresh": self._fresh.get_state(),
            "curriculum": self._curriculum.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Resume from a state."""
        self._data.set_state(state["data"].cpu())
        self._fresh.set_state(state["fresh"].cpu())
        self._curriculum = Curriculum(**state["curriculum"])

    def _draw(self, generator: torch.Generator) -> Batch:
        size, length = self.settings.train.batch_size, self._curriculum.length
        return self._task.batch(size, length, generator, vocab=self.interface.vocab)


@dataclass(slots=True, kw_only=True)
class Curriculum:
    """The length in training, and the highest length that has been passed (0 before the first)."""

    length: int
    step: int
    grow_at: float
    passed: int = 0

    def record(self, accuracy: float) -> None:
        """Record the accuracy at the current length, a fraction of tokens; grow if it is high enough."""
        if accuracy >= self.grow_at:
            self.passed = self.length
            self.length += self.step

    def state(self) -> dict[str, float]:
        """Everything needed to resume, as plain numbers."""
        return asdict(self)
