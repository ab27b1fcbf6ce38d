"""The program of `study run`, with a live display and a summary.

It also adds seeds until claims are decided. The summary has the command to continue.
"""

from __future__ import annotations

import math
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from textwrap import wrap
from typing import TYPE_CHECKING

import polars as pl
import typer

from ...engine.core.events import Event, Listener, initial_progress
from ...reporting.claims.verdicts import OPEN, count_verdicts
from ...reporting.results import StudyResults
from ...reporting.tables.render import rich
from ...storage import Store, StoreError
from ...studies.last_run import describe_taken_name, load_to_run
from ...studies.late_changes import describe_max_seeds
from ...studies.planning.reused_trials import describe_stale, keep_stale_trials
from ...studies.planning.status import StudyStatus, stored_outcomes
from ...studies.planning.trials_to_run import own_costs, select_shard, select_trials
from ...studies.study import Study
from ...studies.text.errors import StudyError, StudyFault, command_line
from ...studies.text.units import WIDTH, format_duration, labelled_lines, plural
from ..json_output import print_json
from ..machine_settings import ResolvedSettings, SettingsError, load_settings
from ..missing_results import DEFAULT_RESULTS, note_old_values, note_other_results
from ..options import RunOptions
from ..output import EXIT_WRONG_INPUT, has_styles, output_width, print_stderr, waiting
from ..views.status import explain_failures, format_best_points, status_facts
from ..views.trial_lines import TrialNameColumns, headline_of
from .display import live_display

if TYPE_CHECKING:
    from ...engine.run.driver import Summary
    from ...reporting.added_seeds import NextSeeds
    from ...tracking.contract import Tracker

CONNECT_TIMEOUT_S = 5.0

MAX_TABLE_LINES = 40
"""The maximum number of table lines at the end of a run; a taller terminal allows more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """A requested run: a study, the options of the command, and the ids of selected trials; None for all."""

    study: Study
    options: RunOptions
    trial_ids: frozenset[str] | None
    max_trials: int | None

    @property
    def resume_command(self) -> str:
        """Return the command that continues this run."""
        return self.options.command(self.study.document.overrides)


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """A run that was not interrupted at once, with the study's results and status after it."""

    summary: Summary
    results: StudyResults
    status: StudyStatus


def run_and_report(request: RunRequest, settings: ResolvedSettings) -> FinishedRun | None:
    """Run a study, and print its summary. Return None if an interrupt ended the run at once.

    Raise MachineError, with the command to continue, if a machine fails. If the head node of the Ray cluster
    has been lost, end this process at once.
    """
    from ...tracking.contract import open_trackers

    store, study, options = settings.store, request.study, request.options
    if not options.local:
        _check_reachable(settings.values.address)
    trackers: Mapping[str, Tracker] = {}
    if settings.track:  # a wrong tracker is reported before torch loads
        trackers = open_trackers(settings.track)
    with waiting("loading torch"):
        from ...engine.run.driver import RunArguments, run_until_stopped
        from ...engine.trial.failures import HeadLostError, MachineError

    started = time.monotonic()
    if options.keep_stale and (kept := keep_stale_trials(study, store, request.trial_ids)):
        print_stderr(f"{describe_stale(kept)}; their results are reused, half-trained trials begin again")
    headline = headline_of(study, store)
    names = TrialNameColumns.of(study)
    try:
        with (
            nullcontext() if options.local else _last_words(request),
            live_display(
                study.name, initial_progress(study, store, request.max_trials), names, headline
            ) as display,
            _tracked(display, trackers, study, store) as listener,
        ):
            summary = run_until_stopped(
                study,
                store,
                # workers have another working directory
                replace(settings.machine, data=settings.data.resolve()),
                listener,
                RunArguments(
                    local=options.local,
                    max_trials=request.max_trials,
                    max_failures=options.max_failures,
                    retry_failed=options.retry_failed,
                    trial_ids=request.trial_ids,
                ),
            )
    except KeyboardInterrupt:
        print_stderr(f"stopped at once; all finished epochs are stored. Continue: {request.resume_command}")
        return None
    except MachineError as error:
        text = f"stopped: {error}. No trial counts as failed. Continue: {request.resume_command}"
        if isinstance(error, HeadLostError):
            print_stderr(text)
            os._exit(EXIT_WRONG_INPUT)  # Ray would wait for the head, and then end the process itself
        raise type(error)(text) from error
    results = StudyResults(study, store)
    ended = FinishedRun(summary, results, results.status)
    _print_summary(request, ended, time.monotonic() - started)
    return ended


