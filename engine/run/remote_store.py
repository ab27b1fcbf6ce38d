"""The store for workers on nodes that do not see it: an actor beside the driver reads and writes for them.

What such a worker makes is written to a scratch folder of its own, sent through Ray, and taken as kept only
when the actor has answered; so a trial that is told as done is as durable as any other. What is
saved of it on the way is sent as well: when the node is lost, another goes on from there.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, TypeVar

import ray
import torch
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from ...plugins import PluginFile, load_plugin_files, loaded_files
from ...storage import AttemptRows, MetricRow, Store, TrialRow, WrittenOutputs
from ...storage.durable_write import replacing
from ...storage.leases import Lease
from ..core.events import Taken
from ..core.resources import Machine
from ..trial.checkpoints import Checkpoint, CheckpointData, Deaths
from ..trial.claims import Claims
from ..trial.outcome import Job
from ..trial.resumable_attempt import TrainingFactory
from .cohorts import Worker
from .memory_guard import MemoryGuard

KeeperHandle = Any
"""An actor's handle, whose type differs from one Ray to the next."""

_AnswerT = TypeVar("_AnswerT")


@dataclass(frozen=True, slots=True, kw_only=True)
class StorePlace:
    """Where a store is: its folder, a file in it by which it is known, and a keeper for who does not see it.

    On the machine of the driver alone there is no such file and no keeper.
    """

    root: str
    marker: str | None = None
    keeper: KeeperHandle | None = None

    def is_seen(self) -> bool:
        """Whether this machine sees the store."""
        return self.marker is None or Path(self.marker).exists()


class StoreKeeper:
    """The actor on the driver's node, which does to the store what workers elsewhere ask for.

    Jobs come pickled, since their settings may be of plug-ins that are loaded here first.
    """

    def __init__(self, root: str, plugins: tuple[PluginFile, ...]) -> None:
        load_plugin_files(plugins)
        self._store = Store(Path(root))
        self._claims: dict[str, Claims] = {}
        self._leases: dict[str, Lease] = {}

    def claim(self, pickled: bytes) -> bytes:
        """Claim a job for this run; the job as it is claimed, or that another process has the trial."""
        job: Job = pickle.loads(pickled)
        claims = self._claims.setdefault(job.run, Claims(self._store, job.run))
        claimed = claims.claim(job)
        if isinstance(claimed, Taken):
            return pickle.dumps(claimed)
        job, self._leases[job.trial.id] = claimed
        return pickle.dumps(job)

    def is_lost(self, trial: str) -> bool:
        """Whether a trial that was claimed here has been taken over."""
        return self._leases[trial].is_lost()

    def end(self, trial: str) -> None:
        """Note that the outcome is stored."""
        self._leases.pop(trial).end()

    def release(self, trial: str) -> None:
        """Give a trial back."""
        self._leases.pop(trial).release()

    def write(
        self, row: TrialRow, metrics: Sequence[MetricRow], outputs: WrittenOutputs | None = None
    ) -> None:
        """Store an attempt, as `Store.write` does."""
        self._store.write(row, metrics, outputs)

    def write_together(self, attempts: Sequence[AttemptRows]) -> None:
        """Store several attempts, as `Store.write_together` does."""
        self._store.write_together(attempts)

    def publish(self, name: str, data: bytes) -> None:
        """Replace a file of weights, or of the last state of a training, by its name below the root."""
        with replacing(self._store.root / name) as temporary:
            temporary.write_bytes(data)

    def read_final_checkpoint(self, trial: str) -> bytes | None:
        """The last state of a trial's training, if it is kept."""
        path = self._store.final_checkpoint_file(trial)
        return path.read_bytes() if path.is_file() else None

    def read_checkpoint(self, trial: str) -> dict[str, bytes]:
        """The files of a trial's checkpoint by name."""
        folder = self._store.checkpoint_dir(trial)
        return {path.name: path.read_bytes() for path in folder.glob("*") if path.is_file()}

    def write_checkpoint(self, trial: str, files: dict[str, bytes], removed: Sequence[str]) -> None:
        """Replace files of a trial's checkpoint one by one, in their order."""
        folder = self._store.checkpoint_dir(trial)
        for name, data in files.items():
            with replacing(folder / name) as temporary:
                temporary.write_bytes(data)
        for name in removed:
            (folder / name).unlink(missing_ok=True)

    def remove_checkpoint(self, trial: str) -> None:
        """Remove a trial's checkpoint."""
        Checkpoint(self._store.checkpoint_dir(trial)).remove()


class RemoteStore(Store):
    """A scratch folder in front of the keeper's store, for what an attempt needs of a store."""

    def __init__(self, keeper: KeeperHandle) -> None:
        super().__init__(mkdtemp(prefix="activemem-"))
        self.keeper = keeper

    def write(
        self, trial: TrialRow, metrics: Sequence[MetricRow], outputs: WrittenOutputs | None = None
    ) -> None:
        """As any store's."""
        _wait(self.keeper.write.remote(trial, metrics, outputs))

    def write_together(self, attempts: Sequence[AttemptRows]) -> None:
        """As any store's."""
        _wait(self.keeper.write_together.remote(attempts))

    def publish(self, path: Path) -> None:
        """As any store's; the file here is removed."""
        _wait(self.keeper.publish.remote(path.relative_to(self.root).as_posix(), path.read_bytes()))
        path.unlink()


