"""Events of a running study, and the listeners that receive them.

`StudyProgress` counts trials by their events and estimates the remaining time; `NotebookProgress` shows both.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from html import escape
from typing import Any

from ...storage import Store
from ...studies.planning.status import study_status
from ...studies.planning.time_estimates import RecipeTimes
from ...studies.resolve.trial import Trial
from ...studies.study import Study
from ...studies.text.units import format_duration
from .process import Stop


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """Event: a trial starts or resumes.

    It resumes after `epoch` whole epochs and `step` steps in all, also of the next epoch. If these are all
    steps of that epoch, only its evaluation is missing. `deaths` counts the processes that have died after an
    earlier start there.
    """

    trial: str
    epoch: int
    step: int = field(default=0, compare=False)
    deaths: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochFinished:
    """Event: a trial has trained one more epoch.

    At this time, at most one second of its training is not on disk yet.
    """

    trial: str
    epoch: int
    metrics: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Paused:
    """Event: a trial of a search pauses after an epoch, until the scheduler has compared its point."""

    trial: str
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """Event: a trial has ended, its outcome is stored, and `reason` says why it is not "done"."""

    trial: str
    status: str
    reason: str | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterNode:
    """A node of a Ray cluster, with its CPUs and GPUs.

    `problem` says why it cannot train, if so.
    """

    host: str
    cpus: float
    gpus: float
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineFailed:
    """Event: the machine fails, for example with a full disk. The study stops without the trial's outcome."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedElsewhere:
    """Event: this run skips a trial that belongs to another process.

    That process trains it or, if `ended`, has trained it. `host` and `pid` identify that process, if known.
    `attempt` counts from the trial's first attempt.
    """

    trial: str
    attempt: int
    ended: bool
    host: str = ""
    pid: int = 0


Event = Started | EpochFinished | Paused | Ended | MachineFailed | ClaimedElsewhere


class Listener:
    """Base class of listeners to a running study, called in the driver's process."""

    def on_planned(self, trials: Sequence[Trial]) -> None:
        """Handle the list of trials that will run, before their first event."""

    def training_here(self, trials: int, seconds: float) -> None:
        """Handle the start of a short grid, whose `trials` trials train in this process.

        They take so little time, about `seconds` seconds, that Ray is not started.
        """

    def starting_ray(self, attempt: int) -> None:
        """Handle the start of Ray on this machine. `attempt` is the number of the try."""

    def stopping(self) -> None:
        """Handle a request to stop; running trials save a checkpoint and end."""

    def waiting(self, others: Sequence[ClaimedElsewhere]) -> None:
        """Handle the start of a wait for other processes, which train all remaining trials."""

    def on_nodes(self, nodes: Sequence[ClusterNode]) -> None:
        """Handle the list of a cluster's nodes, before the first trial."""

    def on_event(self, event: Event) -> None:
        """Handle one event of a trial."""


class Listeners(Listener):
    """Several listeners as one, which passes everything to each of them in turn."""

    def __init__(self, *listeners: Listener) -> None:
        self._listeners = listeners

    def on_planned(self, trials: Sequence[Trial]) -> None:
        for each in self._listeners:
            each.on_planned(trials)

    def training_here(self, trials: int, seconds: float) -> None:
        for each in self._listeners:
            each.training_here(trials, seconds)

    def starting_ray(self, attempt: int) -> None:
        for each in self._listeners:
            each.starting_ray(attempt)

    def stopping(self) -> None:
        for each in self._listeners:
            each.stopping()

    def waiting(self, others: Sequence[ClaimedElsewhere]) -> None:
        for each in self._listeners:
            each.waiting(others)

    def on_nodes(self, nodes: Sequence[ClusterNode]) -> None:
        for each in self._listeners:
            each.on_nodes(nodes)

    def on_event(self, event: Event) -> None:
        for each in self._listeners:
            each.on_event(event)


NOBODY = Listener()
"""A listener that ignores all events."""


ENDED_BETWEEN_LOOKS = 32
"""The run checks for files to merge each time this many trials have ended."""


