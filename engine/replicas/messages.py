"""What the replica that is saved and evaluated tells the others."""

from __future__ import annotations

import io
import pickle
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

import torch

from ...plugins import PluginFile
from ...studies.schema.settings import TrialSettings

Gathered = Literal["weights", "state"]
"""What all replicas gather together: weights as they are evaluated, or all that the next step depends on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaPost:
    """Where a replica works: its rank among so many, its device, where they meet, the plug-ins.

    One that `checkpoints` computes activations again in the backward pass, where it can.
    """

    rank: int
    replicas: int
    device: str
    threads: int
    meeting: str
    plugins: tuple[PluginFile, ...]
    checkpoints: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """Build a training, which is called `key` from then on; `sharded` with a part of each weight."""

    key: int
    settings: TrialSettings
    parts: int
    data: Path
    sharded: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Restore:
    """Resume a training from a state, or from its course with the weights as they are."""

    key: int
    state: bytes
    weights: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """Take a step of a training, say what its parts have handed on, gather what is sharded, or forget it."""

    key: int
    what: Literal["step", "carried", "weights", "state", "forget"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """What parts of a replica's last batch have handed on, what its weights are known by, its peak memory.

    The peak is since the training was built there.
    """

    parts: bytes
    fingerprint: float
    peak_mib: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """What a replica has failed by, as text and, if it can be sent, as it was raised; `at` is a moment.

    Moments are seconds of the machine's clock, by which the failures of several replicas have an order.
    """

    told: str
    raised: bytes
    at: float

    @classmethod
    def of(cls, error: Exception) -> Self:
        """What has just been raised."""
        told, at = f"{type(error).__name__}: {error}", time.monotonic()
        try:
            return cls(told=told, raised=pickle.dumps(error), at=at)
        except Exception:  # noqa: BLE001 -- whatever a plug-in's error refuses to be sent by
            return cls(told=told, raised=b"", at=at)

    def error(self) -> Exception:
        """What was raised; a RuntimeError with its text where that could not be sent."""
        try:
            found = pickle.loads(self.raised)
        except Exception:  # noqa: BLE001 -- an error that is not built of its arguments alone
            found = None
        return found if isinstance(found, Exception) else RuntimeError(self.told)


def to_bytes(state: Any) -> bytes:  # noqa: ANN401 -- whatever a training's state is made of
    """A state with its tensors."""
    file = io.BytesIO()
    torch.save(state, file)
    return file.getvalue()


def from_bytes(state: bytes) -> Any:  # noqa: ANN401 -- as above
    """A state with its tensors on the CPU."""
    return torch.load(io.BytesIO(state), map_location="cpu", weights_only=False)