class RemoteClaims(Claims):
    """Claims that the keeper makes."""

    def __init__(self, store: RemoteStore, run: str) -> None:
        super().__init__(store, run)
        self._keeper = store.keeper

    def claim(self, job: Job) -> tuple[Job, Lease] | Taken:
        """As any claim's; the lease is that of the keeper's process, which renews it."""
        claimed: Job | Taken = pickle.loads(_wait(self._keeper.claim.remote(pickle.dumps(job))))
        if isinstance(claimed, Taken):
            return claimed
        return claimed, RemoteLease(self._keeper, claimed)


class RemoteLease(Lease):
    """A lease that the keeper holds."""

    def __init__(self, keeper: KeeperHandle, job: Job) -> None:
        self.trial, self.attempt, self.over = job.trial.id, job.attempt, False
        self._keeper = keeper

    def is_lost(self) -> bool:
        """Ask the keeper."""
        return _wait(self._keeper.is_lost.remote(self.trial))

    def beat(self) -> None:
        """Nothing: the keeper does."""

    def end(self) -> None:
        """Tell the keeper."""
        self.over = True
        _wait(self._keeper.end.remote(self.trial))

    def release(self) -> None:
        """Tell the keeper."""
        self.over = True
        _wait(self._keeper.release.remote(self.trial))


class RemoteCheckpoint(Checkpoint):
    """A checkpoint in the scratch folder, whose files the keeper's store has when a method returns."""

    def __init__(self, store: RemoteStore, job: Job) -> None:
        self._scratch = store.checkpoint_dir(job.trial.id)
        shorter = job.shorter and (job.shorter, store.final_checkpoint_file(job.shorter.trial))
        super().__init__(self._scratch, shorter)
        self._keeper, self._trial = store.keeper, job.trial.id
        self._sent: dict[str, bytes] = {}

    def load(self, device: torch.device) -> CheckpointData | None:
        """As any checkpoint's, from what the keeper's store has."""
        super().remove()
        self._scratch.mkdir(parents=True)
        self._sent = _wait(self._keeper.read_checkpoint.remote(self._trial))
        for name, data in self._sent.items():
            (self._scratch / name).write_bytes(data)
        return super().load(device)

    def _load_shorter(self, device: torch.device) -> CheckpointData | None:
        """As any checkpoint's, from what the keeper's store has."""
        if self._shorter is None:
            return None
        shorter, path = self._shorter
        if (data := _wait(self._keeper.read_final_checkpoint.remote(shorter.trial))) is None:
            return None
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        try:
            return super()._load_shorter(device)
        finally:
            path.unlink()

    def record_start(self, trial: str, run: str, place: str) -> Deaths:
        """As any checkpoint's."""
        deaths = super().record_start(trial, run, place)
        self._send()
        return deaths

    def record_stop(self) -> None:
        """As any checkpoint's."""
        super().record_stop()
        self._send()

    def save(self, saved: CheckpointData) -> None:
        """As any checkpoint's."""
        super().save(saved)
        self._send()

    def remove(self) -> None:
        """As any checkpoint's, there and here."""
        super().remove()
        _wait(self._keeper.remove_checkpoint.remote(self._trial))

    def _send(self) -> None:
        """Send the files that are not as they were sent last: the state before comes first."""
        files = {path.name: path.read_bytes() for path in sorted(self._scratch.glob("*"))}
        changed = {name: data for name, data in files.items() if self._sent.get(name) != data}
        removed = sorted(set(self._sent) - set(files))
        _wait(self._keeper.write_checkpoint.remote(self._trial, changed, removed))
        self._sent = files


class RemoteWorker(Worker):
    """A worker on a node that does not see the store."""

    def __init__(
        self,
        place: StorePlace,
        machine: Machine,
        make_training: TrainingFactory,
        guard: MemoryGuard | None = None,
    ) -> None:
        assert place.keeper is not None, "a cluster's store has a keeper"
        self._remote = RemoteStore(place.keeper)
        super().__init__(self._remote, machine, make_training, guard)

    def make_claims(self, run: str) -> Claims:
        """Claims by the keeper."""
        return RemoteClaims(self._remote, run)

    def make_checkpoint(self, job: Job) -> Checkpoint:
        """A checkpoint at the keeper's."""
        return RemoteCheckpoint(self._remote, job)


def start_keeper(store: Store) -> KeeperHandle:
    """Start the keeper of a store on the node of the driver, for as long as the driver is connected."""
    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    keeper = ray.remote(StoreKeeper).options(num_cpus=0, scheduling_strategy=here)
    return keeper.remote(str(store.root.resolve()), loaded_files())


def _wait(answer: ray.ObjectRef[_AnswerT]) -> _AnswerT:
    """What the keeper answers."""
    return ray.get(answer)
