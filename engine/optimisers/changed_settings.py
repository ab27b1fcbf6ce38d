"""An optimiser whose settings change while its model trains, as [train] changes say; its state stays."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from ...studies.catalog.optimisers import OptimizerSettings
from ...studies.schema.training import CHANGEABLE, ParameterGroupSettings
from .build import build_optimizer


def change_settings(
    optimizer: torch.optim.Optimizer,
    settings: OptimizerSettings,
    model: nn.Module,
    groups: Sequence[ParameterGroupSettings],
) -> list[float]:
    """Have an optimiser go on with other settings; the highest rates of its groups, which stay so far.

    Groups have what those of an optimiser would that began with these settings.
    """
    begun = build_optimizer(settings, model, groups)
    for group, other in zip(optimizer.param_groups, begun.param_groups, strict=True):
        group.update({key: other[key] for key in CHANGEABLE if key != "lr" and key in other})
    return [group["lr"] for group in begun.param_groups]
