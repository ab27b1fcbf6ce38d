"""Factory of the schedulers that compare points after each epoch; Optuna calls them pruners."""

from __future__ import annotations

import optuna
from optuna.trial import FrozenTrial

from .....studies.catalog.samplers import SCHEDULERS
from .....studies.schema.search_settings import RungSettings, SearchSettings
from ..plugged_in import made_by_plugin, named_errors


def make_pruner(settings: SearchSettings) -> optuna.pruners.BasePruner:
    """Return the pruner of a search. Raises PluginError if it cannot be made."""
    scheduler = settings.scheduler
    make = SCHEDULERS[scheduler.name].make
    if make is not None:
        found = made_by_plugin(SCHEDULERS, scheduler.name, make, optuna.pruners.BasePruner)
        return PluginPruner(scheduler.name, found)
    if isinstance(scheduler, RungSettings) and settings.compares_epochs:
        first, reduction = scheduler.min_fidelity or 1, scheduler.reduction_factor
        if scheduler.name == "hyperband":
            return optuna.pruners.HyperbandPruner(min_resource=first, reduction_factor=reduction)
        return optuna.pruners.SuccessiveHalvingPruner(min_resource=first, reduction_factor=reduction)
    return optuna.pruners.MedianPruner() if scheduler.name == "median" else optuna.pruners.NopPruner()


class PluginPruner(optuna.pruners.BasePruner):
    """A plug-in's scheduler; what it raises becomes a PluginError with its name."""

    def __init__(self, name: str, pruner: optuna.pruners.BasePruner) -> None:
        self._name, self._pruner = name, pruner

    def prune(self, study: optuna.Study, trial: FrozenTrial) -> bool:
        """Return whether a point is given up."""
        with named_errors(SCHEDULERS, self._name):
            return bool(self._pruner.prune(study, trial))
