"""Export of a stored search to an Optuna storage, which Optuna's own programs can read."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from statistics import fmean
from typing import Any

import optuna
from optuna.study import StudyDirection
from optuna.trial import TrialState

from ..engine.run.search.optuna_study import frozen_trial, quiet_optuna
from ..engine.run.search.stored_points import PointEnd, SearchPoint, StoredPoints, mean_course
from ..reporting.outcomes import load_outcomes
from ..storage import Store
from ..storage.place import is_address
from ..storage.rows import row_values
from ..studies.planning.final_values import ValueStatus
from ..studies.planning.status import study_outcomes
from ..studies.schema.factors import first_line
from ..studies.searches.points import find_points
from ..studies.study import Study
from .contract import TrackingError
from .export import StudyExport

_OURS = "activemem"
"""The attribute with our data: a study's title, or a trial's attempts."""


@quiet_optuna()
def export_search(study: Study, store: Store, place: str) -> StudyExport:
    """Write the ended points of a search into an SQLite file, as Optuna trials.

    Points that the file already has are skipped. A point is added again if it has ended again since its
    export, for example because a failed trial was retried. A point with a diverged training has failed, as it
    has no place in the search's ranking. Raises TrackingError.
    """
    if study.search is None:
        raise TrackingError(f"optuna: expected a study with [search], got {study.name}, which is a grid")
    if is_address(place) or "?" in place:
        raise TrackingError(f"optuna: expected an SQLite file such as search.db, got {place!r}")
    points = StoredPoints(study, store)
    outcomes = load_outcomes(store, study)
    rows = study_outcomes(study, outcomes)
    stored = {trial: row["status"] for trial, row in points.attempts.items()}
    ended: dict[str, SearchPoint] = {}  # each on its last rung
    for point in points.of_levels(json.loads(text) for text in rows.sort("finished")["factors"]):
        earlier = ended.get(point.global_id)
        unfinished = any(stored.get(trial.id, "incomplete") == "incomplete" for trial in point.trials)
        if not unfinished and (earlier is None or earlier.rung < point.rung):
            ended[point.global_id] = point
    found = find_points(study, outcomes).points
    diverged = [point.values for point in found if point.status == ValueStatus.DIVERGED]
    courses, rungs = points.courses([*ended.values()]), study.search.rungs
    trials, epochs = 0, 0
    with _optuna_study(study, place) as written:
        exported = written.get_trials(deepcopy=False)
        known = [(trial.user_attrs.get(_OURS), trial.user_attrs.get("seconds")) for trial in exported]
        for point in ended.values():
            attempts = [points.attempts[trial.id] for trial in point.trials]
            notes = _notes(point, attempts)
            if (notes[_OURS], notes["seconds"]) in known:
                continue
            course, end = mean_course(point, courses), points.end(point)
            if point.values in diverged:
                end = PointEnd(TrialState.FAIL, end.epoch)
                notes.setdefault("reason", "the training diverged")
            trial = frozen_trial(study, point, end, course=course, notes=notes)
            if point.rung < rungs.top and trial.state == TrialState.COMPLETE:
                # Optuna calls a point pruned that stopped at a low rung, with an intermediate value there
                trial.intermediate_values = {rungs.rungs[point.rung]: trial.values[0]}
                trial.values, trial.state = None, TrialState.PRUNED
            trial.datetime_start = _local(min(row["started"] for row in attempts))
            trial.datetime_complete = _local(max(row["finished"] for row in attempts))
            try:
                written.add_trial(trial)
            except ValueError as error:  # Optuna allows one distribution for each dimension
                space = f"{place} has {written.study_name} with another search space"
                raise TrackingError(f"optuna: {space}; give another file: {error}") from error
            trials, epochs = trials + 1, epochs + len(course)
    return StudyExport(trials=trials, epochs=epochs, known=len(ended) - trials, tables=0)


@contextmanager
def _optuna_study(study: Study, place: str) -> Iterator[optuna.Study]:
    """Within this context, open or create the Optuna study that has the name of `study` in a file."""
    Path(place).parent.mkdir(parents=True, exist_ok=True)
    try:
        storage = optuna.storages.RDBStorage(f"sqlite:///{place}")
    except Exception as error:  # a file that is no database raises errors of many kinds
        raise TrackingError(f"optuna: expected an Optuna storage in {place}, got: {error}") from error
    try:
        yield _find(study, storage, place)
    finally:
        # without both calls, SQLite keeps the file open
        storage.remove_session()
        storage.engine.dispose()


def _find(study: Study, storage: optuna.storages.RDBStorage, place: str) -> optuna.Study:
    assert study.search is not None
    goals = study.search.settings.objectives
    names = [each.name for each in goals]
    directions = [StudyDirection.MAXIMIZE if each.maximise else StudyDirection.MINIMIZE for each in goals]
    if study.name not in optuna.get_all_study_names(storage):
        made = optuna.create_study(storage=storage, study_name=study.name, directions=directions)
        made.set_user_attr(_OURS, study.title)
        with warnings.catch_warnings():
            # `set_metric_names` is experimental in Optuna 5.0
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            made.set_metric_names(names)
        return made
    found = optuna.load_study(study_name=study.name, storage=storage)
    known = found.metric_names, found.directions
    if _OURS not in found.user_attrs or known != (names, directions):
        raise TrackingError(
            f"optuna: {place} already has another study {study.name}, not an export of this search by "
            f"{', '.join(names)}: give another file"
        )
    return found


def _notes(point: SearchPoint, attempts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    metrics: dict[str, list[float]] = {}
    for row in attempts:
        for name, value in row_values(row).items():
            metrics.setdefault(name, []).append(value)
    means = {f"final/{name}": fmean(values) for name, values in metrics.items() if "[" not in name}
    reasons = [first_line(row["reason"]) for row in attempts if row["reason"]]
    return {
        _OURS: {row["trial"]: row["attempt"] for row in attempts},
        "recipe": point.trials[0].settings.model.recipe,
        "seconds": sum(row["seconds"] for row in attempts),
        **({"reason": reasons[0]} if reasons else {}),
        **{name: mean for name, mean in means.items() if math.isfinite(mean)},
    }


def _local(moment: datetime) -> datetime:
    """Return a time in this machine's time zone, as Optuna stores it."""
    return moment.astimezone().replace(tzinfo=None)
