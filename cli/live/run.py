"""Runs of studies: live display, summary at the end, and the command to continue."""

from __future__ import annotations

import os
import shutil
import socket
import sys
import time
from dataclasses import dataclass, replace
from textwrap import wrap
from typing import TYPE_CHECKING

import polars as pl

from ...engine.core.progress import initial_progress
from ...reporting.added_seeds import asks_for_seeds
from ...reporting.results import StudyResults
from ...reporting.tables.render import rich
from ...storage import Store
from ...studies.planning.reused_trials import describe_stale, keep_stale_trials
from ...studies.planning.status import StudyStatus, study_status
from ...studies.study import Study, follow_rounds
from ...studies.text.units import WIDTH, format_duration, plural
from ..machine_settings import ResolvedSettings, SettingsError
from ..output import EXIT_WRONG_INPUT, print_stderr, print_waiting
from ..views.status import explain_failures, format_best_points
from ..views.trial_lines import Headline, headline_of
from ..views.trial_names import PointNames, TrialNameColumns, TrialNames
from .display import live_display

if TYPE_CHECKING:
    from ...engine.run.driver import Summary
    from ...engine.trial.failures import MachineError

CONNECT_TIMEOUT_S = 5.0

MAX_TABLE_LINES = 40
"""The maximum number of table lines at the end of a run; a taller terminal allows more."""

_GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"
"""The greeting of an HTTP/2 client such as Ray's: a preface and empty settings (RFC 9113, section 3.4)."""

_SETTINGS_FRAME = 4
"""The frame type, the fourth byte, of an HTTP/2 server's answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """A run requested on the command line, with the commands to continue it and show its results.

    `trial_ids` are the selected trials, None for all.
    """

    study: Study
    local: bool | None
    trial_ids: frozenset[str] | None
    max_trials: int | None
    max_failures: int | None
    retry_failed: bool
    keep_stale: bool
    resume_command: str
    table_command: str
    claims_command: str


def run_and_report(request: RunRequest, settings: ResolvedSettings) -> Summary | None:
    """Run a study and print a summary; None if it was interrupted at once.

    Raise MachineError, with the command to continue, if a machine fails.
    """
    store, study = settings.store, request.study
    if not request.local:
        _check_reachable(settings.values.address)
    from ...tracking.opening import open_trackers

    trackers = open_trackers(settings.track)
    print_waiting("loading torch")
    from ...engine.run.driver import run_study  # loads torch
    from ...engine.trial.failures import MachineError
    from ...tracking.export import tracked_tables
    from ...tracking.feed import tracking

    started = time.monotonic()
    if request.keep_stale and (kept := keep_stale_trials(request.study, store, request.trial_ids)):
        print_stderr(f"{describe_stale(kept)}; their results are reused")
    headline = headline_of(study, store.trials())
    try:
        with (
            live_display(
                study.name,
                initial_progress(study, store, request.max_trials),
                _names(study),
                headline,
            ) as display,
            tracking(display, trackers, print_stderr) as listener,
        ):
            summary = run_study(
                request.study,
                store,
                # workers have a working directory of their own
                replace(settings.machine, data=settings.data.resolve()),
                listener,
                local=request.local,
                max_trials=request.max_trials,
                max_failures=request.max_failures,
                retry_failed=request.retry_failed,
                trial_ids=request.trial_ids,
            )
            if trackers:
                listener.show_tables(
                    request.study.name, tracked_tables(follow_rounds(request.study, store), store)
                )
    except KeyboardInterrupt:
        print_stderr(f"stopped at once; all finished epochs are stored. Continue: {request.resume_command}")
        return None
    except MachineError as error:
        raise _stopped_by(error, request) from error
    _print_summary(request, summary, store, time.monotonic() - started, headline)
    return summary


def _stopped_by(failure: MachineError, request: RunRequest) -> MachineError:
    """Return the error for a failed machine; if its cluster's head is gone, end this process."""
    from ...engine.trial.failures import HeadLostError

    told = f"stopped: {failure}. No trial counts as failed. Continue: {request.resume_command}"
    if isinstance(failure, HeadLostError):
        print_stderr(told)
        os._exit(EXIT_WRONG_INPUT)  # Ray would wait for the head, and then end the process itself
    return type(failure)(told)


