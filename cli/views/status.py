"""The status of a study: lines for trials that failed and that have begun, and the same for a program."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain
from typing import TYPE_CHECKING

from ...reporting.results import StudyResults
from ...reporting.tables.unsolved import SOLVED_LENGTH, unsolved_sentence
from ...storage import Store
from ...studies.planning.status import StudyStatus, study_status
from ...studies.resolve.trial import Trial
from ...studies.schema.factors import SEED
from ...studies.schema.search_settings import SearchObjective, find_quantity
from ...studies.searches.points import BestPoint, SearchPoints, best_of, comparison_note
from ...studies.searches.words import left_out
from ...studies.study import Study
from ...studies.text.units import format_duration, labelled_lines, truncate
from ..output import output_width
from . import trial_lines
from .trial_names import TrialNameColumns, value_text

if TYPE_CHECKING:
    from ...engine.run.driver import Summary

_MAX_REASON_WIDTH = 60


def format_failures(reasons: Sequence[tuple[str, int]]) -> list[str]:
    """Return a line for each reason why trials failed."""
    return [f"  {count} failed   {truncate(reason, _MAX_REASON_WIDTH)}" for reason, count in reasons]


def format_unfinished(study: Study, study_status: StudyStatus) -> list[str]:
    """Return a line for each trial that has begun, the latest first: how far it got, and how long ago.

    Trials of a search that wait come last.
    """
    trials = {**{trial.id: trial for trial in study.trials}, **study_status.begun}
    clock = datetime.now(UTC)
    rows: list[tuple[Trial, list[str]]] = []
    for name, progress in study_status.progress.items():
        ago = f"{format_duration((clock - progress.saved_at).total_seconds())} ago"
        rows.append(
            (trials[name], [*trial_lines.progress_words(trials[name], progress.epoch, progress.metrics), ago])
        )
    rows += [
        (trial, ["begun"]) for name, trial in study_status.begun.items() if name not in study_status.progress
    ]
    rows += [(trial, ["waiting"]) for trial in study_status.waiting]
    return trial_lines.format_trials(
        rows, TrialNameColumns([*trials.values(), *study_status.waiting]), output_width()
    )


def status_to_dict(study_status: StudyStatus) -> dict[str, object]:
    """Return the status for a program: counts of trials, progress of begun ones, reasons of failures."""
    counts = study_status.counts
    return {
        "trials": study_status.total,
        **{status: counts[status] for status in ("done", "failed", "pruned", "incomplete")},
        "left": study_status.num_remaining,
        "spent": study_status.spent or None,
        "begun": len(study_status.started),
        "reached": [
            {
                "trial": name,
                "epoch": progress.epoch,
                "metrics": _finite_or_null(progress.metrics),
                "at": progress.saved_at.isoformat(),
            }
            for name, progress in study_status.progress.items()
        ],
        "waiting": [
            {
                "trial": each.id,
                "values": {name: level for name, level in each.levels.items() if name != SEED},
                "seed": each.settings.seed,
            }
            for each in study_status.waiting
        ],
        "weightless": len(study_status.missing_weights),
        "stale": len(study_status.stale),
        "reasons": dict(study_status.failure_reasons),
    }


def status_page(study: Study, store: Store) -> dict[str, object]:
    """Return a study's status for a program, with the best points of a search."""
    found = StudyResults(study, store).points
    best = best_of(study.search, found) if study.search and found else []
    points = [{"values": each.values, "mean": each.mean, "means": list(each.means)} for each in best]
    status = status_to_dict(study_status(study, store))
    gaps = [{"points": count, "reason": reason} for count, reason in left_out(found)] if found else []
    return {"study": study.name, "title": study.title, **status, "best": points, "left_out": gaps}


def run_page(study: Study, store: Store, summary: Summary | None, resume_command: str) -> dict[str, object]:
    """Return a run's end and its study's status for a program; without a summary the run was left at once."""
    run: dict[str, object] = {"stopped": True, "reason": None, "given_up": [], "resume": resume_command}
    if summary is not None:
        ended = not (summary.stopped or summary.stop_reason)
        run = {
            "stopped": summary.stopped,
            "reason": summary.stop_reason,
            "given_up": list(summary.given_up),
            "resume": None if ended else resume_command,
        }
    return {**status_page(study, store), "run": run}


def _objective_column(objective: SearchObjective, best: Sequence[BestPoint], place: int) -> list[str]:
    metric = find_quantity(objective.name)
    assert metric is not None, "an objective of a study that was read"
    means = [metric.format(each.means[place]) for each in best]
    width = max(map(len, means), default=0)
    return [f"{objective.name} {mean:>{width}}" for mean in means]


def _finite_or_null(metrics: Mapping[str, float]) -> dict[str, float | None]:
    return {name: value if math.isfinite(value) else None for name, value in metrics.items()}


def format_best_points(study: Study, found: SearchPoints | None) -> list[str]:
    """Return a line for each of the best points of a search, and for each reason why others are left out."""
    if study.search is None or found is None:
        return []
    best = best_of(study.search, found)
    columns = [_objective_column(each, best, place) for place, each in enumerate(study.search.objectives)]
    texts = ["  ".join(f"{name}={value_text(each.values[name])}" for name in each.values) for each in best]
    lines = [
        truncate(f"  {'  '.join(means)}   {text}", output_width())
        for *means, text in zip(*columns, texts, strict=True)
    ]
    lengths = [
        point.measured[SOLVED_LENGTH].values() for point in found.ranked() if SOLVED_LENGTH in point.measured
    ]
    unsolved = unsolved_sentence([*chain(*lengths)], [trial.settings for trial in found.trained])
    note = comparison_note(study) if best else ""
    gaps = [truncate(f"  {count} left out   {reason}", output_width()) for count, reason in left_out(found)]
    notes = [each for text in (unsolved, note) for each in labelled_lines("note", text, output_width())]
    return [*lines, *gaps, *notes]
