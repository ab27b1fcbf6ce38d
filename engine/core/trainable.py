"""The interface of a trial's training."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

from ...storage import WrittenOutputs
from ...studies.schema.settings import TrialSettings

TOKENS_PER_S = "tokens_per_s"
"""The metric that depends on the machine: symbols of training and evaluation in a second."""

BetweenSteps = Callable[[], None]
"""Called after each step of an epoch, when the training can be saved; what it raises leaves the epoch."""


class Trainable(Protocol):
    """The training of a trial, as an attempt sees it; `Training` implements it."""

    parameters: int
    epoch: int
    step: int
    seconds: float
    flops: float
    packed_steps: int

    @property
    def finished(self) -> bool:
        """Whether the last epoch is over."""
        ...

    @property
    def can_be_saved(self) -> bool:
        """Whether all of its state is of one moment."""
        ...

    @property
    def lacks_last_evaluation(self) -> bool:
        """Whether only the evaluation after its last step is left."""
        ...

    def advance(self, between_steps: BetweenSteps) -> dict[str, float]:
        """Train one epoch, or the rest of one; its metrics."""
        ...

    def summary(self, last: dict[str, float]) -> dict[str, float]:
        """The final metrics, given those of the last epoch."""
        ...

    def state(self) -> dict[str, Any]:
        """Everything that the next step depends on."""
        ...

    def restore(self, state: dict[str, Any]) -> None:
        """Resume from a state."""
        ...

    def weights(self) -> Mapping[str, Tensor]:
        """The model as it is now, by name."""
        ...

    def symbols(self) -> Mapping[str, Any] | None:
        """How text becomes the model's symbols, as plain values."""
        ...

    def outputs(self) -> WrittenOutputs | None:
        """What the model wrote for the test split after its last epoch."""
        ...


TrainingFactory = Callable[[TrialSettings, torch.device, Path], Trainable]
"""Makes a training from a trial's settings, on a device, with the folder of the corpora."""