@contextmanager
def _last_words(request: RunRequest) -> Iterator[None]:
    """Let another process say how to continue if this one ends within this context without a word.

    Ray ends the driver at once if the node of its machine is lost.
    """
    text = (
        "stopped: the run has been killed, or Ray has ended it because one of Ray's processes was killed, "
        "often for lack of memory; all finished epochs are stored, and no trial counts as failed. "
        f"Continue: {request.resume_command}"
    )
    script = "import sys; sys.stdin.buffer.read() or print(sys.argv[1], file=sys.stderr)"
    command = [sys.executable, "-I", "-S", "-c", script, text]
    with subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True) as other:
        try:
            yield
        finally:
            other.communicate(b"ended")


@contextmanager
def _tracked(
    listener: Listener, trackers: Mapping[str, Tracker], study: Study, store: Store
) -> Iterator[Listener]:
    """Yield a listener that also sends stored trials, events, and at the end tables to the trackers."""
    from ...tracking.export import stored_records, tracked_tables
    from ...tracking.feed import tracking as track

    if not trackers:
        yield listener
        return
    with track(trackers, print_stderr) as tracked:
        tracked.send_stored(stored_records(study, store))

        def tell_both(event: Event) -> None:
            listener(event)
            tracked(event)

        yield tell_both
        tracked.show_tables(study.name, tracked_tables(study, store))


def _print_summary(request: RunRequest, ended: FinishedRun, seconds: float) -> None:
    summary, results, now = ended.summary, ended.results, ended.status
    study = results.study
    ran = f"{plural(summary.ran, 'trial')} ended in {format_duration(seconds)}"
    part = "shard" if request.options.shard else "part" if request.options.only else ""
    own = request.trial_ids or ()
    left = sum(now.stored.get(trial, "incomplete") == "incomplete" for trial in own)
    of_part = f" · {left} of the {plural(len(own), 'trial')} of this {part} left" if part else ""
    heading = f"{request.study.name}: {now.summary()}{of_part} · {ran}"
    for line in (*wrap(heading, WIDTH, subsequent_indent="  "), *explain_failures(study, results.store, now)):
        print_stderr(line)
    for reason in summary.given_up:
        print_stderr(f"  abandoned  {reason}")
    if summary.stopped or summary.stop_reason:
        _print_where_to_look(request, now)
        why = "; all steps so far are stored" if summary.stopped else f" because {summary.stop_reason}"
        print_stderr(f"stopped{why}. Continue: {request.resume_command}")
        return
    has_more = study.search is not None and request.max_trials is None and not now.spent
    if has_more and now.left > 0 and not now.started:
        print_stderr("  no point is left: the space has no further point that meets the constraints")
    for line in format_best_points(study, results.points):
        print_stderr(line)


def _print_where_to_look(request: RunRequest, status: StudyStatus) -> None:
    """Print the command that renders the study's tables, if it has tables and results."""
    study, options, tables = request.study, request.options, len(request.study.tables)
    if tables and status.stored:
        see = command_line("table", "render", study.name, results=options.results, plugin=options.plugin)
        print_stderr(f"see: {see}{f'  ({tables} tables)' if tables > 1 else ''}")


