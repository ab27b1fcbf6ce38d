"""Optimisers and learning-rate schedules by the names of a study's [train] table."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import nn

from ...studies.schema.settings import OptimizerSettings, ScheduleSettings


def optimizer(settings: OptimizerSettings, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    """The optimiser of the settings, in its fused form: one pass over all weights a step."""
    match settings.name:
        case "adam" | "adamw":
            kind = torch.optim.Adam if settings.name == "adam" else torch.optim.AdamW
            return kind(
                parameters,
                lr=settings.lr,
                betas=settings.betas,
                eps=settings.eps,
                weight_decay=settings.weight_decay,
                fused=True,
            )
        case "adagrad":
            return torch.optim.Adagrad(
                parameters, lr=settings.lr, eps=settings.eps, weight_decay=settings.weight_decay
            )
        case "sgd":
            return torch.optim.SGD(parameters, lr=settings.lr, weight_decay=settings.weight_decay, fused=True)


def schedule(settings: ScheduleSettings, total_steps: int) -> Callable[[int], float]:
    """The factor on the learning rate at a step counted from 1: a linear rise to 1, then the rule.

    "inverse_sqrt" falls as (warmup / step) ** 0.5 (Vaswani et al. 2017, equation 3, scaled to a highest value
    of 1); "linear" and "cosine" fall to 0 at the last step.
    """
    warmup = settings.warmup

    def factor(step: int) -> float:
        if step < warmup:
            return step / warmup
        share = (step - warmup) / max(total_steps - warmup, 1)
        match settings.name:
            case "inverse_sqrt":
                return math.sqrt(warmup / step)
            case "linear":
                return 1.0 - share
            case "cosine":
                return 0.5 * (1.0 + math.cos(math.pi * share))
            case _:
                return 1.0

    return factor


def clip_grad_norm_per_tensor(parameters: Iterable[nn.Parameter], norm: float) -> None:
    """Scale the gradient of each weight down to this norm where it is above it (Sukhbaatar et al. 2019)."""
    gradients = [weights.grad for weights in parameters if weights.grad is not None]
    scales = [(norm / (own + 1e-6)).clamp(max=1.0) for own in torch._foreach_norm(gradients)]  # pyright: ignore[reportPrivateImportUsage]
    torch._foreach_mul_(gradients, scales)  # pyright: ignore[reportPrivateImportUsage]


@dataclass(slots=True, kw_only=True)
class Plateau:
    """A factor on the learning rate, a tenth of what it was whenever a loss has stopped to improve.

    `waited` counts the epochs since the best loss or the last fall; `patience` of them make it fall.
    """

    patience: int
    factor: float = 1.0
    best: float = math.inf
    waited: int = 0

    def record(self, loss: float) -> None:
        """Take the loss of an epoch."""
        if loss < self.best:
            self.best, self.waited = loss, 0
            return
        self.waited += 1
        if self.waited >= self.patience:
            self.factor, self.waited = self.factor / 10, 0

    def state(self) -> dict[str, Any]:
        """Everything needed to go on, as plain numbers."""
        return asdict(self)
