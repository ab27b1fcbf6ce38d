"""Optimisers by the names of a study's [train] table."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import nn

from ...studies.schema.settings import OptimizerSettings


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


def clip_grad_norm_per_tensor(parameters: Iterable[nn.Parameter], norm: float) -> None:
    """Scale the gradient of each weight down to this norm where it is above it (Sukhbaatar et al. 2019)."""
    for weights in parameters:
        nn.utils.clip_grad_norm_(weights, norm)
