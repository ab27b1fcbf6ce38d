"""Steps of several trainings at once: their weights stacked, one forward and backward pass for all."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.func import functional_call

from ...blocks.core.dropout import RandomCall, draw_dropout, given_dropout, noting_dropout
from ...blocks.layers.window_attention import looks_at_weights
from ...errors import ActivememError
from ..objectives import Objective, Stackable
from ..trial.precision import float32_products
from ..trial.training import Training
from .stacked_optimiser import StackedOptimiser, stack_optimisers


class PackError(ActivememError):
    """Trainings that cannot take steps together; the message says why."""


class StackedSteps:
    """A context in which trainings of one form take steps together, and each computes what it would alone.

    Within it each training's weights are views of the stacked ones; behind it all is as if each had trained
    alone. What is raised amid a step leaves the trainings where they cannot go on.
    """

    def __init__(self, trainings: Sequence[Training]) -> None:
        self._trainings = trainings
        self._stacked: dict[str, Tensor] = {}
        self._loss = _LossOf(trainings[0].model.train(), trainings[0].objective)
        self._losses = torch.vmap(self._loss_of_one)
        self._noises = [training.noise.generator() for training in trainings]
        self._dropout: list[RandomCall] | None = None
        self._optimiser: StackedOptimiser | None = None

    def __enter__(self) -> Self:
        for training in self._trainings:
            training.is_stacked = True
        own = [dict(training.model.named_parameters()) for training in self._trainings]
        for name, weight in own[0].items():
            stacked = torch.stack([each[name].detach() for each in own])
            self._stacked[name] = stacked.requires_grad_(weight.requires_grad)
            for each, view in zip(own, stacked.detach().unbind(), strict=True):
                each[name].data = view
        self._own = own
        self._optimiser = stack_optimisers(self._trainings, own, self._stacked)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._optimiser is not None:
            self._optimiser.unstack()
        for each in self._own:
            for weight in each.values():
                weight.data, weight.grad = weight.data.clone(), None
        for training, noise in zip(self._trainings, self._noises, strict=True):
            training.noise.state = noise.get_state()
        for training in self._trainings:
            training.is_stacked = False

    def step(self) -> None:
        """One step of each training; PackError if their batches differ in shape."""
        for training in self._trainings:
            training.begin_step()
        with float32_products(self._trainings[0].settings.train.precision):
            batch = self._draw()
            losses = self._losses(self._stacked, self._draw_dropout(batch), *batch)
            losses.sum().backward()
            self._move_weights()
        for training, loss in zip(self._trainings, losses.detach().unbind(), strict=True):
            training.end_packed_step(loss)
        for stacked in self._stacked.values():
            stacked.grad = None

    def _draw(self) -> list[Tensor]:
        """The next batch of each training, stacked."""
        batches: list[tuple[Tensor, ...]] = []
        for training in self._trainings:
            assert isinstance(training.objective, Stackable), "it was looked at before"
            batches.append(training.objective.draw())
        drawn = list(zip(*batches, strict=True))
        if any(rows.shape != alike[0].shape for alike in drawn for rows in alike):
            raise PackError("expected batches of one shape")
        return [torch.stack(alike) for alike in drawn]

    def _draw_dropout(self, batch: Sequence[Tensor]) -> list[Tensor]:
        """What is random in a pass, stacked; the first pass of one model notes where anything is."""
        if self._dropout is None:
            with torch.no_grad(), noting_dropout() as self._dropout:
                self._loss(*(rows[0] for rows in batch))
        return draw_dropout(self._dropout, self._noises, batch[0].device)

    def _loss_of_one(self, weights: dict[str, Tensor], factors: list[Tensor], *batch: Tensor) -> Tensor:
        """The loss of one training, of all within the vmap."""
        with given_dropout(factors):
            named = {f"model.{name}": weight for name, weight in weights.items()}
            return functional_call(self._loss, named, batch)

    def _move_weights(self) -> None:
        """Move all weights at once, or those of each training by its own optimiser."""
        if self._optimiser is not None:
            self._optimiser.step()
            return
        for name, stacked in self._stacked.items():
            if stacked.grad is not None:
                for own, gradient in zip(self._own, stacked.grad.unbind(), strict=True):
                    own[name].grad = gradient
        for training in self._trainings:
            training.move_weights()


class _LossOf(nn.Module):
    """The loss of a model as a module, whose weights can be others."""

    def __init__(self, model: nn.Module, objective: Objective[Any]) -> None:
        super().__init__()
        self.model, self._objective = model, objective

    def forward(self, *batch: Tensor) -> Tensor:
        """The loss of a batch."""
        assert isinstance(self._objective, Stackable), "it was looked at before"
        return self._objective.loss_of(self.model, *batch)


def stacking_fault(training: Training) -> str | None:
    """Why a training cannot take steps together with others of its form, as its model is built."""
    if not isinstance(training.objective, Stackable):
        return f"batches of task {training.settings.task.name} are not of one shape"
    if next(training.model.buffers(), None) is not None:
        return "the model has buffers"
    looking = next(filter(looks_at_weights, training.model.modules()), None)
    return None if looking is None else f"{type(looking).__name__} takes note of its weights"
