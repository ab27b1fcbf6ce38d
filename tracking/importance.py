"""The importance of the dimensions of a search, by Optuna's PED-ANOVA."""

from __future__ import annotations

import random
import warnings
from collections.abc import Sequence
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


_SHUFFLES, _LEVEL = 99, 0.05


class Importances(NamedTuple):
    """The share of each dimension of a search, the largest first, and the number of points behind them.

    `p_values` say how often a dimension matters as much if the points' values are shuffled.
    """

    shares: dict[str, float]
    points: int
    p_values: dict[str, float]

    @property
    def unclear(self) -> list[str]:
        """Return the dimensions whose importance cannot be told apart from chance: p is above 0.05."""
        return [name for name, p in self.p_values.items() if p > _LEVEL]


@quiet_optuna()
def dimension_importances(study: Study, store: Store, metric: str | None = None) -> Importances:
    """Return the importance of each dimension for an objective, the largest first: together they are 1.

    A dimension is important if its values in the best tenth of the points differ from those in all points
    (Watanabe, Bansal and Hutter 2023). It uses the points that the search ranks. A dimension that only some
    points have is compared among these (conditional PED-ANOVA). `metric` names one of several objectives.

    The p-values are those of a permutation test: 99 times, the values are shuffled among the points.
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
    values = [point.mean(metric) or 0.0 for point in found.complete]
    tried = [SearchPoint(dict(point.values), ()) for point in found.complete]

    def weigh(values: Sequence[float], *, normalize: bool) -> dict[str, float]:
        searched = optuna.create_study(direction="maximize" if goals[metric].maximise else "minimize")
        ends = [PointEnd(TrialState.COMPLETE, 0, (value,)) for value in values]
        searched.add_trials([frozen_trial(study, *each) for each in zip(tried, ends, strict=True)])
        evaluator = optuna.importance.PedAnovaImportanceEvaluator()
        return optuna.importance.get_param_importances(searched, evaluator=evaluator, normalize=normalize)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the evaluator and `normalize` are experimental in Optuna
        shares, weights = weigh(values, normalize=True), weigh(values, normalize=False)
        draw = random.Random(0)
        shuffled = [weigh(draw.sample(values, count), normalize=False) for _ in range(_SHUFFLES)]
    # a weight that is equal but for rounding counts
    p_values = {
        name: (1 + sum(each[name] >= weight * (1 - 1e-9) for each in shuffled)) / (1 + _SHUFFLES)
        for name, weight in weights.items()
    }
    return Importances(shares, count, {name: p_values[name] for name in shares})
