"""Run a study, then add seeds where claims and tables are undecided, until a budget is spent or all is."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from ...reporting.added_seeds.of_tables import asks_for_seeds
from ...reporting.claims.verdicts import count_verdicts
from ...reporting.results import StudyResults
from ...studies.rounds import follow_rounds
from ...studies.study import Study
from ...studies.text.errors import StudyError, StudyFault
from ...studies.text.units import format_duration, plural
from ..machine_settings import ResolvedSettings
from ..output import print_stderr
from .run import RunRequest, run_and_report

if TYPE_CHECKING:
    from ...engine.run.driver import Summary
    from ...reporting.added_seeds.candidate import NextSeeds


def check_can_add_seeds(study: Study) -> None:
    """Raise StudyError for a study with nothing to decide, or that does not say that seeds may be added."""
    faults: list[StudyFault] = []
    if not study.claims and not asks_for_seeds(study):
        what = "[[claim]], or [[table]] with smallest_difference"
        faults.append(StudyFault(message=f"--until-decided: expected a study with {what}, got none"))
    if study.max_seeds is None:
        why = (
            "whether to add seeds is to be said before the results are seen, as what is decided depends on it"
        )
        faults.append(StudyFault(message=f"--until-decided: expected max_seeds in [study], got none: {why}"))
    if faults:
        raise StudyError(study.name, faults)


def run_until_decided(
    request: RunRequest, settings: ResolvedSettings, budget_s: float | None
) -> Summary | None:
    """Run a study and what `next_seeds` adds to it; the summary of the last run, None if interrupted at once.

    `budget_s` bounds the seconds that all added trials train.
    """
    summary = run_and_report(request, settings)
    study, spent = follow_rounds(request.study, settings.store), 0.0  # whose rounds the run has gone on with
    results = StudyResults(study, settings.store)
    while summary is not None and not summary.stopped:
        left = None if budget_s is None else max(0.0, budget_s - spent)
        found = results.next_seeds(seconds=left)
        if found is None or left == 0.0:
            _print_verdicts(results, spent)
            return summary
        print_stderr(_told(found))
        ids = frozenset(trial.id for trial in found.trials)
        study = study.with_trials(found.trials)
        summary = run_and_report(replace(request, study=study, trial_ids=ids), settings)
        ended = settings.store.trials().filter(pl.col("trial").is_in(list(ids)), pl.col("status") == "done")
        spent += math.fsum(ended["seconds"])
        if not len(ended):
            print_stderr("no seed was added, as none of these trials was trained to its end")
            return summary
    return summary


def _told(found: NextSeeds) -> str:
    time = "" if found.seconds is None else f", about {format_duration(found.seconds)}"
    adds = f"{plural(len(found.trials), 'trial')} up to {found.seeds} seeds{time}"
    name = found.name if found.kind == "claim" else f"table {found.name}"
    if found.chance is None or found.expected is None:
        return f"{name}: {adds}; one seed has no spread to judge by"
    if found.kind == "claim":
        return f"{name}: {adds}; decided with a chance of {found.chance:.0%} at {found.seeds_then}"
    of = f"{found.expected:.1f} of {plural(found.undecided, 'difference')}"
    return f"{name}: {adds}; {of} expected to be decided at {found.seeds_then}"


def _print_verdicts(results: StudyResults, spent: float) -> None:
    told: list[str] = []
    if results.study.claims:
        told.append(f"claims {count_verdicts(results.check_claims())}")
    if asks_for_seeds(results.study):
        decided, every = results.decided_differences()
        told.append(f"tables {decided} of {plural(every, 'difference')} decided")
    told.append(f"added seeds trained for {format_duration(spent)}")
    print_stderr(f"{results.study.name}: {'; '.join(told)}")
