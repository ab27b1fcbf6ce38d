"""Live display of a study that another process runs, read from its store only."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from textwrap import wrap

import polars as pl
from rich.console import Console, Group

from ...reporting.results import StudyResults
from ...reporting.serve.store_reader import StoreReader
from ...reporting.serve.study_now import StudyNow
from ...storage import Store
from ...storage.rows import row_values
from ...studies.planning.status import count_failures, outcome_trials
from ...studies.study import Study
from ...studies.text.errors import StudyError
from ...studies.text.units import WIDTH
from ..output import print_stderr
from ..views.status import explain_failures, format_abandoned, format_best_points, format_failures
from ..views.trial_lines import TrialNameColumns, headline_of
from .display import draw, drawing, format_counts, format_ended, format_running, open_console

MAX_SILENCE_S = 600.0
"""The maximum seconds without output when there is no terminal but progress."""


def watch_study(study: Study, store: Store) -> tuple[StudyNow, bool]:
    """Show a study on standard error until all of its trials have ended.

    Return the last state of the study, and whether all trials have ended. Ctrl-C ends only the watching.
    """
    look_s = store.files.place.look_s
    reader = StoreReader(store, look_s)
    now = _read(reader, study) or _not_begun(study, store)
    console = open_console()
    display = _Display(console, now)
    with drawing(console, display.render), suppress(KeyboardInterrupt):
        while True:
            display.show(now)
            if not (now.left or now.running):
                return now, True
            shown = now
            while now is shown:  # the same object until something has changed
                time.sleep(look_s)
                now = _read(reader, study) or now
    return now, False


def print_end(now: StudyNow) -> bool:
    """Print a summary of a study. Return whether trials have failed."""
    results = StudyResults(now.study, now.store)
    status, points = results.status, results.points
    heading = wrap(f"{now.study.name}: {status.summary()}", WIDTH, subsequent_indent="  ")
    failures = explain_failures(now.study, now.store, status)
    for line in (*heading, *failures, *format_best_points(now.study, points)):
        print_stderr(line)
    return bool(status.counts["failed"])


def _read(reader: StoreReader, study: Study) -> StudyNow | None:
    """Return the study's state; None before its first run. Raise StudyError if its record cannot be read."""
    found = reader.current().get(study.name)
    if isinstance(found, StudyError):
        raise found
    return found


def _not_begun(study: Study, store: Store) -> StudyNow:
    """Return the state of a study that has not run yet. Other studies may have trained some of its trials."""
    found = StudyResults(study, store).now
    own = found.own_outcomes
    return StudyNow(study=study, store=store, outcomes=own, ended=own, begun=())


class _Display:
    """Display of a study that another process runs: live on a terminal, else a line for each ended trial.

    The drawing thread of a live display calls `render`.
    """

    def __init__(self, console: Console, now: StudyNow) -> None:
        self._console = console
        self._shown: tuple[StudyNow, TrialNameColumns, list[str]] | None = None
        self._attempts = dict(now.outcomes.select("trial", "attempt").iter_rows())
        self._printed_at, self._epochs = float("-inf"), -1
        self._headline = headline_of(now.study, now.store)

    def show(self, now: StudyNow) -> None:
        """Show the present state of the study. Without a terminal, print lines about what has changed."""
        if self._console.is_terminal:
            columns = TrialNameColumns.of(now.study, (each.trial for each in now.begun))
            below = [*format_abandoned(len(now.stopped)), *format_failures(count_failures(now.outcomes))]
            # a single assignment, so that the drawing thread never sees parts of two states
            self._shown = now, columns, below
            return
        clock, epochs = time.monotonic(), sum(each.epoch for each in now.running)
        lines = list(self._ended(now))
        silent = epochs != self._epochs and clock - self._printed_at >= MAX_SILENCE_S
        if now.left and silent and not lines:
            lines = [f"{now.study.name}   {_counts(now)}", *format_abandoned(len(now.stopped))]
            self._epochs = epochs
        for line in lines:
            print_stderr(line)
            self._printed_at = clock

    def render(self) -> Group:
        """Return the progress bar and the lines below it, within the terminal's width."""
        if self._shown is None:
            return Group()
        now, columns, below = self._shown
        lines = format_running(now.running, columns, self._console.width, bars=True)
        return draw(now.study.name, now.share, _counts(now), [*lines, *below])

    def _ended(self, now: StudyNow) -> Iterator[str]:
        rows = now.outcomes.filter(pl.col("status") != "incomplete").sort("finished")
        trials = outcome_trials(now.study, rows)
        new = [
            row for row in rows.iter_rows(named=True) if self._attempts.get(row["trial"]) != row["attempt"]
        ]
        self._attempts |= {row["trial"]: row["attempt"] for row in new}
        columns = TrialNameColumns.of(now.study, (trials[row["trial"]] for row in new))
        for number, row in enumerate(new, 1 - len(new)):
            yield format_ended(
                trials[row["trial"]],
                row["status"],
                row["reason"],
                row_values(row),
                count=(now.num_ended + number, now.total),
                columns=columns,
                headline=self._headline,
            )


def _counts(now: StudyNow) -> str:
    ended = now.counts - Counter(incomplete=now.counts["incomplete"])
    return format_counts(ended, now.total, len(now.running), now.eta_s)
