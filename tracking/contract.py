"""The interface of trackers, which each file in `tracking/libraries` implements for one program."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar

from ..errors import ActivememError, nearest_hint
from ..plugins import OWN, PluginError, Registry, check_part, contract_faults, plugin_errors
from ..storage.place import is_address

Setting = str | float | bool
"""A setting of a type that every tracking program can sort."""


class TrackingError(ActivememError):
    """Error for a tracker that cannot be used. The message names what is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackedTrial:
    """A trial as it is sent to trackers. Its display name ends with its id."""

    id: str
    study: str
    name: str
    settings: Mapping[str, Setting]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackedEnd:
    """The end of a trial, with its status and final metrics.

    `reason` says why it failed or stopped early. It is None if the status is "done".
    """

    status: str
    reason: str | None
    metrics: Mapping[str, float]
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackedTable:
    """A table of a study, as Markdown and as CSV."""

    name: str
    markdown: str
    csv: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The epochs with metrics that a tracker has of a trial, and the status and time of its end."""

    epochs: frozenset[int] = field(default_factory=frozenset[int])
    status: str | None = None
    ended: float | None = None


class Tracker(ABC):
    """A program that records trials in one folder or on one server.

    The constructor takes the folder or server; it raises TrackingError if writing fails. A trial is
    identified by its study and its id, in every process: if it begins again, its record is resumed. One
    thread calls all methods. A method may raise any exception. Times are seconds since 1970.
    """

    @abstractmethod
    def known(self, trial: TrackedTrial) -> Known:
        """Return the epochs and the status that the tracker has of a trial. The trial must not be open."""

    @abstractmethod
    def remove(self, trial: TrackedTrial) -> None:
        """Remove a trial from the tracker, because it is trained again. The trial must not be open."""

    @abstractmethod
    def begin(self, trial: TrackedTrial, at: float) -> None:
        """Start or resume the record of a trial, and record its settings."""

    @abstractmethod
    def log(self, trial: TrackedTrial, epoch: int, metrics: Mapping[str, float], at: float) -> None:
        """Record the metrics of a new epoch. Values need not be finite."""

    @abstractmethod
    def end(self, trial: TrackedTrial, end: TrackedEnd) -> None:
        """Record the end of a trial, and close the trial. Its final metrics are called `final/NAME`."""

    def pause(self, trial: TrackedTrial) -> None:  # noqa: B027 -- some trackers keep nothing open
        """Close a trial that resumes later or elsewhere."""

    @abstractmethod
    def show_tables(self, study: str, tables: Sequence[TrackedTable]) -> None:
        """Show these tables of a study in the tracker, in place of earlier tables."""

    def close(self) -> None:  # noqa: B027 -- most trackers buffer nothing
        """Write everything that is still buffered."""


def make_folder(place: str, purpose: str = "") -> Path:
    """Return the folder of a tracker, and create it. Raise TrackingError if `place` is no writable folder."""
    if is_address(place):
        raise TrackingError(f"expected a folder{purpose}, got {place!r}")
    try:
        Path(place).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TrackingError(f"expected a folder that can be written, got: {error}") from error
    return Path(place)


OpenTracker = Callable[[str], Tracker]
"""Opens a tracker at a folder or server."""


def _open_own(name: str, place: str) -> Tracker:
    return import_module(f".libraries.{name}", __package__).open_tracker(place)


TRACKERS: Registry[OpenTracker] = Registry(
    "tracker", {name: partial(_open_own, name) for name in ("tensorboard", "mlflow", "wandb", "trackio")}
)
"""Every tracker by its name. Built-in ones have the name of an extra, a library and a file in `libraries`."""

TrackerT = TypeVar("TrackerT", bound=Tracker)


def register_tracker(name: str) -> Callable[[type[TrackerT]], type[TrackerT]]:
    """Return a decorator that registers a subclass of Tracker under a name.

    Its constructor takes the folder or server. Raise PluginError for a taken name, or an incomplete class.
    """

    def register(cls: type[TrackerT]) -> type[TrackerT]:
        check_part(contract_faults(cls, Tracker))
        TRACKERS.register(name, cls)
        return cls

    return register


def open_trackers(places: Mapping[str, str]) -> dict[str, Tracker]:
    """Open the named trackers at their locations. Raise TrackingError with the faults of all trackers."""
    faults = [fault for name in places if (fault := library_fault(name))]
    opened: dict[str, Tracker] = {}
    for name, place in places.items() if not faults else ():
        try:
            with plugin_errors("tracker", name, TRACKERS[name]):
                opened[name] = TRACKERS[name](place)
        except (TrackingError, PluginError) as error:
            faults.append(f"{name}: {error}")
    if faults:
        for tracker in opened.values():
            tracker.close()
        raise TrackingError("\n".join(faults))
    return opened


def library_fault(name: str) -> str | None:
    """Return why a tracker's library cannot be used here; None if it can."""
    if name not in TRACKERS:
        return f"unknown tracker '{name}'{nearest_hint(name, TRACKERS)}"
    if TRACKERS.owner(name) != OWN:
        return None
    if (found := find_spec(name)) is None or found.origin is None:  # a folder `wandb` here is not the library
        return f"{name}: its library is not installed; install it: pip install 'activemem[{name}]'"
    return None
