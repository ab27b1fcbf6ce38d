"""Groups of weights, selected by name patterns, with their own learning rates and decays, or frozen."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from math import prod
from typing import Any

import torch
from torch import nn

from ...errors import ActivememError
from ...studies.schema.settings import TrialSettings
from ...studies.schema.training import ParameterGroupSettings
from ..core.models import meta_model

_SHOWN = 6
"""The number of weight names in an error about a pattern that matches none."""


class ParameterGroupError(ActivememError):
    """Groups of weights that a model lacks, or that freeze all its weights."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSize:
    """The size of a group: its numbers of weight tensors and parameters, and all parameters (`of`)."""

    group: ParameterGroupSettings
    weights: int
    numbers: int
    of: int


def group_sizes(all_settings: Iterable[TrialSettings]) -> list[GroupSize]:
    """Return the size of each group in each model of these trials; nothing is allocated.

    Raise ParameterGroupError with all models that lack a group.
    """
    distinct = {
        (settings.model, settings.task.interface, settings.train.groups): settings
        for settings in all_settings
        if settings.train.groups
    }
    found: list[GroupSize] = []
    faults: list[str] = []
    for settings in distinct.values():
        try:
            found += _group_sizes(settings)
        except ParameterGroupError as error:
            faults.append(f"  {settings.model.recipe}: {error}")
    if faults:
        raise ParameterGroupError("\n".join(["these models cannot be trained in groups", *faults]))
    return found


def _group_sizes(settings: TrialSettings) -> list[GroupSize]:
    groups = settings.train.groups
    shapes = {name: weight.shape for name, weight in meta_model(settings).named_parameters()}
    chosen = assign_groups(shapes, groups)
    members = [[name for name, place in chosen.items() if place == each] for each in range(len(groups))]
    return [
        GroupSize(
            group=group,
            weights=len(names),
            numbers=sum(prod(shapes[name]) for name in names),
            of=sum(map(prod, shapes.values())),
        )
        for group, names in zip(groups, members, strict=True)
    ]


def assign_groups(names: Collection[str], groups: Sequence[ParameterGroupSettings]) -> dict[str, int | None]:
    """Return the index of the first group that matches each weight; None for the rest.

    Raise ParameterGroupError with all patterns that match no remaining weight, and if all weights are frozen.
    """
    chosen = {
        name: next((place for place, each in enumerate(groups) if fnmatchcase(name, each.match)), None)
        for name in names
    }
    taken = set(chosen.values())
    faults = [_fault(names, each) for place, each in enumerate(groups) if place not in taken]
    if not faults and all(place is not None and groups[place].freeze for place in chosen.values()):
        faults = ["expected a weight that is trained, and all are frozen"]
    if faults:
        raise ParameterGroupError("[train] groups: " + "; ".join(faults))
    return chosen


def _fault(names: Collection[str], group: ParameterGroupSettings) -> str:
    if any(fnmatchcase(name, group.match) for name in names):
        return f"'{group.match}' fits only weights of groups before it"
    known = [*names][:_SHOWN]
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return f"expected a pattern of the weights {', '.join(known)}{more}, got '{group.match}', which fits none"


def regroup(
    optimizer: torch.optim.Optimizer, model: nn.Module, groups: Sequence[ParameterGroupSettings]
) -> None:
    """Split the groups of a fresh optimiser, and freeze the weights of frozen groups.

    Raise ParameterGroupError like `assign_groups`, and if a decay is set for a rule without decay.
    """
    weights = dict(model.named_parameters())
    chosen = assign_groups(weights, groups)
    own = {weights[name]: groups[place] for name, place in chosen.items() if place is not None}
    divided = [part for group in optimizer.param_groups for part in _divide(group, own)]
    optimizer.param_groups[:] = divided
    for weight, group in own.items():
        weight.requires_grad_(not group.freeze)
        if group.freeze:
            optimizer.state.pop(weight, None)  # Adagrad has it from the beginning


def _divide(
    group: dict[str, Any], own: Mapping[nn.Parameter, ParameterGroupSettings]
) -> list[dict[str, Any]]:
    """Split an optimiser's group into parts with equal settings, without frozen weights."""
    parts: dict[ParameterGroupSettings | None, list[nn.Parameter]] = {}
    for weight in group["params"]:
        parts.setdefault(own.get(weight), []).append(weight)
    return [
        {**group, "params": weights, **_changes(group, settings)}
        for settings, weights in parts.items()
        if settings is None or not settings.freeze
    ]


def _changes(group: Mapping[str, Any], settings: ParameterGroupSettings | None) -> dict[str, Any]:
    if settings is None:
        return {}
    if settings.weight_decay is None:
        return {"lr": group["lr"] * settings.lr_scale}
    if "weight_decay" not in group:
        raise ParameterGroupError(
            f"[train] groups: '{settings.match}' has a decay, and the optimizer has none"
        )
    return {"lr": group["lr"] * settings.lr_scale, "weight_decay": settings.weight_decay}
