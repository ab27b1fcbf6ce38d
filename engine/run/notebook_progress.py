"""Display of a run's progress in a notebook."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from html import escape
from typing import Any

from ...storage import Store
from ...studies.resolve.trial import Trial
from ...studies.study import Study
from ...studies.text.units import format_duration
from ..core.events import NOBODY, Ended, Event, Listener
from ..core.progress import StudyProgress, initial_progress

REFRESH_S = 0.5
"""The minimum seconds between two updates of the display while no trial ends."""


def notebook_listener(study: Study, store: Store, max_trials: int | None) -> Listener:
    """Return a listener that shows progress in the current notebook; outside a notebook, a silent one."""
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
        self._refresh("starting Ray … (local=True trains in this process, without Ray)")

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
