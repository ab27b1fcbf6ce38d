"""The forward and backward passes of several models of one form, whose weights are stacked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Generator, Tensor, nn
from torch.func import functional_call

from ...blocks.core.dropout import RandomCall, draw_dropout, given_dropout, noting_dropout
from ...blocks.stacked import StackedModels, can_be_stacked
from ..objectives import Objective, Stackable
from ..trial.training import Training


class StackedPasses:
    """Computes the losses and the gradients of stacked weights, each as its training would alone.

    The weights (trainings, …) are by the names that they have in a model; `noises` are what is dropped drawn
    from, of each training in turn. Models that cannot be one are mapped over by torch.vmap, which is slower.
    """

    def __init__(self, trainings: Sequence[Training]) -> None:
        first, models = trainings[0], [training.model for training in trainings]
        self._device, self._loss = first.device, _LossOf(first.model, first.objective)
        self.noises = [Generator(first.device) for _ in trainings]
        if can_be_stacked(first.model):
            together = StackedModels(models)
            self._pass = _PassOfAll(together, first.objective)
            self.weights = together.weights
        else:
            self._pass = _MappedPass(self._loss)
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
        """The losses (trainings,) of the next batches, stacked; the weights then have their gradients."""
        return self._compute(batch, self._random_calls(batch))

    @property
    def are_one_module(self) -> bool:
        """Whether the models are one module, so that they have outputs in evaluation, too."""
        return isinstance(self._pass, _PassOfAll)

    @torch.no_grad()
    def outputs(self, inputs: Tensor) -> Tensor:
        """What models that are one module say in evaluation, (trainings, …) as the inputs."""
        assert isinstance(self._pass, _PassOfAll), "it was looked at before"
        return self._pass.outputs(inputs)

    def _compute(self, batch: Sequence[Tensor], calls: Sequence[RandomCall]) -> Tensor:
        """As `take`, where these calls of the forward pass are random."""
        losses = self._pass.losses(self.weights, draw_dropout(calls, self.noises, self._device), batch)
        losses.sum().backward()
        return losses.detach()

    def _random_calls(self, batch: Sequence[Tensor]) -> list[RandomCall]:
        """What is random in a pass over batches of this shape; the first pass of one model notes it."""
        shape = tuple(rows.shape for rows in batch)
        if self._calls is None or self._calls[0] != shape:
            with torch.no_grad(), noting_dropout() as calls:
                self._loss(*(rows[0] for rows in batch))
            self._calls = shape, calls
        return self._calls[1]


class _PassOfAll:
    """A forward pass of models that are one module."""

    def __init__(self, models: StackedModels, objective: Objective[Any]) -> None:
        self._models, self._objective = models.train(), objective

    def losses(self, weights: dict[str, Tensor], factors: list[Tensor], batch: Sequence[Tensor]) -> Tensor:
        """The losses (models,) with the module's own weights, where dropout multiplies by these factors."""
        del weights
        assert isinstance(self._objective, Stackable), "it was looked at before"
        with given_dropout([each.flatten(0, 1) for each in factors]):
            return self._objective.losses_of(self._models, *batch)

    def outputs(self, inputs: Tensor) -> Tensor:
        """What they say without dropout."""
        self._models.eval()
        try:
            return self._models(inputs)
        finally:
            self._models.train()


class _MappedPass:
    """A forward pass of one model, mapped over stacked weights."""

    def __init__(self, loss: nn.Module) -> None:
        self._loss, self._losses = loss, torch.vmap(self._loss_of_one)

    def losses(self, weights: dict[str, Tensor], factors: list[Tensor], batch: Sequence[Tensor]) -> Tensor:
        """The losses (models,) with these weights, where dropout multiplies by these factors."""
        return self._losses(weights, factors, *batch)

    def _loss_of_one(self, weights: dict[str, Tensor], factors: list[Tensor], *batch: Tensor) -> Tensor:
        """The loss of one training, of all within the vmap."""
        with given_dropout(factors):
            named = {f"model.{name}": weight for name, weight in weights.items()}
            return functional_call(self._loss, named, batch)


class _LossOf(nn.Module):
    """The loss of a model as a module, whose weights can be others."""

    def __init__(self, model: nn.Module, objective: Objective[Any]) -> None:
        super().__init__()
        self.model, self._objective = model, objective

    def forward(self, *batch: Tensor) -> Tensor:
        """The loss of a batch."""
        assert isinstance(self._objective, Stackable), "it was looked at before"
        return self._objective.loss_of(self.model, *batch)
