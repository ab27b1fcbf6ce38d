"""Events of a running study: plain data, made where something happens and shown by listeners."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ...studies.resolve.trial import Trial


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """A trial begins, or continues after this many epochs, or after this many steps of its first epoch."""

    trial: str
    epoch: int
    step: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochFinished:
    """A trial has trained one more epoch; at most one second of its training is not on disk yet."""

    trial: str
    epoch: int
    metrics: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A trial's outcome is in the store; `reason` says why it is not "done"."""

    trial: str
    status: str
    reason: str | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterNode:
    """A node of a cluster: its resources, and the reason if it cannot train.

    `gpu_bytes` has the free bytes of its fullest GPU; it is 0 if trials do not train on a GPU.
    """

    id: str
    host: str
    cpus: float
    gpus: float
    versions: Mapping[str, str]
    problem: str = ""
    gpu_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineFailed:
    """The machine cannot go on, as with a full disk; nothing is stored of the trial, and the study stops."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """A trial that another process trains or, if it has `ended`, has trained; this run leaves it alone.

    `host` and `pid` name that process, if it is known. `attempt` is the number of its attempt.
    """

    trial: str
    attempt: int
    ended: bool
    host: str = ""
    pid: int = 0


Event = Started | EpochFinished | Ended | MachineFailed | Taken


class Listener:
    """Base class of listeners to a running study, in the driver's process; subclasses override methods."""

    def on_planned(self, trials: Sequence[Trial]) -> None:
        """Learn of trials that are to run, before their first event."""

    def training_here(self, trials: int, seconds: float) -> None:
        """Learn that a short grid trains in this process, and about how many seconds it takes."""

    def starting_ray(self, attempt: int) -> None:
        """Learn that Ray is being started on this machine, for the first time or once more."""

    def stopping(self) -> None:
        """Learn that somebody asked for a stop; running trials are saved where they are."""

    def waiting(self, others: Sequence[Taken]) -> None:
        """Learn that the run waits for other processes, which train all remaining trials, `others`."""

    def on_nodes(self, nodes: Sequence[ClusterNode]) -> None:
        """Learn of the nodes of a cluster, before the first trial."""

    def on_event(self, event: Event) -> None:
        """Take note of one event."""


class Relay(Listener):
    """Listener that passes all events on to another one; subclasses also do something themselves."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener

    def on_planned(self, trials: Sequence[Trial]) -> None:
        self._listener.on_planned(trials)

    def training_here(self, trials: int, seconds: float) -> None:
        self._listener.training_here(trials, seconds)

    def starting_ray(self, attempt: int) -> None:
        self._listener.starting_ray(attempt)

    def stopping(self) -> None:
        self._listener.stopping()

    def waiting(self, others: Sequence[Taken]) -> None:
        self._listener.waiting(others)

    def on_nodes(self, nodes: Sequence[ClusterNode]) -> None:
        self._listener.on_nodes(nodes)

    def on_event(self, event: Event) -> None:
        self._listener.on_event(event)


NOBODY = Listener()
"""Hears nothing."""
