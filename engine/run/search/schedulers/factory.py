"""The schedulers of a search, which Optuna calls pruners; plug-ins' are told by name where they fail."""

from __future__ import annotations

import optuna
from optuna.trial import FrozenTrial

from .....studies.catalog.samplers import SCHEDULERS
from .....studies.schema.search_settings import EPOCHS, REDUCTIONS, SearchSettings
from ..plugged_in import made_by_plugin, told_by_name


def make_pruner(settings: SearchSettings) -> optuna.pruners.BasePruner:
    """Optuna's form of the scheduler. PluginError if it cannot be made."""
    make = SCHEDULERS[settings.scheduler].make
    if make is not None:
        found = made_by_plugin(SCHEDULERS, settings.scheduler, make, optuna.pruners.BasePruner)
        return PluginPruner(settings.scheduler, found)
    if settings.fidelity != EPOCHS:  # rungs are trainings of their own
        return optuna.pruners.NopPruner()
    first = settings.min_fidelity or 1
    reduction = settings.reduction or REDUCTIONS.get(settings.scheduler, 2)
    match settings.scheduler:
        case "asha":
            return optuna.pruners.SuccessiveHalvingPruner(min_resource=first, reduction_factor=reduction)
        case "hyperband":
            return optuna.pruners.HyperbandPruner(min_resource=first, reduction_factor=reduction)
        case "median":
            return optuna.pruners.MedianPruner()
        case _:
            return optuna.pruners.NopPruner()


class PluginPruner(optuna.pruners.BasePruner):
    """A plug-in's scheduler; what it raises becomes a PluginError with its name."""

    def __init__(self, name: str, pruner: optuna.pruners.BasePruner) -> None:
        self._name, self._pruner = name, pruner

    def prune(self, study: optuna.Study, trial: FrozenTrial) -> bool:
        """Whether a point is given up."""
        with told_by_name(SCHEDULERS, self._name):
            return bool(self._pruner.prune(study, trial))
