"""The optimiser of a study's [train] table, built from its entry in the catalog."""

from __future__ import annotations

from collections.abc import Iterable
from pkgutil import resolve_name

import torch
from torch import nn

from ...studies.catalog.optimisers import OPTIMIZERS
from ...studies.schema.settings import OptimizerSettings


def optimizer(settings: OptimizerSettings, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    """The optimiser of the settings, where possible in its fused form: one pass over all weights a step."""
    entry = OPTIMIZERS[settings.name]
    given = {key: getattr(settings, key) for key in entry.keys}
    return resolve_name(entry.path)(parameters, **given, **({"fused": True} if entry.fused else {}))


def clip_grad_norm_per_tensor(parameters: Iterable[nn.Parameter], norm: float) -> None:
    """Scale the gradient of each weight down to this norm where it is above it (Sukhbaatar et al. 2019)."""
    for weights in parameters:
        nn.utils.clip_grad_norm_(weights, norm)
