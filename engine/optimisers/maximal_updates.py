"""Learning rates by width, as maximal updates ask of rules such as Adam (Yang et al. 2022, Table 8)."""

from __future__ import annotations

import torch

from ...blocks import Initialisable
from ...blocks.models.base_model import BaseModel


def scale_rates(optimizer: torch.optim.Optimizer, model: torch.nn.Module) -> None:
    """Give the maps of a body the rate of their group over the model's relative width; others keep theirs.

    A map is a weight of at least two dimensions that adds up at least as many inputs as the width where
    maximal updates change nothing, which leaves out convolutions of single channels, biases of several maps
    and maps within narrow heads. The optimiser has taken no step.
    """
    if not isinstance(model, BaseModel) or (base := model.config.mup) is None:
        return
    maps = {
        weight
        for module in model.get_submodule("body").modules()
        for weight in module.parameters(recurse=False)
        if weight.dim() > 1 and _inputs_of(module, weight) >= base
    }
    groups = []
    for group in optimizer.param_groups:
        inside = [weight for weight in group["params"] if weight in maps]
        others = [weight for weight in group["params"] if weight not in maps]
        scaled = {**group, "params": inside, "lr": group["lr"] / model.config.relative_width}
        groups += [each for each in (scaled, {**group, "params": others}) if each["params"]]
    optimizer.param_groups[:] = groups


def _inputs_of(module: torch.nn.Module, weight: torch.nn.Parameter) -> int:
    """How many inputs an output of the weight adds up."""
    return module.fan_in(weight) if isinstance(module, Initialisable) else weight[0].numel()
