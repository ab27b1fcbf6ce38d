"""The contract of trackers, which every library is fitted to."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..errors import ActivememError

Setting = str | float | bool
"""A setting that any of these programs can sort by."""


class TrackingError(ActivememError):
    """A tracker that cannot be used; the message says what is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackedTrial:
    """A trial for trackers: its study, a name for people that ends in its id, its factors and settings."""

    id: str
    study: str
    name: str
    settings: Mapping[str, Setting]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackedEnd:
    """The end of a trial: its status, why it is not "done", its final metrics, and the time."""

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
    """The parts of a trial that a tracker already has: epochs with metrics, and its end, if any."""

    epochs: frozenset[int] = field(default_factory=frozenset[int])
    status: str | None = None


class Tracker(ABC):
    """One place of one program: a folder of its files, or a server.

    Its constructor takes the place and raises TrackingError if it cannot be written. A trial is known by
    its study and id, across processes: beginning it again resumes it. All methods are called by one thread,
    and may raise anything. Times are seconds since 1970.
    """

    @abstractmethod
    def known(self, trial: TrackedTrial) -> Known:
        """Return what the tracker has of a trial, which may be nothing; it is not open."""

    @abstractmethod
    def begin(self, trial: TrackedTrial, at: float) -> None:
        """Open a trial: show it and its settings, or resume it."""

    @abstractmethod
    def log(self, trial: TrackedTrial, epoch: int, metrics: Mapping[str, float], at: float) -> None:
        """Show what was measured after an epoch that is not known yet; values need not be finite."""

    @abstractmethod
    def end(self, trial: TrackedTrial, end: TrackedEnd) -> None:
        """Show how a trial ended, its final metrics as `final/NAME`; it is no longer open."""

    @abstractmethod
    def pause(self, trial: TrackedTrial) -> None:
        """Keep a trial that resumes later or elsewhere; it is no longer open."""

    @abstractmethod
    def show_tables(self, study: str, tables: Sequence[TrackedTable]) -> None:
        """Show a study's tables in place of those before."""

    @abstractmethod
    def close(self) -> None:
        """Write everything that is still buffered."""
