"""Measures of gradients over an epoch: their norm, and their noise."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import torch
from torch import Tensor, nn

from ..core.placement import to_device

GRADIENT_NORM = "gradient_norm"
"""The mean over the steps of an epoch of the norm of all gradients together, before they are clipped."""

GRADIENT_NOISE = "gradient_noise"
"""The simple noise scale of an epoch, in sequences: about the batch beyond which more sequences bring little.

B = tr Σ / |G|² (McCandlish et al. 2018, An Empirical Model of Large-Batch Training, equation 2.9), where Σ is
the covariance of the gradient of one sequence. Appendix A.1 estimates both from the gradients of batches of
two sizes, here of the parts of a step and of the whole step:

    |G|²   = (b_step |G_step|² − b_part |G_part|²) / (b_step − b_part)
    tr Σ   = (|G_part|² − |G_step|²) / (1 / b_part − 1 / b_step)

Each is averaged over the steps of the epoch before they are divided, since a ratio of single estimates would
be biased.
"""


class GradientMeasures:
    """Measures over the steps of an epoch; gradients are only read."""

    def __init__(self, asked: Collection[str], model: nn.Module, *, batch_size: int, parts: int) -> None:
        self._asked, self._model = asked, model
        self._step, self._part = batch_size, batch_size // parts
        self._parts = parts
        self._before: list[Tensor | None] = []
        self._parts_square: Tensor | float = 0.0
        self.begin_epoch()

    def begin_epoch(self) -> None:
        """Reset the sums before the first step of an epoch."""
        self._norms: Tensor | float = 0.0
        self._signal: Tensor | float = 0.0
        self._noise: Tensor | float = 0.0

    @torch.no_grad()
    def after_part(self, part: int) -> None:
        """Take the gradients of one of the parts of a step, each of which adds its own."""
        if GRADIENT_NOISE not in self._asked:
            return
        if part == 0:
            self._before = [None for _ in self._model.parameters()]
            self._parts_square = 0.0
        found = [weight.grad for weight in self._model.parameters()]
        own = [
            gradient if before is None else gradient - before
            for gradient, before in zip(found, self._before, strict=True)
            if gradient is not None
        ]
        # a part adds a share of the mean over it: 1 / parts
        self._parts_square = self._parts_square + _square(own) * self._parts
        last = part + 1 == self._parts
        self._before = [None if last or each is None else each.clone() for each in found]

    @torch.no_grad()
    def after_backward(self) -> None:
        """Take the gradients of a whole step, before anything is done with them."""
        square = _square([weight.grad for weight in self._model.parameters() if weight.grad is not None])
        self._norms = self._norms + square.sqrt()
        if GRADIENT_NOISE in self._asked:
            part, step = self._part, self._step
            self._signal = self._signal + (step * square - part * self._parts_square) / (step - part)
            self._noise = self._noise + (self._parts_square - square) / (1 / part - 1 / step)

    def metrics(self, steps: int) -> dict[str, float]:
        """Return the metrics of an epoch; no noise scale where the estimate of |G|² is not above 0."""
        found: dict[str, float] = {}
        if GRADIENT_NORM in self._asked:
            found[GRADIENT_NORM] = float(self._norms) / steps
        if GRADIENT_NOISE in self._asked and float(self._signal) > 0:
            found[GRADIENT_NOISE] = float(self._noise) / float(self._signal)
        return found

    def state(self) -> dict[str, Any]:
        """Everything needed to resume between two steps."""
        return {"norms": self._norms, "signal": self._signal, "noise": self._noise}

    def restore(self, state: dict[str, Any]) -> None:
        """Resume from a state, whose tensors may be on any device."""
        state = to_device(state, next(self._model.parameters()).device)
        self._norms, self._signal, self._noise = state["norms"], state["signal"], state["noise"]


def _square(gradients: list[Tensor]) -> Tensor:
    return torch.stack([gradient.double().square().sum() for gradient in gradients]).sum()