class RunCounter(Listener):
    """Listener of a run that counts the ended trials.

    It requests a stop after too many failures. At intervals it merges the files of ended trials, so that a
    folder never holds thousands of files.
    """

    def __init__(self, stop: Stop, max_failures: int | None, merge: Callable[[], object]) -> None:
        self.stop, self._max_failures, self._merge = stop, max_failures, merge
        self.ended = Counter[str]()
        """The number of trials that have ended in this run, by status."""
        self._open: dict[str, ClaimedElsewhere | None] = {}  # None for a trial that is planned here
        self.machine_failure: str | None = None

    @property
    def unended(self) -> set[str]:
        """Return the trials that this run has planned, and which have not ended."""
        return {trial for trial, event in self._open.items() if event is None}

    @property
    def has_failed_too_often(self) -> bool:
        """Return whether this run has had at least `max_failures` failed trials; False without a limit."""
        return self._max_failures is not None and self.ended["failed"] >= self._max_failures

    def pop_claimed_elsewhere(self) -> dict[str, ClaimedElsewhere]:
        """Return the trials that other drivers took, and forget them."""
        taken = {trial: event for trial, event in self._open.items() if event is not None}
        for trial in taken:
            del self._open[trial]
        return taken

    def on_planned(self, trials: Sequence[Trial]) -> None:
        self._open |= dict.fromkeys(trial.id for trial in trials)

    def on_event(self, event: Event) -> None:
        if isinstance(event, Ended):
            self._open.pop(event.trial, None)
            self.ended[event.status] += 1
            if self.ended.total() % ENDED_BETWEEN_LOOKS == 0:
                with suppress(OSError):  # merging can wait for the end of the run
                    self._merge()
        elif isinstance(event, ClaimedElsewhere):
            self._open[event.trial] = event
        elif isinstance(event, MachineFailed):
            self.machine_failure = event.reason
        self.stop.requested |= self.machine_failure is not None or self.has_failed_too_often


@dataclass(slots=True, kw_only=True)
class RunningTrial:
    """The progress of a running trial.

    `epoch` is its number of finished epochs, `metrics` its last metrics, and `pending_s` the seconds since
    its last epoch ended.
    """

    trial: Trial
    epoch: int
    metrics: Mapping[str, float] = field(default_factory=dict)
    pending_s: float = 0.0

    @property
    def left(self) -> float:
        """Return the share of the trial's epochs that are not finished yet."""
        return 1 - self.epoch / self.trial.settings.train.epochs


class StudyProgress:
    """Tracker of a study's progress.

    It reads events; all times are seconds of the same clock. `stored` are the outcomes stored before the run,
    `total` counts all trials of the study. `unplanned` counts trials that will run but are not known yet, as
    in a search.
    """

    def __init__(self, *, total: int, stored: Mapping[str, str], unplanned: int = 0) -> None:
        self._total, self._to_come = total, unplanned
        self._ended: dict[str, str] = dict(stored)
        self._waiting: dict[str, Trial] = {}
        self._trials: dict[str, Trial] = {}
        self._workers = 1
        self._speed = RecipeTimes()
        self._trained: list[float] = []
        self._now: float | None = None
        self.running: dict[str, RunningTrial] = {}

    @property
    def total(self) -> int:
        """Return the number of trials of the study that are known so far."""
        return max(self._total, len(self._ended) + len(self._waiting) + len(self.running))

    @property
    def share(self) -> float:
        """Return the finished share of the study, including the epochs of running trials."""
        over = len(self._ended) + sum(1 - each.left for each in self.running.values())
        return over / self.total if self.total else 1.0

    @property
    def counts(self) -> Counter[str]:
        """Return the number of ended trials by status."""
        return Counter(self._ended.values())

    def trial(self, trial_id: str) -> Trial:
        """Return the trial with this id; `on_planned` must have added it."""
        return self._trials[trial_id]

    def on_planned(self, trials: Sequence[Trial]) -> None:
        """Add trials that will run. Outcomes that they had in earlier runs are forgotten."""
        for trial in trials:
            self._ended.pop(trial.id, None)
            self._trials[trial.id] = self._waiting[trial.id] = trial
        self._to_come = max(0, self._to_come - len(trials))

    def on_event(self, event: Event, now: float) -> None:
        """Record an event that happened at the time `now`."""
        self.advance_clock(now)
        match event:
            case Started():
                self._waiting.pop(event.trial, None)
                self.running[event.trial] = RunningTrial(trial=self._trials[event.trial], epoch=event.epoch)
                self._workers = max(self._workers, len(self.running))
            case EpochFinished():
                running = self.running[event.trial]
                share = (event.epoch - running.epoch) / running.trial.settings.train.epochs
                self._speed.add(_recipe(running.trial), running.pending_s, max(share, 0.0))
                running.epoch, running.metrics, running.pending_s = event.epoch, event.metrics, 0.0
            case Ended():
                self._waiting.pop(event.trial, None)
                self._ended[event.trial] = event.status
                running = self.running.pop(event.trial, None)
                if running is not None:
                    self._speed.add(_recipe(running.trial), running.pending_s, 0.0)
                    # a failed trial says nothing about the share of epochs that others will train
                    self._trained += [1 - running.left] if event.status != "failed" else []

            case ClaimedElsewhere():
                self._waiting.pop(event.trial, None)
                self.running.pop(event.trial, None)

    def advance_clock(self, now: float) -> None:
        """Advance the time of each running trial to `now`.

        Events come in batches. The time until a batch arrives is charged to the trials that ran before the
        batch.
        """
        if self._now is not None:
            for running in self.running.values():
                running.pending_s += now - self._now
        self._now = now

    def remaining_s(self) -> float | None:
        """Return the expected remaining wall time of the run; None before the first epoch has ended.

        The remaining work is divided by the highest number of workers that were busy at the same time. A
        trial is never split.
        """
        mean = self._speed.mean_s
        if mean is None:
            return None
        parts = [
            max(0.0, each.left * self._speed.trial_s(_recipe(each.trial)) - each.pending_s)
            for each in self.running.values()
        ]
        parts += [self._speed.trial_s(_recipe(trial)) for trial in self._waiting.values()]
        # unknown trials are expected to train the same share of their epochs as earlier ones
        share = sum(self._trained) / len(self._trained) if self._trained else 1.0
        parts += [mean * share] * self._to_come
        return max(sum(parts) / self._workers, *parts, 0.0)


