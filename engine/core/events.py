"""Events of a running study, and listeners that receive them.

`StudyProgress` counts trials by their events and estimates the remaining time; `NotebookProgress` shows both.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from html import escape
from typing import Any, Literal

from ...storage import Store
from ...studies.planning.status import study_status
from ...studies.planning.time_estimates import RecipeTimes
from ...studies.resolve.trial import Trial
from ...studies.study import Study
from ...studies.text.units import format_duration
from .process import Stop
from .run import NO_RUN, Run


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterNode:
    """A node of a Ray cluster, with its CPUs and GPUs.

    `problem` says why it cannot train, if so.
    """

    host: str
    cpus: float
    gpus: float
    problem: str = ""


EventKind = Literal[
    "planned",
    "here",
    "starting_ray",
    "nodes",
    "started",
    "epoch",
    "paused",
    "ended",
    "elsewhere",
    "waiting",
    "stopping",
    "machine_failed",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happens while a study runs. `kind` says what, and which other fields are set.

    Of one trial, whose state is `run`:

    - `started`: it starts, or resumes after `run.epoch` whole epochs and `run.step` steps in all.
    - `epoch`: it has trained one more epoch. At most one second of its training is not on disk yet.
    - `paused`: a trial of a search waits until the scheduler has compared its point.
    - `ended`: it has ended, and its outcome is stored.
    - `elsewhere`: this run skips it, because another process has it. Its status is `elsewhere` while that
      process trains it, `paused` if it will, and `done` if it has.

    Of the whole run:

    - `planned`: these `trials` will train. They come before their first event.
    - `here`: the `trials` of a short grid train in this process, in about `seconds` seconds.
    - `starting_ray`: Ray starts on this machine; `attempt` counts the tries.
    - `nodes`: the cluster has these `nodes`.
    - `waiting`: other processes train all remaining trials: `runs`.
    - `stopping`: a stop was requested; running trials save their state and end. A signal handler may say so.
    - `machine_failed`: the machine fails, for example with a full disk; `reason` says how. The study stops,
      and its running trials get no outcome.
    """

    kind: EventKind
    run: Run = NO_RUN
    runs: tuple[Run, ...] = ()
    trials: tuple[Trial, ...] = ()
    nodes: tuple[ClusterNode, ...] = ()
    seconds: float = 0.0
    attempt: int = 0
    reason: str = ""


Listener = Callable[[Event], None]
"""A function that is called with each event of a running study, in the driver's process."""


def NOBODY(event: Event) -> None:  # noqa: N802 -- stands for a listener, where one is needed
    """Ignore an event."""


ENDED_BETWEEN_LOOKS = 32
"""The run checks for files to merge each time this many trials have ended."""


class RunCounter:
    """Listener of a run that counts the ended trials, and tells another `listener`.

    It requests a stop after too many failures. At intervals it merges the files of ended trials, so that a
    folder never holds thousands of files.
    """

    def __init__(
        self, listener: Listener, stop: Stop, max_failures: int | None, merge: Callable[[], object]
    ) -> None:
        self._listener, self.stop, self._max_failures, self._merge = listener, stop, max_failures, merge
        self.ended = Counter[str]()
        """The number of trials that have ended in this run, by status."""
        self._open: dict[str, Run | None] = {}  # None for a trial that is planned here
        self.machine_failure: str | None = None

    @property
    def unended(self) -> set[str]:
        """Return the trials that this run has planned, and which have not ended."""
        return {trial for trial, run in self._open.items() if run is None}

    @property
    def has_failed_too_often(self) -> bool:
        """Return whether this run has had at least `max_failures` failed trials; False without a limit."""
        return self._max_failures is not None and self.ended["failed"] >= self._max_failures

    def pop_claimed_elsewhere(self) -> dict[str, Run]:
        """Return the trials that other drivers took, and forget them."""
        taken = {trial: run for trial, run in self._open.items() if run is not None}
        for trial in taken:
            del self._open[trial]
        return taken

    def __call__(self, event: Event) -> None:
        """Count an event, and pass it on."""
        match event.kind:
            case "planned":
                self._open |= dict.fromkeys(trial.id for trial in event.trials)
            case "ended":
                self._open.pop(event.run.trial, None)
                self.ended[event.run.status] += 1
                if self.ended.total() % ENDED_BETWEEN_LOOKS == 0:
                    with suppress(OSError):  # merging can wait for the end of the run
                        self._merge()
            case "elsewhere":
                self._open[event.run.trial] = event.run
            case "machine_failed":
                self.machine_failure = event.reason
            case _:
                pass
        self.stop.requested |= self.machine_failure is not None or self.has_failed_too_often
        self._listener(event)


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
        """Return the trial with this id; a "planned" event must have added it."""
        return self._trials[trial_id]

    def on_event(self, event: Event, now: float) -> None:
        """Record an event that happened at the time `now`.

        Outcomes that planned trials had in earlier runs are forgotten.
        """
        if event.kind == "planned":
            for trial in event.trials:
                self._ended.pop(trial.id, None)
                self._trials[trial.id] = self._waiting[trial.id] = trial
            self._to_come = max(0, self._to_come - len(event.trials))
            return
        self.advance_clock(now)
        run = event.run
        match event.kind:
            case "started":
                self._waiting.pop(run.trial, None)
                self.running[run.trial] = RunningTrial(trial=self._trials[run.trial], epoch=run.epoch)
                self._workers = max(self._workers, len(self.running))
            case "epoch":
                running = self.running[run.trial]
                share = (run.epoch - running.epoch) / running.trial.settings.train.epochs
                self._speed.add(_recipe(running.trial), running.pending_s, max(share, 0.0))
                running.epoch, running.metrics, running.pending_s = run.epoch, run.metrics, 0.0
            case "ended":
                self._waiting.pop(run.trial, None)
                self._ended[run.trial] = run.status
                running = self.running.pop(run.trial, None)
                if running is not None:
                    self._speed.add(_recipe(running.trial), running.pending_s, 0.0)
                    # a failed trial says nothing about the share of epochs that others will train
                    self._trained += [1 - running.left] if run.status != "failed" else []
            case "elsewhere":
                self._waiting.pop(run.trial, None)
                self.running.pop(run.trial, None)
            case _:
                pass

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


class NotebookProgress:
    """A listener with a notebook output that is updated as trials train and end."""

    def __init__(self, name: str, progress: StudyProgress) -> None:
        from IPython.display import display  # noqa: PLC0415 -- no dependency  # pyright: ignore

        self._name, self._progress, self._note = name, progress, ""
        self._shown_at = time.monotonic()
        self._handle: Any = display(self, display_id=True)

    def __call__(self, event: Event) -> None:
        """Update the output for an event."""
        now = time.monotonic()
        self._progress.on_event(event, now)
        match event.kind:
            case "starting_ray":
                words = "its processes load torch (local=True: one model after the other)"
                self._refresh(f"starting Ray … {words}")
            case "stopping":
                self._note = "stopping …"
            case "planned":
                pass
            case _:
                if event.kind == "ended" or now - self._shown_at >= REFRESH_S:
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
