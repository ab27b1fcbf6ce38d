"""The importance of the dimensions of a search, by Optuna's PED-ANOVA."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import optuna
from optuna.trial import TrialState

from ..engine.run.search.optuna_study import frozen_trial, quiet_optuna
from ..engine.run.search.stored_points import PointEnd, SearchPoint
from ..reporting.outcomes import load_outcomes
from ..storage import Store
from ..studies.planning.final_values import ValueStatus
from ..studies.searches.points import find_points
from ..studies.study import Study
from .contract import TrackingError

_LEAST_POINTS = 10
"""The least number of ranked points for which an importance is estimated."""


class Importances(NamedTuple):
    """The share of each dimension of a search, the largest first, and the number of points behind them."""

    shares: dict[str, float]
    points: int


@quiet_optuna()
def dimension_importances(study: Study, store: Store, metric: str | None = None) -> Importances:
    """Return the importance of each dimension for an objective, the largest first: together they are 1.

    A dimension is important if its values in the best tenth of the points differ from those in all points
    (Watanabe, Bansal and Hutter 2023). It uses the points that the search ranks. A dimension that only some
    points have is compared among these (conditional PED-ANOVA). `metric` names one of several objectives.
    Raise TrackingError for a study without a search, for another metric, and for fewer than 10 points.
    """
    if study.search is None:
        raise TrackingError(f"expected a study with [search], got {study.name}")
    goals = {goal.name: goal for goal in study.search.settings.objectives}
    if metric is None and len(goals) == 1:
        (metric,) = goals
    if metric is None or metric not in goals:
        known = " or ".join(goals)
        raise TrackingError(f"{study.name}: expected --metric {known}, got {metric or 'none'}")
    found = find_points(study, load_outcomes(store, study))
    if (count := len(found.complete)) < _LEAST_POINTS:
        pruned = sum(point.status == ValueStatus.PRUNED for point in found.points)
        others = f"; {pruned} were pruned" if pruned else ""
        raise TrackingError(
            f"{study.name}: expected at least {_LEAST_POINTS} ranked points, got {count}{others}: "
            "continue the search; raise [search] trials if it has ended"
        )
    searched = optuna.create_study(direction="maximize" if goals[metric].maximise else "minimize")
    for point in found.complete:
        end = PointEnd(TrialState.COMPLETE, 0, (point.mean(metric) or 0.0,))
        searched.add_trial(frozen_trial(study, SearchPoint(dict(point.values), ()), end))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the evaluator is experimental in Optuna
        evaluator = optuna.importance.PedAnovaImportanceEvaluator()
        shares = optuna.importance.get_param_importances(searched, evaluator=evaluator)
    return Importances(shares, count)