def _recipe(trial: Trial) -> str:
    return trial.settings.model.recipe


def initial_progress(study: Study, store: Store, max_trials: int | None) -> StudyProgress:
    """Return a study's progress before the first event.

    A search has not chosen its points yet, so only the number of its remaining trials is known.
    """
    before, unplanned = study_status(study, store), 0
    if study.search is not None:
        unplanned = min(before.left, max_trials or before.left)
    stored = {**before.stored, **before.added} if study.added else before.stored
    return StudyProgress(total=before.total, stored=stored, unplanned=unplanned)


REFRESH_S = 0.5
"""The minimum seconds between two updates of the display while no trial ends."""


def notebook_listener(study: Study, store: Store, max_trials: int | None) -> Listener:
    """Return a listener that shows progress in the current notebook. Outside a notebook it shows nothing."""
    ipython = sys.modules.get("IPython")  # a notebook has imported it
    if ipython is None or ipython.get_ipython() is None:
        return NOBODY
    return NotebookProgress(study.name, initial_progress(study, store, max_trials))


class NotebookProgress(Listener):
    """A notebook output that is updated as trials train and end."""

    def __init__(self, name: str, progress: StudyProgress) -> None:
        from IPython.display import display  # noqa: PLC0415 -- no dependency  # pyright: ignore

        self._name, self._progress, self._note = name, progress, ""
        self._shown_at = time.monotonic()
        self._handle: Any = display(self, display_id=True)

    def on_planned(self, trials: Sequence[Trial]) -> None:
        self._progress.on_planned(trials)

    def starting_ray(self, attempt: int) -> None:
        self._refresh("starting Ray … its processes load torch (local=True: one model after the other)")

    def stopping(self) -> None:
        self._note = "stopping …"

    def on_event(self, event: Event) -> None:
        now = time.monotonic()
        self._progress.on_event(event, now)
        if isinstance(event, Ended) or now - self._shown_at >= REFRESH_S:
            self._refresh(self._note if self._note.startswith("stopping") else "")

    def _refresh(self, note: str) -> None:
        self._note, self._shown_at = note, time.monotonic()
        self._handle.update(self)

    def __repr__(self) -> str:
        counts, left_s = self._progress.counts, self._progress.remaining_s()
        words = [f"{self._name}: {counts.total():,} of {self._progress.total:,} trials ended"]
        words += [f"{counts[status]:,} {status}" for status in ("failed", "pruned") if counts[status]]
        words += [f"{len(self._progress.running):,} running"] if self._progress.running else []
        words += [f"about {format_duration(left_s)} left"] if left_s and self._progress.running else []
        return " · ".join([*words, *([self._note] if self._note else [])])

    def _repr_html_(self) -> str:
        return f'<progress max="1" value="{self._progress.share:.4f}"></progress> {escape(repr(self))}'
