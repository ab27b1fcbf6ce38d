"""The gradients of a step, for each shape of a batch recorded once and replayed from then on."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ..objectives import Stackable

MAX_RECORDINGS = 64
"""So many shapes of batches have a recording; of more, the one goes that was not replayed for longest."""

Record = Callable[[Callable[[], None]], Callable[[], None]]
"""Records work, which reads and writes tensors in place; what does it again. RuntimeError if it cannot be."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Recording:
    """What is replayed, the batch that it reads, and the loss that it writes."""

    replay: Callable[[], None]
    batch: tuple[Tensor, ...]
    loss: Tensor


class RecordedGradients:
    """Computes the loss and the gradients of a model on whole batches, by recordings.

    All recordings write into one tensor for each weight's gradient. Where one cannot be made, the reason is
    told once, and each step is computed from then on as it would be without.
    """

    def __init__(
        self, model: nn.Module, objective: Stackable, record: Record, *, most: int = MAX_RECORDINGS
    ) -> None:
        self._model, self._objective = model, objective
        self._record, self._most = record, most
        self._recordings = OrderedDict[tuple[Any, ...], _Recording]()
        self._gradients: dict[nn.Parameter, Tensor] | None = None
        self.reason: str | None = None  # why nothing is recorded any more

    def __len__(self) -> int:
        return len(self._recordings)

    def take(self) -> Tensor:
        """The loss of the next batch, whose gradients the weights then have."""
        batch = self._objective.draw()
        if self.reason is None and (found := self._find(batch)) is not None:
            return self._replay(found, batch)
        return self._compute(batch)

    def _compute(self, batch: Sequence[Tensor]) -> Tensor:
        """The step as it is without recordings."""
        loss = self._objective.loss_of(self._model, *batch)
        loss.backward()
        return loss.detach()

    def _find(self, batch: Sequence[Tensor]) -> _Recording | None:
        """The recording for batches of this shape, made if there is none; None if it cannot be made."""
        key = tuple((rows.shape, rows.dtype) for rows in batch)
        if key not in self._recordings:
            try:
                self._recordings[key] = self._make(batch)
            except RuntimeError as error:
                self.reason = str(error).partition("\n")[0]
                self._recordings.clear()
                for weight in self._model.parameters():
                    weight.grad = None
                _log.warning("steps are not recorded as graphs: %s", self.reason)
                return None
            if len(self._recordings) > self._most:
                self._recordings.popitem(last=False)
        self._recordings.move_to_end(key)
        return self._recordings[key]

    def _make(self, batch: Sequence[Tensor]) -> _Recording:
        """A recording for batches of this shape."""
        own, loss = tuple(rows.clone() for rows in batch), torch.zeros((), device=batch[0].device)
        gradients = self._own_gradients(own)

        def work() -> None:
            for weight, gradient in gradients.items():
                weight.grad = gradient.zero_()
            loss.copy_(self._compute(own))

        return _Recording(self._record(work), own, loss)

    def _own_gradients(self, batch: Sequence[Tensor]) -> dict[nn.Parameter, Tensor]:
        """The tensors for gradients, of the weights that a step gives any."""
        if self._gradients is None:
            with torch.random.fork_rng(devices=[batch[0].device] if batch[0].is_cuda else []):
                self._compute(batch)
            weights = self._model.parameters()
            self._gradients = {each: torch.zeros_like(each) for each in weights if each.grad is not None}
        return self._gradients

    def _replay(self, found: _Recording, batch: Sequence[Tensor]) -> Tensor:
        """The loss of a batch, and its gradients, by a recording."""
        for own, rows in zip(found.batch, batch, strict=True):
            own.copy_(rows)
        found.replay()
        assert self._gradients is not None, "a recording was made"
        for weight, gradient in self._gradients.items():
            weight.grad = gradient
        return found.loss.clone()
