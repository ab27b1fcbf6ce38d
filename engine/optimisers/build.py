"""Construction of the optimiser of a study's [train] table: torch's, activemem's, or a plug-in's."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import chain
from math import prod
from typing import Any

import torch
from torch import nn

from ...blocks.core.initialisation import find_weights
from ...blocks.models.base_model import BaseModel
from ...errors import ActivememError
from ...studies.catalog.optimisers import OptimizerSettings, OwnOptimizerSettings, PluginOptimizer
from ...studies.planning.memory_estimates import NUMBER, WeightState
from ...studies.schema.settings import TrialSettings
from ...studies.schema.training import CHANGEABLE, ParameterGroupSettings
from ..core.models import meta_model
from .parameter_groups import assign_groups, regroup
from .rules import SGD, Lion, Muon, muon_maps


class OptimizerError(ActivememError):
    """A plug-in's optimiser that does not have every weight exactly once."""


def build_optimizer(
    settings: OptimizerSettings, model: nn.Module, groups: Sequence[ParameterGroupSettings] = ()
) -> torch.optim.Optimizer:
    """Build the optimiser of all weights of a model, fused if possible.

    Groups of weights may have their own learning rates and decays, or be frozen. Raise OptimizerError if a
    plug-in's optimiser leaves out or repeats weights, and ParameterGroupError for impossible groups.
    """
    if isinstance(settings, PluginOptimizer):
        made = _checked(settings.name, settings.build(model), model)
    else:
        assert isinstance(settings, OwnOptimizerSettings), f"{settings.name} has settings of its own"
        made = _RULES[settings.name](settings, model)
    scale_rates(made, model)
    if groups:
        regroup(made, model, groups)
    return made


def keep_steps_on_cpu(optimizer: torch.optim.Optimizer) -> None:
    """Move step counters that are read in Python back to the CPU after a checkpoint was loaded.

    Torch restores them to the device onto which the checkpoint was loaded; on a GPU every read would wait for
    it.
    """
    for group in optimizer.param_groups:
        if group.get("fused") or group.get("capturable"):
            continue
        for weight in group["params"]:
            step = optimizer.state[weight].get("step") if weight in optimizer.state else None
            if isinstance(step, torch.Tensor):
                optimizer.state[weight]["step"] = step.cpu()


def _adam(settings: OwnOptimizerSettings, model: nn.Module) -> torch.optim.Optimizer:
    rule = torch.optim.Adam if settings.name == "adam" else torch.optim.AdamW
    groups, decay = _groups(model, settings), settings.weight_decay
    return rule(groups, settings.lr, settings.betas, settings.eps, decay, fused=True)


def _adagrad(settings: OwnOptimizerSettings, model: nn.Module) -> torch.optim.Optimizer:
    """Build Adagrad without torch's foreach option, which needs two copies of the weights on a GPU."""
    groups, decay = _groups(model, settings), settings.weight_decay
    return torch.optim.Adagrad(groups, settings.lr, eps=settings.eps, weight_decay=decay, foreach=False)


def _sgd(settings: OwnOptimizerSettings, model: nn.Module) -> torch.optim.Optimizer:
    groups, decay = _groups(model, settings), settings.weight_decay
    return SGD(groups, settings.lr, settings.own_momentum, weight_decay=decay, fused=True)


def _lion(settings: OwnOptimizerSettings, model: nn.Module) -> torch.optim.Optimizer:
    groups, decay = _groups(model, settings), settings.weight_decay
    return Lion(groups, lr=settings.lr, betas=settings.betas, weight_decay=decay)


def _adafactor(settings: OwnOptimizerSettings, model: nn.Module) -> torch.optim.Optimizer:
    groups, decay = _groups(model, settings), settings.weight_decay
    return torch.optim.Adafactor(groups, settings.lr, weight_decay=decay)


def _muon(settings: OwnOptimizerSettings, model: nn.Module) -> torch.optim.Optimizer:
    maps = muon_maps(model)
    return Muon(
        maps,
        _groups(model, settings, without=maps),
        lr=settings.lr,
        momentum=settings.own_momentum,
        betas=settings.betas,
        eps=settings.eps,
        weight_decay=settings.weight_decay,
    )


