"""An output for each token: the algorithmic tasks, whose length grows with what has been learnt."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from ...blocks import Model
from ...studies.settings import Settings
from ..curriculum import Curriculum
from ..seeds import derive
from ..tasks import Batch, task
from .objective import Load, Metrics, Objective


class Tagging(Objective[Model]):
    """Fresh batches of one length, which grows whenever one of them is answered well enough."""

    def __init__(self, settings: Settings, device: torch.device, folder: Path) -> None:
        super().__init__(settings, device, folder)
        curriculum = settings.train.curriculum
        assert curriculum is not None, "an algorithmic task without a curriculum"
        self._task = task(settings.task.name)
        self._data = torch.Generator(device).manual_seed(derive(settings.seed, "data"))
        self._fresh = torch.Generator(device).manual_seed(derive(settings.seed, "evaluation"))
        self._curriculum = Curriculum(
            length=curriculum.start, step=self._task.spec.step, grow_at=curriculum.grow_at
        )
        self._batch: Batch | None = None

    @property
    def load(self) -> Load:
        """A batch at the length that is trained now."""
        tokens = self._task.spec.sequence_length(self._curriculum.length)
        return Load(sequences=self.settings.train.batch_size, tokens=tokens)

    def loss(self, model: Model, part: int, parts: int) -> Tensor:
        """Cross-entropy of every token."""
        if part == 0:
            self._batch = self._draw(self._data)
        assert self._batch is not None, "a batch begins with its first part"
        inputs, targets = (each.chunk(parts)[part] for each in self._batch)
        # (batch, tokens, vocab) against (batch, tokens)
        return functional.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())

    def evaluate(self, model: Model, *, last: bool) -> Metrics:
        """The fraction of tokens that are right on one fresh batch; the length, and the longest passed."""
        batch, length = self._draw(self._fresh), self._curriculum.length
        accuracy = float((model(batch.inputs).argmax(-1) == batch.targets).double().mean())
        self._curriculum.record(accuracy)
        return {
            "accuracy": accuracy,
            "length": float(length),
            "max_length": float(self._curriculum.passed),
        }

    def state(self) -> dict[str, Any]:
        """The generators and the curriculum."""
        return {
            "data": self._data.get_state(),
            "fresh": self._fresh.get_state(),
            "curriculum": self._curriculum.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self._data.set_state(state["data"].cpu())
        self._fresh.set_state(state["fresh"].cpu())
        self._curriculum = Curriculum(**state["curriculum"])

    def _draw(self, generator: torch.Generator) -> Batch:
        size, length = self.settings.train.batch_size, self._curriculum.length
        return self._task.batch(size, length, generator, self.device)
