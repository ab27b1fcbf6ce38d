"""Run a study with its options, and add seeds for undecided claims and tables."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from ...reporting.added_seeds import asks_for_seeds
from ...reporting.claims.verdicts import count_verdicts
from ...reporting.results import StudyResults
from ...storage import Store
from ...studies.planning.trials_to_run import select_shard, select_trials
from ...studies.study import Study, follow_rounds, load_study
from ...studies.text.errors import StudyError, StudyFault, command_line
from ...studies.text.units import format_duration, labelled_lines, plural
from ..machine_settings import ResolvedSettings, load_settings
from ..missing_results import DEFAULT_RESULTS
from ..options import RunOptions
from ..output import output_width, print_json, print_stderr
from .run import RunRequest, print_first_table, run_and_report

if TYPE_CHECKING:
    from ...engine.run.driver import Summary
    from ...reporting.added_seeds import NextSeeds


def check_can_add_seeds(study: Study) -> None:
    """Raise StudyError for a study without open questions, or that does not allow more seeds."""
    faults: list[StudyFault] = []
    if not study.claims and not asks_for_seeds(study):
        what = "[[claim]], or [[table]] with smallest_difference"
        faults.append(StudyFault(message=f"--until-decided: expected a study with {what}, got none"))
    if study.header.max_seeds is None:
        why = "it must be set before any result is seen, because it affects the decision"
        got = "expected max_seeds in [study], such as max_seeds = 12, got none"
        faults.append(StudyFault(message=f"--until-decided: {got}: {why}"))
    if faults:
        raise StudyError(study.name, faults)


def run_until_decided(
    request: RunRequest, settings: ResolvedSettings, budget_s: float | None
) -> Summary | None:
    """Run a study and the trials of `next_seeds`; return the last summary, None if interrupted at once.

    `budget_s` limits the training seconds of all added trials.
    """
    summary = run_stages(request, settings)
    study, spent = follow_rounds(request.study, settings.store), 0.0  # whose rounds the run has gone on with
    results = StudyResults(study, settings.store)
    while summary is not None and not summary.stopped:
        left = None if budget_s is None else max(0.0, budget_s - spent)
        found = results.next_seeds(seconds=left)
        if found is None or left == 0.0:
            _print_verdicts(results, spent)
            return summary
        print_stderr(_announcement(found))
        opened = results.open_trials()
        ids = frozenset(trial.id for trial in found.trials)
        study = study.with_trials(found.trials)
        summary = run_and_report(replace(request, study=study, trial_ids=ids), settings)
        ended = settings.store.trials().filter(pl.col("trial").is_in(list(ids)), pl.col("status") == "done")
        spent += math.fsum(ended["seconds"])
        if not len(ended):
            print_stderr("no seed was added, because none of these trials finished")
            return summary
        if summary is not None and not summary.is_cut_short and results.open_trials() - opened:
            summary = run_stages(request, settings)
    return summary


def run_stages(request: RunRequest, settings: ResolvedSettings) -> Summary | None:
    """Run a study, then the trials that its gates open; return the last summary, None if interrupted at once.

    A study without gates has one stage.
    """
    if request.study.gates is None:
        return run_and_report(request, settings)
    results, left = StudyResults(request.study, settings.store), request.max_trials
    opened, further = frozenset[str](), results.open_trials()
    while True:
        opened = further
        ids = opened if request.trial_ids is None else opened & request.trial_ids
        summary = run_and_report(replace(request, trial_ids=ids, max_trials=left), settings)
        further = results.open_trials()
        _print_gates(request.study, further)
        if summary is None or summary.is_cut_short or further == opened:
            return summary
        if left is not None and (left := left - summary.ran) <= 0:
            return summary


def _print_gates(study: Study, opened: frozenset[str]) -> None:
    for number, gate in enumerate(study.gates.gates if study.gates else (), start=1):
        count = len(gate.held & opened)
        print_stderr(f"gate {number}: {count} of {plural(len(gate.held), 'trial')} open")


def _announcement(found: NextSeeds) -> str:
    time = "" if found.seconds is None else f", about {format_duration(found.seconds)}"
    adds = f"{plural(len(found.trials), 'trial')} up to {found.seeds} seeds{time}"
    name = found.name if found.kind == "claim" else f"table {found.name}"
    if found.chance is None or found.expected is None:
        return f"{name}: {adds}; one seed alone has no spread"
    if found.kind == "claim":
        return f"{name}: {adds}; decided with probability {found.chance:.0%} at {found.seeds_at_decision}"
    of = f"{found.expected:.1f} of {plural(found.undecided, 'difference')}"
    return f"{name}: {adds}; {of} expected to be decided at {found.seeds_at_decision}"


def _print_verdicts(results: StudyResults, spent: float) -> None:
    told: list[str] = []
    if results.study.claims:
        told.append(f"claims {count_verdicts(results.check_claims())}")
    if asks_for_seeds(results.study):
        decided, every = results.decided_differences()
        told.append(f"tables {decided} of {plural(every, 'difference')} decided")
    told.append(f"added seeds trained for {format_duration(spent)}")
    print_stderr(f"{results.study.name}: {'; '.join(told)}")


def run_from_options(options: RunOptions) -> Summary | None:
    """Run a study with its options, and print its JSON page if requested; None if interrupted at once."""
    budget_s = options.budget_s()
    settings = load_settings(options.settings())
    study = follow_rounds(load_study(options.study, options.overrides or ()), settings.store)
    if options.until_decided:
        check_can_add_seeds(study)
    request = _request(options, study)
    _print_data_warnings(study)
    _note_new_store(settings)
    _note_other_file(study, settings.store)
    if options.until_decided:
        summary = run_until_decided(request, settings, budget_s)
    else:
        summary = run_stages(request, settings)
    if summary is not None and not summary.is_cut_short:
        print_first_table(request, settings.store)
    if options.as_json:
        from ..pages import RunEntry, StudyStatusPage

        run = RunEntry.of(summary, request.resume_command)
        print_json(StudyStatusPage.of_results(StudyResults(study, settings.store), run))
    return summary


def _note_new_store(settings: ResolvedSettings) -> None:
    """Print where results will be if the folder does not exist yet, since its path may be mistyped."""
    store = settings.store
    if store.address is None and store.place != DEFAULT_RESULTS and not store.root.exists():
        print_stderr(f"new store: {store.absolute_place}")


def _note_other_file(study: Study, store: Store) -> None:
    """Print which other file last ran under this study's name: commands use the latest for the name."""
    record = store.records.load(study.name)
    before = Path(record["path"]) if record and record.get("path") else None
    if record is None or before is None or study.path is None or record["text"] == study.text:
        return
    if before.absolute() != study.path.absolute() and before.exists():
        print_stderr(f"the name {study.name} belonged to {before}; from now on it refers to {study.path}")


def _print_data_warnings(study: Study) -> None:
    summary = study.own_corpus.summary if study.own_corpus else None
    for text in summary.warnings if summary else ():
        print_stderr("\n".join(labelled_lines("warning", text, output_width())))


def _request(options: RunOptions, study: Study) -> RunRequest:
    parts = [select_trials(study, options.only)] if options.only else []
    parts += [select_shard(study, options.shard)] if options.shard is not None else []
    return RunRequest(
        study=study,
        local=options.local,
        trial_ids=frozenset.intersection(*parts) if parts else None,
        max_trials=options.max_trials,
        max_failures=options.max_failures,
        retry_failed=options.retry_failed,
        keep_stale=options.keep_stale,
        resume_command=options.command(study.overrides),
        table_command=_command(options, study, "table", "render"),
        claims_command=_command(options, study, "claim", "check"),
    )


def _command(options: RunOptions, study: Study, *words: str) -> str:
    return command_line(*words, study.name, results=options.results, plugin=options.plugin)
