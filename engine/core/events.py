"""Events of a running study: plain data, made where something happens and shown by listeners."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ...studies.resolve.trial import Trial


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """Event: a trial starts, or resumes after a number of epochs and of steps within an epoch."""

    trial: str
    epoch: int
    step: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochFinished:
    """Event: a trial has trained one more epoch. At most one second of its training is not on disk yet."""

    trial: str
    epoch: int
    metrics: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """Event: a trial's outcome is in the store; `reason` says why it is not "done"."""

    trial: str
    status: str
    reason: str | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterNode:
    """A node of a cluster: its resources and, if it cannot train, the reason.

    `gpu_bytes` is the free memory of its fullest GPU in bytes; 0 if trials do not train on a GPU.
    """

    host: str
    cpus: float
    gpus: float
    problem: str = ""
    gpu_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineFailed:
    """Event: the machine fails, for example with a full disk.

    The study stops, and nothing is stored of the trial.
    """

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedElsewhere:
    """Event: another process trains this trial, or has trained it (`ended`); this run skips it.

    `host` and `pid` identify that process, if known. `attempt` counts from the trial's first attempt.
    """

    trial: str
    attempt: int
    ended: bool
    host: str = ""
    pid: int = 0


Event = Started | EpochFinished | Ended | MachineFailed | ClaimedElsewhere


class Listener:
    """Base class of listeners to a running study, called in the driver's process."""

    def on_planned(self, trials: Sequence[Trial]) -> None:
        """Handle the list of trials that will run, before their first event."""

    def training_here(self, trials: int, seconds: float) -> None:
        """Handle the start of a short grid in this process, which takes about this many seconds."""

    def starting_ray(self, attempt: int) -> None:
        """Handle a start of Ray on this machine; `attempt` counts the starts."""

    def stopping(self) -> None:
        """Handle a request to stop; running trials save a checkpoint and end."""

    def waiting(self, others: Sequence[ClaimedElsewhere]) -> None:
        """Handle the start of a wait: all remaining trials are training in other processes, `others`."""

    def on_nodes(self, nodes: Sequence[ClusterNode]) -> None:
        """Handle the list of a cluster's nodes, before the first trial."""

    def on_event(self, event: Event) -> None:
        """Handle one event of a trial."""


class Relay(Listener):
    """Listener that forwards all events to another listener; subclasses add their own work."""

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

    def waiting(self, others: Sequence[ClaimedElsewhere]) -> None:
        self._listener.waiting(others)

    def on_nodes(self, nodes: Sequence[ClusterNode]) -> None:
        self._listener.on_nodes(nodes)

    def on_event(self, event: Event) -> None:
        self._listener.on_event(event)


NOBODY = Listener()
"""A listener that ignores all events."""
