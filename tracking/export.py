"""Export of a stored study and its tables to a tracker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import ActivememError
from ..reporting.results import StudyResults
from ..storage import Store
from ..storage.rows import has_trial, row_values
from ..studies.planning.status import outcome_trials, stored_outcomes, study_outcomes
from ..studies.study import Study
from .contract import TrackedEnd, TrackedTable, Tracker, TrackingError
from .feed import StoredRecord, send_record, tracked_trial


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


def stored_records(study: Study, store: Store) -> list[StoredRecord]:
    """Return the stored outcomes of a study, with those of added seeds, as trackers get them."""
    whole = study.with_later_seeds()
    outcomes = study_outcomes(whole, stored_outcomes(store, whole))
    trials, courses = outcome_trials(whole, outcomes), _courses(store, list(outcomes["trial"]))
    return [
        StoredRecord(
            trial=tracked_trial(trials[row["trial"]]),
            started=row["started"].timestamp(),
            course=courses.get(row["trial"], {}),
            end=TrackedEnd(
                status=row["status"],
                reason=row["reason"],
                metrics=row_values(row),
                at=row["finished"].timestamp(),
            ),
        )
        for row in outcomes.iter_rows(named=True)
    ]


def export_study(study: Study, store: Store, tracker: Tracker) -> StudyExport:
    """Send all stored outcomes and tables of a study to a tracker, and close the tracker.

    A trial that the tracker has completely is skipped, and no epoch is sent twice. A trial that was trained
    again replaces its earlier record. Raises TrackingError.
    """
    records, tables = stored_records(study, store), tracked_tables(study, store)
    try:
        sent = [send_record(record, tracker) for record in records]
        if tables:
            tracker.show_tables(study.name, tables)
        tracker.close()
    except ActivememError:
        raise
    except Exception as error:  # libraries raise any kind
        raise TrackingError(f"the export failed, and can be repeated: {error}") from error
    new = [epochs for epochs in sent if epochs is not None]
    return StudyExport(trials=len(new), epochs=sum(new), known=len(sent) - len(new), tables=len(tables))


def _courses(store: Store, trials: Sequence[str]) -> dict[str, dict[int, dict[str, float]]]:
    courses: dict[str, dict[int, dict[str, float]]] = {}
    rows = store.metric_course(None, store.trials().filter(has_trial(trials)))
    for trial, epoch, name, value in rows.select("trial", "epoch", "name", "value").iter_rows():
        courses.setdefault(trial, {}).setdefault(epoch, {})[name] = value
    return courses
