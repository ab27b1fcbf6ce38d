"""The importance of the dimensions of a search, by Optuna's PED-ANOVA."""

from __future__ import annotations

import json
import warnings
from typing import NamedTuple

import optuna
from optuna.trial import TrialState

from ..engine.run.search.ask_tell import frozen_trial, quiet_optuna
from ..engine.run.search.stored_points import StoredPoints
from ..storage import Store
from ..studies.planning.status import stored_outcomes, study_outcomes
from ..studies.study import Study
from .contract import TrackingError

_LEAST_POINTS = 10
"""The least number of finished points for which an importance is estimated."""


class Importances(NamedTuple):
    """The share of each dimension of a search, the largest first, and the number of points behind them."""

    shares: dict[str, float]
    points: int


@quiet_optuna()
def dimension_importances(study: Study, store: Store) -> Importances:
    """Return the importance of each dimension, the largest first: together they are 1.

    A dimension is important if its values in the best tenth of the points differ from those in all points
    (Watanabe, Bansal and Hutter 2023). Only points whose trials are all done count. A dimension that only
    some points have is compared among these (conditional PED-ANOVA). Raise TrackingError for a study without
    one objective, and for fewer than 10 points.
    """
    if study.search is None or len(study.search.settings.objectives) != 1:
        raise TrackingError(f"expected a study with [search] and one objective, got {study.name}")
    points = StoredPoints(study, store)
    rows = study_outcomes(study, stored_outcomes(store, study))
    found = {
        point.global_id: point
        for point in points.of_levels(json.loads(text) for text in rows.sort("finished")["factors"])
        if all(points.attempts.get(trial.id, {}).get("status") == "done" for trial in point.trials)
    }
    trials = [frozen_trial(study, point, points.end(point)) for point in found.values()]
    complete = [trial for trial in trials if trial.state == TrialState.COMPLETE]
    if len(complete) < _LEAST_POINTS:
        raise TrackingError(f"expected at least {_LEAST_POINTS} finished points, got {len(complete)}")
    (goal,) = study.search.settings.objectives
    searched = optuna.create_study(direction="minimize" if goal.direction == "min" else "maximize")
    searched.add_trials(complete)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the evaluator is experimental in Optuna
        evaluator = optuna.importance.PedAnovaImportanceEvaluator()
        shares = optuna.importance.get_param_importances(searched, evaluator=evaluator)
    return Importances(shares, len(complete))
