"""Learning rates by width, as maximal updates ask of rules such as Adam (Yang et al. 2022, Table 8)."""

from __future__ import annotations

import torch

from ...blocks.core.weight_roles import find_weights
from ...blocks.models.base_model import BaseModel


def scale_rates(optimizer: torch.optim.Optimizer, model: torch.nn.Module) -> None:
    """Divide the rates of a body's matrices by the model's relative width; all others keep theirs.

    Scaled are matrices that add up at least as many inputs as the width where maximal updates change nothing.
    Maps within narrow heads are none of them. The optimiser has taken no step.
    """
    if not isinstance(model, BaseModel) or (base := model.config.mup) is None:
        return
    weights = find_weights(model.get_submodule("body"))
    maps = {each for each, found in weights.items() if found.fan_in >= max(base, 2)}
    groups = []
    for group in optimizer.param_groups:
        inside = [weight for weight in group["params"] if weight in maps]
        others = [weight for weight in group["params"] if weight not in maps]
        scaled = {**group, "params": inside, "lr": group["lr"] / model.config.relative_width}
        groups += [each for each in (scaled, {**group, "params": others}) if each["params"]]
    optimizer.param_groups[:] = groups