def _names(study: Study) -> TrialNames:
    return TrialNameColumns() if study.search is None else PointNames(study)


def _print_summary(
    request: RunRequest, summary: Summary, store: Store, seconds: float, headline: Headline
) -> None:
    study = follow_rounds(request.study, store)
    now = study_status(study, store)
    ended = f"{plural(summary.ran, 'trial')} ended in {format_duration(seconds)}"
    heading = f"{request.study.name}: {now.summary()} · {ended}"
    for line in (*wrap(heading, WIDTH, subsequent_indent="  "), *explain_failures(study, store, now)):
        print_stderr(line)
    for reason in summary.given_up:
        print_stderr(f"  given up   {reason}")
    if summary.stopped:
        _print_where_to_look(request, now)
        print_stderr(f"stopped; all steps so far are stored. Continue: {request.resume_command}")
        return
    if summary.stop_reason:
        _print_where_to_look(request, now)
        print_stderr(f"stopped because {summary.stop_reason}. Continue: {request.resume_command}")
        return
    if _has_run_out(request, now):
        print_stderr("  no point is left: the space has no other new point that the constraints allow")
    for line in format_best_points(request.study, StudyResults(request.study, store).points):
        print_stderr(line)
    if not _print_where_to_look(request, now) and study.search is None and (best := headline.best_words()):
        print_stderr(f"  {best}")


def _print_where_to_look(request: RunRequest, now: StudyStatus) -> bool:
    """Print the command that renders the tables so far; return whether there are tables and results."""
    tables = len(request.study.tables)
    if not now.stored or not tables:
        return False
    print_stderr(f"see: {request.table_command}{f'  ({tables} tables)' if tables > 1 else ''}")
    return True


def print_first_table(request: RunRequest, store: Store) -> None:
    """Print the first table of a completed study, up to the height of a terminal."""
    results = StudyResults(follow_rounds(request.study, store), store)
    if not results.study.tables or results.status.num_remaining:
        return
    columns, lines = shutil.get_terminal_size((WIDTH, MAX_TABLE_LINES))
    styled = sys.stderr.isatty() and "NO_COLOR" not in os.environ
    table = results.table(published=False)
    shown = rich.render(table, width=columns if sys.stderr.isatty() else WIDTH, ansi=styled).splitlines()
    room = max(lines, MAX_TABLE_LINES) - 4
    print_stderr("\n".join(["", *shown[:room]]), styled=styled)
    if len(shown) > room:
        print_stderr(f"… {plural(len(shown) - room, 'more line')}")
    own = {trial.id for trial in results.study.trials}
    later = {trial.id for trial in results.study.with_later_seeds().trials} - own
    outcomes = results.store.trials()
    added = len(set(outcomes.filter(pl.col("status") == "done")["trial"]) & later)
    if added and results.study.claims and results.study.tables[0] not in asks_for_seeds(results.study):
        seeds, trials = plural(len(results.study.seeds), "seed"), plural(added, "trial")
        print_stderr(
            f"the table uses only the {seeds} of the file; claims also use {trials} with added seeds"
        )
        print_stderr(f"see: {request.claims_command}")


def _has_run_out(request: RunRequest, status: StudyStatus) -> bool:
    """Return whether a completed search has fewer points than requested."""
    if request.study.search is None or request.max_trials is not None or status.spent:
        return False
    return status.num_remaining > 0 and not status.begun and not status.waiting


def _check_reachable(address: str | None) -> None:
    """Raise SettingsError if a host and port do not answer like Ray."""
    if address is None or address == "auto":
        return
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=CONNECT_TIMEOUT_S) as connection:
            connection.sendall(_GREETING)
            answer = connection.recv(9)
    except (OSError, OverflowError) as error:
        raise SettingsError(f"address: expected a Ray cluster at {address}, got: {error}") from error
    if answer[3:4] != bytes([_SETTINGS_FRAME]):
        raise SettingsError(f"address: expected a Ray cluster at {address}, got another service")
