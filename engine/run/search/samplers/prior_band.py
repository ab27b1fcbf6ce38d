"""PriorBand (Mallik et al. 2023): points are drawn anywhere, near a prior, or near the best point so far.

Of those that begin on rung r 1 / (1 + η^r) are drawn anywhere. The prior has the rest until a point has ended
on the last rung; then it and the best point share it by how near the best few points are to each. All that is
drawn follows from the seed and from what has ended.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from .numbers import draw
from .prior import Prior

CHANGED = 0.5
"""The share of dimensions in which a point near the best one differs from it."""


class PriorBandSampler(optuna.samplers.BaseSampler):
    """Draws each point from one of three sources; a search says before where the point begins."""

    def __init__(self, values: Mapping[str, Any], *, seed: int, reduction: int) -> None:
        self._prior = Prior(values, 1.0)
        self._seed, self._reduction = seed, reduction
        self._rung, self._key, self._has_whole = 0, "", False
        self._asked, self._tries, self._source = -1, 0, "random"
        self._best: dict[str, Any] = {}

    def begin(self, rung: int, *, known: int, has_whole: bool) -> None:
        """The next proposals are for a point of a rung, of a search that knows so many points.

        Points near the best one are drawn once a point has ended on the last rung.
        """
        self._rung, self._has_whole, self._asked, self._tries = rung, has_whole, -1, 0
        self._key = f"priorband {self._seed} {known}"

    def infer_relative_search_space(
        self, study: optuna.Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """None: dimensions are drawn one by one."""
        del study, trial
        return {}

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Nothing, as above."""
        del study, trial, search_space
        return {}

    def sample_independent(
        self, study: optuna.Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:  # noqa: ANN401 -- as Optuna has it
        """A value by the source of this point."""
        self._choose_source(study, trial.number)
        rng = Random(f"{self._key} {self._tries} {param_name}")
        if self._source == "prior":
            return self._prior.draw(param_name, param_distribution, rng)
        if self._source == "best" and param_name in self._best:
            if rng.random() >= CHANGED:
                return self._best[param_name]
            return Prior(self._best, 1.0).draw(param_name, param_distribution, rng)
        return draw(param_distribution, rng)

    def _choose_source(self, study: optuna.Study, number: int) -> None:
        """Decide where the point of a trial is drawn, when its first dimension is asked for."""
        if number == self._asked:
            return
        self._asked, self._tries = number, self._tries + 1
        best = self._best_points(study)
        self._best = best[0].params if best else {}
        shares = source_shares(
            self._prior, [(each.params, each.distributions) for each in best], self._rung, self._reduction
        )
        names = list(shares)
        rng = Random(f"{self._key} {self._tries}")
        self._source = rng.choices(names, [shares[name] for name in names])[0]

    def _best_points(self, study: optuna.Study) -> Sequence[FrozenTrial]:
        """As many of the points that have ended as one of a rung goes on of, the best first."""
        if not self._has_whole:
            return []
        ended = study.get_trials(deepcopy=False, states=[TrialState.COMPLETE])
        sign = -1 if study.direction == StudyDirection.MAXIMIZE else 1
        best = sorted(ended, key=lambda each: sign * (each.value or 0.0))[: self._reduction]
        return best if len(best) == self._reduction else []


def source_shares(
    prior: Prior,
    best: Sequence[tuple[Mapping[str, Any], Mapping[str, BaseDistribution]]],
    rung: int,
    reduction: int,
) -> dict[str, float]:
    """How likely a point is drawn anywhere, near the prior, and near the first of the best points."""
    anywhere = 1 / (1 + reduction**rung)
    if not best:
        return {"random": anywhere, "prior": 1 - anywhere, "best": 0.0}
    incumbent, space = Prior(best[0][0], 1.0), {name: each for _, of in best for name, each in of.items()}
    weights = range(len(best), 0, -1)
    near_prior, near_best = (
        sum(
            weight * belief.likelihood(values, space)
            for weight, (values, _) in zip(weights, best, strict=True)
        )
        for belief in (prior, incumbent)
    )
    share = near_prior / (near_prior + near_best)
    return {"random": anywhere, "prior": (1 - anywhere) * share, "best": (1 - anywhere) * (1 - share)}
