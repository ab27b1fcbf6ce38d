"""The forward and backward passes of several models of one form, whose weights are stacked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Generator, Tensor, nn
from torch.func import functional_call

from ...blocks.core.dropout import RandomCall, draw_dropout, given_dropout, noting_dropout
from ..objectives import Objective, Stackable
from ..trial.training import Training


class StackedPasses:
    """Losses and gradients of stacked weights by `torch.vmap`, each as its training computes it alone.

    `weights` (trainings, …) have the names of a model's parameters; `noises` are the dropout generators, one
    for each training.
    """

    def __init__(self, trainings: Sequence[Training]) -> None:
        first, models = trainings[0], [training.model for training in trainings]
        self._device, self._loss = first.device, _LossOf(first.model, first.objective)
        self._losses = torch.vmap(self._loss_of_one)
        self.noises = [Generator(first.device) for _ in trainings]
        self.weights = {
            name: weight.new_empty((len(models), *weight.shape)).requires_grad_(weight.requires_grad)
            for name, weight in first.model.named_parameters()
        }
        self._calls: tuple[tuple[torch.Size, ...], list[RandomCall]] | None = None

    def begin(self, trainings: Sequence[Training]) -> None:
        """Draw from now on as these do, which are as many; their weights are put in by who calls."""
        self._loss.train()
        for noise, training in zip(self.noises, trainings, strict=True):
            noise.set_state(training.noise.state)

    def take(self, batch: Sequence[Tensor]) -> Tensor:
        """Compute the gradients of the next stacked batches; return the losses (trainings,)."""
        factors = draw_dropout(self._random_calls(batch), self.noises, self._device)
        losses = self._losses(self.weights, factors, *batch)
        losses.sum().backward()
        return losses.detach()

    def _loss_of_one(self, weights: dict[str, Tensor], factors: list[Tensor], *batch: Tensor) -> Tensor:
        """Return the loss of one training; vmap maps it over all of them."""
        with given_dropout(factors):
            named = {f"model.{name}": weight for name, weight in weights.items()}
            return functional_call(self._loss, named, batch)

    def _random_calls(self, batch: Sequence[Tensor]) -> list[RandomCall]:
        """Return the random calls of a pass over batches of this shape, noted in a first pass."""
        shape = tuple(rows.shape for rows in batch)
        if self._calls is None or self._calls[0] != shape:
            with torch.no_grad(), noting_dropout() as calls:
                self._loss(*(rows[0] for rows in batch))
            self._calls = shape, calls
        return self._calls[1]


class _LossOf(nn.Module):
    """The loss of a model as a module, whose weights can be others."""

    def __init__(self, model: nn.Module, objective: Objective[Any]) -> None:
        super().__init__()
        self.model, self._objective = model, objective

    def forward(self, *batch: Tensor) -> Tensor:
        """Return the loss of a batch."""
        assert isinstance(self._objective, Stackable), "it was looked at before"
        return self._objective.loss_of(self.model, *batch)
