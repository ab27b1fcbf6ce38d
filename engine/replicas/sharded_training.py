"""A training whose steps are taken on several devices, of which each has a part of the weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...studies.schema.settings import TrialSettings
from ..trial.machine_failures import ReplicaDiedError
from ..trial.training import Training
from .faults import ReplicaError
from .messages import Ask, Gathered
from .replica_group import BuiltTraining, ReplicaGroup
from .replicated_training import ReplicatedTraining
from .sharded_weights import make_sharded
from .sharding import sharding_faults
from .share import ShardedShare, spread


class ShardedTraining(ReplicatedTraining):
    """As `ReplicatedTraining`, of which each replica has a part of each weight, where not all fit on each.

    The other replicas are there from the beginning. Raises ReplicaError for a trial that cannot be sharded,
    ReplicaDiedError where a replica is no more.
    """

    def __init__(self, settings: TrialSettings, group: ReplicaGroup, data: Path) -> None:
        if faults := list(sharding_faults(settings)):
            where = "where not all weights fit on each"
            raise ReplicaError(len(group.devices), (f"{each}, {where}" for each in faults))
        whole = spread(settings, len(group.devices))
        built = group.build(whole, settings.train.accumulate, data, sharded=True)

        def gather_together(what: Gathered) -> None:
            _check_others(group, built)
            group.tell(Ask(key=built.key, what=what))

        try:
            super().__init__(settings, group, data, make_sharded(evaluates=True, begin=gather_together))
        except BaseException:
            group.end()  # the others wait for this one
            raise
        self._known[:] = [built]
        self.replica = ShardedShare(0, self._parts, begin=lambda: group.tell(Ask(key=built.key, what="step")))

    def restore(self, state: dict[str, Any]) -> None:
        """Resume from a state of the whole, on all devices."""
        _check_others(self.group, self._known[0])
        Training.restore(self, state)
        self._tell(state, weights=True)

    def _meet(self) -> None:
        """Have the other replicas stand where this one does, with the weights as they are."""
        _check_others(self.group, self._known[0])
        self._tell(self.course(), weights=False)


def _check_others(group: ReplicaGroup, built: BuiltTraining) -> None:
    if not group.knows(built):
        raise ReplicaDiedError("a replica has ended, and its part of the weights with it")
