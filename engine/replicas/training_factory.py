"""What makes the trainings of one process that take their steps on several devices."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from ...studies.schema.settings import TrialSettings
from ..data.prepared_lengths import PreparedLengths
from .replica_group import ReplicaGroup, WatchProcesses
from .replicated_training import ReplicatedTraining
from .sharding import must_shard


class ReplicatedTrainings:
    """Makes trainings that take their steps on these devices, of one process; sharded where it must be.

    It must where a step does not fit into `device_bytes`, the memory of each; None is any. The replicas of
    other processes compute activations again in the backward pass where `checkpoints`, and where they can.
    What is to `watch` them learns their processes.
    """

    def __init__(
        self,
        devices: Sequence[torch.device],
        device_bytes: int | None = None,
        *,
        checkpoints: bool = False,
        watch: WatchProcesses | None = None,
    ) -> None:
        self.group = ReplicaGroup(devices, checkpoints=checkpoints, watch=watch)
        self._device_bytes, self._checkpoints = device_bytes, checkpoints

    def __call__(self, settings: TrialSettings, device: torch.device, data: Path) -> ReplicatedTraining:
        """A training; of the devices the first is that which is given."""
        assert device.type == self.group.devices[0].type, "all devices are of one kind"
        devices = len(self.group.devices)
        longest = PreparedLengths(data)(settings)
        if must_shard(settings, devices, self._device_bytes, longest=longest, checkpoints=self._checkpoints):
            from .sharded_training import ShardedTraining  # noqa: PLC0415 -- loads much that few trials need

            return ShardedTraining(settings, self.group, data)
        return ReplicatedTraining(settings, self.group, data)

    def end(self) -> None:
        """End the other replicas."""
        self.group.end()