def _print_first_table(results: StudyResults) -> None:
    """Print the first table of a completed study. It is cut to the height of the terminal."""
    columns, lines = shutil.get_terminal_size((WIDTH, MAX_TABLE_LINES))
    styled = has_styles(sys.stderr)
    table = results.table(published=False)
    shown = rich.render(table, width=columns if sys.stderr.isatty() else WIDTH, ansi=styled).splitlines()
    room = max(lines, MAX_TABLE_LINES) - 4
    print_stderr("\n".join(["", *shown[:room]]), styled=styled)
    if len(shown) > room:
        print_stderr(f"… {plural(len(shown) - room, 'more line')}")


def _check_reachable(address: str | None) -> None:
    """Raise SettingsError if nothing answers at the address of a Ray cluster such as `10.0.0.1:6379`."""
    if address is None or address == "auto":
        return
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=CONNECT_TIMEOUT_S).close()
    except (OSError, OverflowError) as error:
        raise SettingsError(f"address: expected a Ray cluster at {address}, got: {error}") from error


def _check_is_kept(store: Store) -> None:
    """Raise SettingsError if the store is in the folder to which Ray copies the files of a submitted job."""
    if any(part.startswith("_ray_pkg_") for part in store.root.resolve().parts):
        raise SettingsError(
            f"results: {store.root.resolve()} is in Ray's copy of --working-dir, which Ray removes: "
            "expected an absolute path that stays, such as --results /shared/results, or a bucket"
        )


def check_can_add_seeds(study: Study) -> None:
    """Raise StudyError if `--until-decided` cannot be used for a study.

    The study needs a claim, and the largest number of seeds in `max_seeds`.
    """
    faults: list[StudyFault] = []
    if not study.claims:
        faults.append(StudyFault(message="--until-decided: expected a study with [[claim]], got none"))
    if study.header.max_seeds is None:
        why = "it must be set before any result is seen, because it affects the decision"
        got = "expected max_seeds in [study], such as max_seeds = 12, got none"
        faults.append(StudyFault(message=f"--until-decided: {got}: {why}"))
    if faults:
        raise StudyError(study.name, faults)


def run_until_decided(
    request: RunRequest, settings: ResolvedSettings, budget_s: float | None
) -> FinishedRun | None:
    """Run a study, and add seeds until its claims are decided.

    Return the last run, or None if an interrupt ended it at once. `budget_s` limits the training seconds of
    all added trials.
    """
    ended, added, spent = run_and_report(request, settings), 0, 0.0
    if ended is None:
        return None
    results, study = ended.results, ended.results.study
    while ended is not None and not ended.summary.stopped:
        left = None if budget_s is None else max(0.0, budget_s - spent)
        found = results.next_seeds(seconds=left)
        if found is None or left == 0.0:
            _print_decisions(results, added, spent, left)
            break
        print_stderr(_announcement(found))
        ids = frozenset(trial.id for trial in found.trials)
        study = study.with_trials(found.trials)
        ended = run_and_report(replace(request, study=study, trial_ids=ids), settings)
        outcomes = own_costs(stored_outcomes(settings.store, study))
        done = outcomes.filter(pl.col("trial").is_in(list(ids)), pl.col("status") == "done")
        spent += math.fsum(done["seconds"])
        added += len(done)
        if not len(done):
            print_stderr("no seed was added, because none of these trials finished")
            break
    return ended and replace(ended, results=results, status=results.status)  # without the added trials


def _announcement(found: NextSeeds) -> str:
    time = "" if found.seconds is None else f", about {format_duration(found.seconds)}"
    adds = f"{plural(len(found.trials), 'trial')} up to {found.seeds} seeds{time}"
    if found.chance is None:
        return f"{found.name}: {adds}; one seed alone has no spread"
    return f"{found.name}: {adds}; decided with probability {found.chance:.0%} at {found.seeds_at_decision}"


