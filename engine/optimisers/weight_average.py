"""An exponential moving average of a model's weights, with which it is evaluated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor

from ...blocks import Model
from ...blocks.models.seq2seq_model import TransductionModel


class WeightAverage:
    """The average of a model's weights over its steps, of which each counts `decay` times the next one.

    It begins as the weights are before the first step.
    """

    def __init__(self, model: Model | TransductionModel, decay: float) -> None:
        self._model, self._decay = model, decay
        self._average = {name: weight.detach().clone() for name, weight in model.named_parameters()}
        self.settled = True  # False while the model has the average, and where a swap was left midway

    @torch.no_grad()
    def after_step(self) -> None:
        """Take the weights into account."""
        for name, weight in self._model.named_parameters():
            self._average[name].lerp_(weight, 1.0 - self._decay)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """A context in which the model has the average for its weights, and the average is away.

        Both change places, one weight after the other: a copy of all weights would be as large as they are.
        """
        self.settled = False
        self._swap()
        try:
            yield
        finally:
            self._swap()
            self.settled = True

    def state(self) -> dict[str, Tensor]:
        """Return the average by the names of the weights."""
        return self._average

    @torch.no_grad()
    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Resume from a state."""
        for name, average in self._average.items():
            average.copy_(state[name])
        self.settled = True

    @torch.no_grad()
    def _swap(self) -> None:
        for name, weight in self._model.named_parameters():
            own = weight.detach().clone()
            weight.copy_(self._average[name])
            self._average[name].copy_(own)
        self._model.after_optimiser_step()
