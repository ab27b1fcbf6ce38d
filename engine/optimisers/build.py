"""Construction of the optimiser that a [train] table names.

It is an optimiser of torch, of activemem, or of a plug-in. Groups of weights, selected by name patterns, have
their own learning rates and decays, or are frozen.

Lion takes steps of constant size, along the sign of averaged gradients (Chen et al. 2023, algorithm 2). Muon
orthogonalises the updates of matrices and updates all other weights like AdamW (Jordan et al. 2024). It
scales its updates by 0.2 √max(outputs, inputs). This matches AdamW's typical update size, so both share one
learning rate (Liu et al. 2025, section 2.2).
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.adam import adam

from ...blocks.core.initialisation import Weight, WeightRole, find_weights
from ...blocks.core.operations import avoid_compiler_import
from ...blocks.models.model import BaseModel
from ...errors import ActivememError
from ...plugins import plugin_errors
from ...studies.catalog.optimisers import (
    OPTIMIZERS,
    OptimizerSettings,
    OwnOptimizerSettings,
    PluginOptimizer,
)
from ...studies.schema.settings import ParameterGroupSettings, TrialSettings
from ..core.models import meta_model

avoid_compiler_import()


class Lion(torch.optim.Optimizer):
    """Lion optimiser with AdamW's weight decay; it steps along the sign of momentum mixed with gradient."""

    def __init__(
        self,
        groups: Iterable[dict[str, Any]],
        *,
        lr: float,
        betas: tuple[float, float],
        weight_decay: float,
    ) -> None:
        super().__init__(groups, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # pyright: ignore[reportIncompatibleMethodOverride] -- torch's overloads
        """Update every weight that has a gradient."""
        assert closure is None, "no closure: the gradients are already computed"
        for group in self.param_groups:
            lr, (first, second) = group["lr"], group["betas"]
            for weight in group["params"]:
                if weight.grad is None:
                    continue
                if not (state := self.state[weight]):
                    state["momentum"] = torch.zeros_like(weight)
                momentum: Tensor = state["momentum"]
                step = torch.lerp(weight.grad, momentum, first).sign_()
                weight.mul_(1 - lr * group["weight_decay"]).add_(step, alpha=-lr)
                momentum.lerp_(weight.grad, 1 - second)


class Adam(torch.optim.Adam):
    """Torch's fused Adam, with `take_step` as a faster version of `step`."""

    @torch.no_grad()
    def take_step(self) -> None:
        """Update every weight that has a gradient, without the hooks and checks of torch's slower `step`."""
        groups = [[each for each in group["params"] if each.grad is not None] for group in self.param_groups]
        states = [[self.state.get(weight, {}) for weight in weights] for weights in groups]
        if not all(map(all, states)):
            # this creates the states; the wrappers around the function would import torch's compiler
            inspect.unwrap(torch.optim.Adam.step)(self)
            return
        for group, weights, kept in zip(self.param_groups, groups, states, strict=True):
            first, second = group["betas"]
            adam(
                weights,
                [weight.grad for weight in weights],
                [state["exp_avg"] for state in kept],
                [state["exp_avg_sq"] for state in kept],
                [],
                [state["step"] for state in kept],
                fused=True,
                amsgrad=False,
                maximize=False,
                beta1=first,
                beta2=second,
                lr=group["lr"],
                eps=group["eps"],
                weight_decay=group["weight_decay"],
                decoupled_weight_decay=group["decoupled_weight_decay"],
            )


_COEFFICIENTS = (3.4445, -4.7750, 2.0315)
_ITERATIONS = 5
_EPSILON = 1e-7
_RMS_OF_ADAMW = 0.2


def muon_maps(model: nn.Module) -> dict[nn.Parameter, Weight]:
    """Return the weights of a model's body that Muon can update, with their roles and shapes."""
    weights = find_weights(model.get_submodule("body"))
    return {each: found for each, found in weights.items() if found.role is WeightRole.MATRIX}


class Muon(torch.optim.Optimizer):
    """Optimiser that uses Muon for some weights and AdamW for all others.

    The weights in `maps` are updated by Muon. A weight may hold several matrices, such as queries, keys and
    values. Each matrix has its own update.
    """

    def __init__(
        self,
        maps: Mapping[nn.Parameter, Weight],
        rest: Iterable[dict[str, Any]],
        *,
        lr: float,
        momentum: float,
        betas: tuple[float, float],
        eps: float,
        weight_decay: float,
    ) -> None:
        self._maps = dict(maps)
        groups = [{"params": list(maps), "maps": True}, *({**group, "maps": False} for group in rest)]
        defaults = {"lr": lr, "momentum": momentum, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        super().__init__([group for group in groups if group["params"]], defaults)

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # pyright: ignore[reportIncompatibleMethodOverride] -- torch's overloads
        """Update every weight that has a gradient."""
        assert closure is None, "no closure: the gradients are already computed"
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is None:
                    continue
                weight.mul_(1 - group["lr"] * group["weight_decay"])
                if group["maps"]:
                    self._step_maps(weight, weight.grad, self._maps[weight], group)
                else:
                    self._step_as_adamw(weight, weight.grad, group)

    def _step_maps(self, weight: Tensor, gradient: Tensor, found: Weight, group: dict[str, Any]) -> None:
        if not (state := self.state[weight]):
            state["momentum"] = torch.zeros_like(weight)
        momentum: Tensor = state["momentum"]
        momentum.lerp_(gradient, 1 - group["momentum"])
        # Nesterov's momentum, as in the program of Jordan et al. (2024)
        direction = gradient.lerp(momentum, group["momentum"])
        for part, step in zip(found.split_maps(weight), found.split_maps(direction), strict=True):
            matrix = orthogonalise(step.reshape(len(step), -1))  # (outputs, k * inputs) of a convolution
            size = _RMS_OF_ADAMW * math.sqrt(max(matrix.shape))
            part.add_(matrix.reshape(part.shape), alpha=-group["lr"] * size)

    def _step_as_adamw(self, weight: Tensor, gradient: Tensor, group: dict[str, Any]) -> None:
        state, (first, second) = self.state[weight], group["betas"]
        if not state:
            state.update(steps=0, mean=torch.zeros_like(weight), square=torch.zeros_like(weight))
        state["steps"] += 1
        state["mean"].lerp_(gradient, 1 - first)
        state["square"].mul_(second).addcmul_(gradient, gradient, value=1 - second)
        scale = (state["square"] / (1 - second ** state["steps"])).sqrt_().add_(group["eps"])
        weight.addcdiv_(state["mean"], scale, value=-group["lr"] / (1 - first ** state["steps"]))


def orthogonalise(matrix: Tensor) -> Tensor:
    """Orthogonalise a matrix.

    Its singular vectors stay, and its singular values move to 0.7–1.2. This takes five Newton-Schulz
    iterations of a polynomial that is steep at 0 (Jordan et al. 2024).
    """
    a, b, c = _COEFFICIENTS
    # the Gram matrix of the shorter side is the smaller one
    tall = matrix.shape[0] > matrix.shape[1]
    x = matrix.T if tall else matrix
    # the iterations need singular values of at most 1, and this norm is never below the largest one
    x = x / x.norm().clamp(min=_EPSILON)
    for _ in range(_ITERATIONS):
        gram = x @ x.T
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.T if tall else x


_SHOWN = 6
"""The number of weight names that an error shows for a pattern that matches no weight."""


class ParameterGroupError(ActivememError):
    """Error for groups that match no weight, or that freeze all weights."""


def check_groups(all_settings: Iterable[TrialSettings]) -> None:
    """Raise ParameterGroupError with all models of these trials in which a group matches no weight."""
    distinct = {
        (settings.model, settings.task.interface, settings.train.groups): settings
        for settings in all_settings
        if settings.train.groups
    }
    faults: list[str] = []
    for settings in distinct.values():
        try:
            assign_groups(
                [name for name, _ in meta_model(settings).named_parameters()], settings.train.groups
            )
        except ParameterGroupError as error:
            faults.append(f"  {settings.model.recipe}: {error}")
    if faults:
        raise ParameterGroupError(
            "\n".join(["the parameter groups of [train] do not fit these models", *faults])
        )


def assign_groups(names: Collection[str], groups: Sequence[ParameterGroupSettings]) -> dict[str, int | None]:
    """Map each weight name to the index of its parameter group, or to None.

    It is the first group whose pattern matches the name. Raise ParameterGroupError with all patterns that
    match no remaining weight, and if all weights are frozen.
    """
    chosen = {
        name: next((place for place, each in enumerate(groups) if fnmatchcase(name, each.match)), None)
        for name in names
    }
    taken = set(chosen.values())
    faults = [_fault(names, each) for place, each in enumerate(groups) if place not in taken]
    if not faults and all(place is not None and groups[place].freeze for place in chosen.values()):
        faults = ["expected at least one weight to train, got only frozen weights"]
    if faults:
        raise ParameterGroupError("[train] groups: " + "; ".join(faults))
    return chosen


def _fault(names: Collection[str], group: ParameterGroupSettings) -> str:
    if any(fnmatchcase(name, group.match) for name in names):
        return f"'{group.match}' matches only weights of earlier groups"
    known = [*names][:_SHOWN]
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return f"expected a pattern that matches one of the weights {', '.join(known)}{more}, got '{group.match}'"


def regroup(
    optimizer: torch.optim.Optimizer, model: nn.Module, groups: Sequence[ParameterGroupSettings]
) -> None:
    """Give a new optimiser the parameter groups of the [train] table, and freeze the frozen weights.

    Raise ParameterGroupError as `assign_groups` does, and also if a group has a weight decay but the
    optimiser has none.
    """
    weights = dict(model.named_parameters())
    chosen = assign_groups(weights, groups)
    own = {weights[name]: groups[place] for name, place in chosen.items() if place is not None}
    divided = list[dict[str, Any]]()
    for group in optimizer.param_groups:
        parts: dict[ParameterGroupSettings | None, list[nn.Parameter]] = {}
        for weight in group["params"]:
            parts.setdefault(own.get(weight), []).append(weight)
        divided += [
            {**group, "params": members, **_changes(group, settings)}
            for settings, members in parts.items()
            if settings is None or not settings.freeze
        ]
    optimizer.param_groups[:] = divided
    for weight, group in own.items():
        weight.requires_grad_(not group.freeze)
        if group.freeze:
            optimizer.state.pop(weight, None)  # Adagrad has created a state for it already


def _changes(group: Mapping[str, Any], settings: ParameterGroupSettings | None) -> dict[str, Any]:
    if settings is None:
        return {}
    if settings.weight_decay is None:
        return {"lr": group["lr"] * settings.lr_scale}
    if "weight_decay" not in group:
        raise ParameterGroupError(
            f"[train] groups: '{settings.match}' has weight decay, but the optimizer has none"
        )
    return {"lr": group["lr"] * settings.lr_scale, "weight_decay": settings.weight_decay}


class OptimizerError(ActivememError):
    """Error for a plug-in's optimiser that leaves out or repeats weights."""


def build_optimizer(
    settings: OptimizerSettings, model: nn.Module, groups: Sequence[ParameterGroupSettings] = ()
) -> torch.optim.Optimizer:
    """Build the optimiser of a model.

    Use torch's fused kernels if possible. Groups of weights may have their own learning rates and decays, or
    be frozen. Raise OptimizerError if a plug-in's optimiser leaves out or repeats weights, PluginError if it
    raises an exception or needs a closure, and ParameterGroupError for impossible groups.
    """
    if isinstance(settings, PluginOptimizer):
        with plugin_errors(OPTIMIZERS.kind, settings.name, type(settings)):
            made = settings.build(model)
            _check_step(made)
        _check_covers(settings.name, made, model)
    else:
        assert isinstance(settings, OwnOptimizerSettings), f"{settings.name} has settings of its own"
        made = _build_own(settings, model)
    scale_rates(made, model)
    if groups:
        regroup(made, model, groups)
    return made


def _build_own(settings: OwnOptimizerSettings, model: nn.Module) -> torch.optim.Optimizer:
    maps = muon_maps(model) if settings.name == "muon" else {}
    groups, lr, decay = _groups(model, settings, without=maps), settings.lr, settings.weight_decay
    match settings.name:
        case "adam" | "adamw":
            return Adam(
                groups,
                lr,
                settings.betas,
                settings.eps,
                decay,
                fused=True,
                decoupled_weight_decay=settings.name == "adamw",
            )
        case "adagrad":  # torch's foreach option needs two copies of the weights on a GPU
            return torch.optim.Adagrad(groups, lr, eps=settings.eps, weight_decay=decay, foreach=False)
        case "sgd":
            # torch's foreach and fused steps need a momentum for every weight or for none, but some weights
            # get their first gradient later than others
            return torch.optim.SGD(groups, lr, settings.own_momentum, weight_decay=decay, foreach=False)
        case "lion":
            return Lion(groups, lr=lr, betas=settings.betas, weight_decay=decay)
        case "adafactor":
            return torch.optim.Adafactor(groups, lr, weight_decay=decay)
        case _:
            return Muon(
                maps,
                groups,
                lr=lr,
                momentum=settings.own_momentum,
                betas=settings.betas,
                eps=settings.eps,
                weight_decay=decay,
            )


def _groups(
    model: nn.Module, settings: OwnOptimizerSettings, *, without: Collection[nn.Parameter]
) -> list[dict[str, Any]]:
    weights = {each: found for each, found in find_weights(model).items() if each not in without}
    if settings.decay_norms:
        return [{"params": list(weights)}]
    decaying = [each for each, found in weights.items() if found.role.decays]
    others = [each for each, found in weights.items() if not found.role.decays]
    return [{"params": decaying}, {"params": others, "weight_decay": 0.0}]


def _check_covers(name: str, made: object, model: nn.Module) -> None:
    if not isinstance(made, torch.optim.Optimizer):
        raise OptimizerError(f"{name}: expected a torch.optim.Optimizer, got {type(made).__name__}")
    moved = list(chain.from_iterable(group["params"] for group in made.param_groups))
    left = [path for path, weight in model.named_parameters() if not any(weight is one for one in moved)]
    if left or len(moved) != len(list(model.parameters())):
        got = f"none of {', '.join(left)}" if left else f"{len(moved)} weights"
        raise OptimizerError(f"{name}: expected every weight of the model once, got {got}")


def _check_step(made: object) -> None:
    if isinstance(made, torch.optim.Optimizer):
        try:
            inspect.signature(made.step).bind()
        except TypeError as error:
            raise TypeError(f"step: {error}; closures are not supported") from None


def scale_rates(optimizer: torch.optim.Optimizer, model: torch.nn.Module) -> None:
    """Divide the learning rates of the body's matrices by the model's relative width (μP).

    Matrices with fewer inputs than the base width, such as those within narrow heads, keep their rates. The
    optimiser must not have taken a step.
    """
    if not isinstance(model, BaseModel) or (base := model.config.settings.mup) is None:
        return
    weights = find_weights(model.get_submodule("body"))
    # weights that are not matrices have a fan-in of 1
    maps = {each for each, found in weights.items() if found.fan_in >= max(base, 2)}
    groups = []
    for group in optimizer.param_groups:
        inside = [weight for weight in group["params"] if weight in maps]
        others = [weight for weight in group["params"] if weight not in maps]
        scaled = {**group, "params": inside, "lr": group["lr"] / model.config.settings.relative_width}
        groups += [each for each in (scaled, {**group, "params": others}) if each["params"]]
    optimizer.param_groups[:] = groups