def _print_decisions(results: StudyResults, added: int, spent: float, left_s: float | None) -> None:
    """Print how many claims are decided. For undecided ones, print why no seeds are added."""
    claims = results.check_claims()
    training = f", which trained for {format_duration(spent)}" if added else ""
    counts = f"claims {count_verdicts(claims)}; this run added {plural(added, 'trial')}{training}"
    print_stderr(f"{results.study.name}: {counts}")
    if not any(each.verdict in OPEN for each in claims):
        return
    if left_s == 0.0:
        why = "the budget is spent"
    elif left_s is not None and results.next_seeds() is not None:
        why = "the trainings that might decide more take longer than the budget"
    else:
        most = results.study.header.max_seeds
        why = f"with up to max_seeds = {most} seeds, the chance to decide more is below 1 %"
    print_stderr(f"{results.study.name}: no seeds are added: {why}")


def run_from_options(options: RunOptions) -> Summary | None:
    """Run a study with these options, print JSON if requested, and return the summary, if there is one."""
    budget_s = options.budget_s()
    given = {name: getattr(options, name) for name in ("results", "address")}
    settings = load_settings(given)
    _check_is_kept(settings.store)
    with waiting(f"reading {options.study}"):
        study = load_to_run(options.study, settings.store, options.overrides or ())
    try:
        settings.store.check_writable(study.name)
    except StoreError as error:
        try:
            now = StudyResults(study, settings.store).status
        except OSError:
            raise error from None
        if now.left:
            raise
        print_stderr(f"{settings.store.place} takes no new file, and nothing is left to train")
        print_stderr(f"{study.name}: {now.summary()}")
        raise typer.Exit from None
    if options.until_decided:
        check_can_add_seeds(study)
    parts = [select_trials(study, options.only)] if options.only else []
    parts += [select_shard(study, options.shard)] if options.shard is not None else []
    ids = frozenset.intersection(*parts) if parts else None
    request = RunRequest(study=study, options=options, trial_ids=ids, max_trials=options.max_trials)
    _print_notes(study, settings)
    if options.until_decided:
        ended = run_until_decided(request, settings, budget_s)
    else:
        ended = run_and_report(request, settings)
    summary = ended and ended.summary
    if ended is not None and not ended.summary.is_cut_short:
        _print_where_to_look(request, ended.status)
        if ended.results.study.tables and not ended.status.left:
            _print_first_table(ended.results)
    if options.as_json:
        run: dict[str, object] = {
            "stopped": True,
            "reason": None,
            "given_up": (),
            "resume": request.resume_command,
        }
        if summary is not None:
            run |= {"stopped": summary.stopped, "reason": summary.stop_reason, "given_up": summary.given_up}
            run |= {} if summary.stopped or summary.stop_reason else {"resume": None}
        results = ended.results if ended else StudyResults(study, settings.store)
        status = ended.status if ended else results.status
        print_json(status, **{**status_facts(results, status), "run": run})
    return summary


def _print_notes(study: Study, settings: ResolvedSettings) -> None:
    """Print warnings about the study's own data, and notes on names and paths that may be typing errors."""
    from ...engine.run.planning import notes_on_starts

    store = settings.store
    for text in notes_on_starts(study, replace(settings.machine, data=settings.data)):
        print_stderr("\n".join(labelled_lines("start", text, output_width())))
    own = study.own_corpus.summary if study.own_corpus else None
    for text in own.warnings if own else ():
        print_stderr("\n".join(labelled_lines("warning", text, output_width())))
    if store.place != DEFAULT_RESULTS and not store.root.exists():
        print_stderr(f"new store: {store.absolute_place}")
    note_other_results(study, store)
    note_old_values(study, store)
    if note := describe_taken_name(study, store, "from now on"):
        print_stderr(note)
    if note := describe_max_seeds(study, store):
        print_stderr("\n".join(labelled_lines("note", note, output_width())))
