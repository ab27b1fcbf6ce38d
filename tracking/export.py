"""Export of a stored study and its tables to a tracker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import ActivememError
from ..reporting.results import StudyResults
from ..storage import Store
from ..storage.rows import has_trial, row_values
from ..studies.planning.status import outcome_trials, stored_outcomes, study_outcomes
from ..studies.resolve.trial import Trial
from ..studies.study import Study
from .contract import Known, TrackedEnd, TrackedTable, Tracker, TrackingError
from .feed import tracked_trial


def tracked_tables(study: Study, store: Store) -> list[TrackedTable]:
    """Return all tables of a study, with the results in a store."""
    shown = StudyResults(study, store).tables() if study.tables else []
    return [
        TrackedTable(name=each.name, markdown=each.render("markdown"), csv=each.render("csv"))
        for each in shown
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyExport:
    """Counts of exported trials, epochs and tables, and of the trials that the tracker already had."""

    trials: int
    epochs: int
    known: int
    tables: int


def export_study(study: Study, store: Store, tracker: Tracker) -> StudyExport:
    """Send all stored outcomes and tables of a study to a tracker, and close the tracker.

    Outcomes of added seeds are among them. A trial that the tracker has completely is skipped, and no epoch
    is sent twice. A trial that was trained again replaces its earlier record. Raises TrackingError.
    """
    whole = study.with_later_seeds()
    outcomes = study_outcomes(whole, stored_outcomes(store, whole))
    trials, courses = outcome_trials(whole, outcomes), _courses(store, list(outcomes["trial"]))
    tables = tracked_tables(study, store)
    try:
        sent = [
            _export_trial(trials[row["trial"]], row, courses.get(row["trial"], {}), tracker)
            for row in outcomes.iter_rows(named=True)
        ]
        if tables:
            tracker.show_tables(study.name, tables)
        tracker.close()
    except ActivememError:
        raise
    except Exception as error:  # libraries raise any kind
        raise TrackingError(f"the export failed, and can be repeated: {error}") from error
    new = [epochs for epochs in sent if epochs is not None]
    return StudyExport(trials=len(new), epochs=sum(new), known=len(sent) - len(new), tables=len(tables))


def _export_trial(
    trial: Trial, row: Mapping[str, Any], course: Mapping[int, Mapping[str, float]], tracker: Tracker
) -> int | None:
    """Send the missing epochs and the end of a trial, and return how many; None if nothing was missing."""
    shown, started, finished = tracked_trial(trial), row["started"].timestamp(), row["finished"].timestamp()
    known = tracker.known(shown)
    if known.ended is not None and known.ended < started:
        tracker.remove(shown)
        known = Known()
    new = {epoch: metrics for epoch, metrics in course.items() if epoch not in known.epochs}
    if known.status == row["status"] and not new:
        return None
    tracker.begin(shown, started)
    for epoch, metrics in new.items():
        tracker.log(shown, epoch, metrics, finished)  # the store has no times of single epochs
    final = row_values(row)
    tracker.end(shown, TrackedEnd(status=row["status"], reason=row["reason"], metrics=final, at=finished))
    return len(new)


def _courses(store: Store, trials: Sequence[str]) -> dict[str, dict[int, dict[str, float]]]:
    courses: dict[str, dict[int, dict[str, float]]] = {}
    rows = store.metric_course(None, store.trials().filter(has_trial(trials)))
    for trial, epoch, name, value in rows.select("trial", "epoch", "name", "value").iter_rows():
        courses.setdefault(trial, {}).setdefault(epoch, {})[name] = value
    return courses
