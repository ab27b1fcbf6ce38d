"""The gradients of one training, for each shape of a batch recorded once and replayed from then on."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import torch
from torch import Tensor, nn

from ..objectives import Stackable
from ..objectives.base import on_device
from .recorded_work import RecordedWork, Recordings, Work, require_same_weights


class RecordedGradients:
    """Computes the loss and the gradients of a model on whole batches, by recordings.

    All recordings write into one tensor for each weight's gradient. Where one cannot be made, each step is
    computed from then on as it would be without.
    """

    def __init__(self, model: nn.Module, objective: Stackable, recordings: Recordings) -> None:
        self._model, self._objective = model, objective
        self._device = next(model.parameters()).device
        self._recorded, self._loss = RecordedWork(recordings), next(model.parameters()).new_zeros(())
        self._gradients: dict[nn.Parameter, Tensor] | None = None

    def __len__(self) -> int:
        return len(self._recorded)

    @property
    def reason(self) -> str | None:
        """Why nothing is recorded any more."""
        return self._recorded.reason

    def take(self) -> Tensor:
        """The loss of the next batch, whose gradients the weights then have."""
        batch = [on_device(rows, self._device) for rows in self._objective.draw()]
        if not self._recorded.do(batch, self._make_work, changed=self._buffers):
            for weight in self._model.parameters():
                weight.grad = None
            return self._compute(batch)
        assert self._gradients is not None, "a recording was made"
        for weight, gradient in self._gradients.items():
            weight.grad = gradient
        return self._loss.clone()

    @cached_property
    def _buffers(self) -> list[Tensor]:
        """What a pass may change beside gradients, as running means of a block of one's own."""
        return list(self._model.buffers())

    def _compute(self, batch: Sequence[Tensor]) -> Tensor:
        """The step as it is without recordings."""
        loss = self._objective.loss_of(self._model, *batch)
        loss.backward()
        return loss.detach()

    def _make_work(self, batch: tuple[Tensor, ...]) -> Work:
        """What computes the loss of a batch and its gradients, in place."""
        gradients = self._own_gradients(batch)

        def work() -> None:
            for weight, gradient in gradients.items():
                weight.grad = gradient.zero_()
            self._loss.copy_(self._compute(batch))

        return work

    def _own_gradients(self, batch: Sequence[Tensor]) -> dict[nn.Parameter, Tensor]:
        """The tensors for gradients, of the weights that a step gives any: the same at each length."""
        for weight in self._model.parameters():
            weight.grad = None
        with torch.random.fork_rng(devices=[self._device] if self._device.type == "cuda" else []):
            self._compute(batch)
        given = [each for each in self._model.parameters() if each.grad is not None]
        if self._gradients is None:
            self._gradients = {each: torch.zeros_like(each) for each in given}
        require_same_weights(self._gradients, given)
        return self._gradients
