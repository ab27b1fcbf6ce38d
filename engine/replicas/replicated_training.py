"""A training whose steps are taken on several devices: the replica that is saved, evaluated and told of."""

from __future__ import annotations

import math
import weakref
from pathlib import Path
from typing import Any

from ...studies.schema.settings import TrialSettings
from ..core.placement import to_device
from ..core.trainable import BetweenSteps
from ..objectives import Metrics
from ..optimisers.weights import MakeWeights, make_weights
from ..trial.machine_failures import MachineError
from ..trial.training import NotANumberError, Training
from .messages import Ask, Restore, from_bytes, to_bytes
from .replica_group import BuiltTraining, ReplicaGroup
from .share import Share, spread


class ReplicatedTraining(Training):
    """A training each of whose steps takes an equal part of the batch on each device (data parallel).

    All replicas begin with the same weights, add their gradients, and move alike; the data are drawn by
    each of them, the same for all. Without dropout and randomised positions it computes what one device does
    with as many parts of a batch, up to the order in which they are added; what the others draw comes from
    streams of their own.
    Raises what a replica raises, ReplicaDiedError where one has ended without a word, MachineError where it
    has come to other weights.
    Nothing that it holds refers to it: what it has on all devices is free as soon as it is dropped.
    """

    def __init__(
        self,
        settings: TrialSettings,
        group: ReplicaGroup,
        data: Path,
        make_weights: MakeWeights = make_weights,
    ) -> None:
        devices, parts = len(group.devices), settings.train.accumulate
        super().__init__(spread(settings, devices), group.devices[0], data, make_weights)
        self.devices, self._gathering = devices, False
        self.group, self._parts, self._data = group, parts, data
        known = self._known = list[BuiltTraining]()  # as what the others know it, once they do
        self.replica = Share(0, parts, begin=lambda: group.tell(Ask(key=known[0].key, what="step")))
        weakref.finalize(self, _forget, group, known)

    @property
    def can_be_saved(self) -> bool:
        """Whether all of its state is of one moment; not when a replica was lost that had a part of it."""
        return super().can_be_saved and not self._gathering

    def advance(self, between_steps: BetweenSteps = lambda: None) -> Metrics:
        """Train one epoch on all devices, or the rest of one, and evaluate the model on the first."""
        self._meet()
        try:
            return self._advance_together(between_steps)
        except BaseException:
            if not self.can_be_saved and self._is_known:
                self.group.end()  # some wait for others; raises what one of them has failed by
            raise

    def _advance_together(self, between_steps: BetweenSteps) -> Metrics:
        try:
            metrics = super().advance(between_steps)
        except NotANumberError:
            self._gather()  # raises what a replica has ended by: of a sum that it left there are any numbers
            raise
        self._gather()
        return metrics

    def course(self) -> dict[str, Any]:
        """What the next step depends on besides the weights, after what all replicas have done."""
        if self._is_known and self.can_be_saved:
            self._gather()
        return super().course()

    def restore(self, state: dict[str, Any]) -> None:
        """Resume from a state, on all devices."""
        super().restore(state)
        self._gathering = False
        _forget(self.group, self._known)

    def _meet(self) -> None:
        """Have the other replicas stand where this one does."""
        if self._is_known:
            self._tell(self.course(), weights=False)
        else:
            state = self.state() if self.step else None
            self._known[:] = [self.group.build(self.settings, self._parts, self._data)]
            if state is not None:
                self._tell(state, weights=True)

    @property
    def _is_known(self) -> bool:
        """Whether the other replicas are there and know this training."""
        return bool(self._known) and self.group.knows(self._known[0])

    def _gather(self) -> None:
        """Have what the parts of the other replicas have handed on; MachineError if their weights differ."""
        ours, self._gathering = self.trained.fingerprint(), True
        for rank, other in enumerate(self.group.ask(Ask(key=self._known[0].key, what="carried")), 1):
            theirs = other.fingerprint
            if theirs != ours and not (math.isnan(theirs) and math.isnan(ours)):
                why = f"the weights of replica {rank} are others: their sum is {theirs!r}, not {ours!r}"
                raise MachineError(f"{why}, after step {self.step}")
            parts = range(rank * self._parts, (rank + 1) * self._parts)
            self.objective.carry(parts, to_device(from_bytes(other.parts), self.device))
            self.peak_elsewhere_mib = max(self.peak_elsewhere_mib, other.peak_mib)
        self._gathering = False

    def _tell(self, state: dict[str, Any], *, weights: bool) -> None:
        self.group.tell(Restore(key=self._known[0].key, state=to_bytes(state), weights=weights))


def _forget(group: ReplicaGroup, known: list[BuiltTraining]) -> None:
    """Have the others forget a training, if they know it."""
    while known:
        group.forget(known.pop())
