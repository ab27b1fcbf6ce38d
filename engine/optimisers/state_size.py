"""The bytes that an optimiser keeps of a model's weights, from their shapes alone."""

from __future__ import annotations

from math import prod

from torch import nn

from ...studies.catalog.optimisers import OptimizerSettings, OwnOptimizerSettings
from ...studies.planning.memory_estimates import NUMBER, WeightState
from ...studies.schema.settings import TrialSettings
from ..core.models import outline_model
from .parameter_groups import assign_groups
from .rules import muon_maps


def weight_state(settings: TrialSettings) -> WeightState:
    """Return how many numbers of a trial's weights are frozen, and the optimiser's state of the others.

    Counters of steps are left out: 4 bytes a weight, in some rules. Raises ParameterGroupError.
    """
    model, groups, optimizer = outline_model(settings), settings.train.groups, settings.train.optimizer
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
    """Return the numbers that a rule keeps of a weight; of a plug-in's rule as many as it says, at most."""
    if isinstance(optimizer, OwnOptimizerSettings) and optimizer.name == "muon" and is_map:
        return weight.numel()
    if isinstance(optimizer, OwnOptimizerSettings) and optimizer.name == "adafactor" and weight.dim() > 1:
        *rest, rows, columns = weight.shape
        return prod(rest) * (rows + columns)
    return optimizer.state_per_weight * weight.numel()