_RULES: Mapping[str, Callable[[OwnOptimizerSettings, nn.Module], torch.optim.Optimizer]] = {
    "adam": _adam,
    "adamw": _adam,
    "adagrad": _adagrad,
    "sgd": _sgd,
    "lion": _lion,
    "adafactor": _adafactor,
    "muon": _muon,
}


def _groups(
    model: nn.Module, settings: OwnOptimizerSettings, *, without: Collection[nn.Parameter] = ()
) -> list[dict[str, Any]]:
    weights = {each: found for each, found in find_weights(model).items() if each not in without}
    if settings.decay_norms:
        return [{"params": list(weights)}]
    decaying = [each for each, found in weights.items() if found.role.decays]
    others = [each for each, found in weights.items() if not found.role.decays]
    return [{"params": decaying}, {"params": others, "weight_decay": 0.0}]


def _checked(name: str, made: object, model: nn.Module) -> torch.optim.Optimizer:
    if not isinstance(made, torch.optim.Optimizer):
        raise OptimizerError(f"{name}: expected a torch.optim.Optimizer, got {type(made).__name__}")
    moved = list(chain.from_iterable(group["params"] for group in made.param_groups))
    left = [path for path, weight in model.named_parameters() if not any(weight is one for one in moved)]
    if left or len(moved) != len(list(model.parameters())):
        got = f"{', '.join(left)} left out" if left else f"{len(moved)} weights"
        raise OptimizerError(f"{name}: expected every weight of the model once, got {got}")
    return made


def change_settings(
    optimizer: torch.optim.Optimizer,
    settings: OptimizerSettings,
    model: nn.Module,
    groups: Sequence[ParameterGroupSettings],
) -> list[float]:
    """Change an optimiser's settings; return the highest rates of its groups, which stay unchanged.

    Afterwards the groups have the settings of a new optimiser.
    """
    begun = build_optimizer(settings, model, groups)
    for group, other in zip(optimizer.param_groups, begun.param_groups, strict=True):
        group.update({key: other[key] for key in CHANGEABLE if key != "lr" and key in other})
    return [group["lr"] for group in begun.param_groups]


def scale_rates(optimizer: torch.optim.Optimizer, model: torch.nn.Module) -> None:
    """Divide the learning rates of the body's matrices by the model's relative width (μP).

    This holds for matrices whose number of inputs is at least the base width; maps within narrow heads are
    excluded. The optimiser must not have taken a step.
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


def weight_state(settings: TrialSettings) -> WeightState:
    """Return the size of a trial's frozen weights and of the optimiser state of the others.

    Step counters, in some rules 4 bytes a weight, are not counted. Raise ParameterGroupError.
    """
    model, groups, optimizer = meta_model(settings), settings.train.groups, settings.train.optimizer
    weights = dict(model.named_parameters())
    places = assign_groups(weights, groups).items() if groups else ()
    frozen = {weights[name] for name, place in places if place is not None and groups[place].freeze}
    maps = muon_maps(model) if optimizer.name == "muon" else {}
    kept = (
        _numbers_kept(optimizer, weight, is_map=weight in maps)
        for weight in weights.values()
        if weight not in frozen
    )
    return WeightState(frozen=sum(weight.numel() for weight in frozen), bytes=NUMBER * sum(kept))


def _numbers_kept(optimizer: OptimizerSettings, weight: nn.Parameter, *, is_map: bool) -> int:
    """Return the number of state values that a rule keeps for a weight.

    A plug-in's rule declares a maximum.
    """
    if isinstance(optimizer, OwnOptimizerSettings) and optimizer.name == "muon" and is_map:
        return weight.numel()
    if isinstance(optimizer, OwnOptimizerSettings) and optimizer.name == "adafactor" and weight.dim() > 1:
        *rest, rows, columns = weight.shape
        return prod(rest) * (rows + columns)
    return optimizer.state_per_weight * weight.numel()
