"""Points that fill a space evenly: each new one is the next of a scrambled Sobol sequence that is not known.

The sequence has an axis for each dimension of the search, whether or not a point takes it. A place of it is
passed over if its point is known or over the budget, so that a search which was killed goes on with the point
that would have come, by its points alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.trial import FrozenTrial
from scipy.stats.qmc import Sobol

from .....studies.resolve.study_budget import StudyBudget
from .....studies.schema.settings import Level
from .....studies.study import Study
from .optuna_space import WholePointSampler
from .told_points import KnownOfShown, PointKey, Proposals, point_key

_FIRST = 10
"""2 to the power of this many points of the sequence are made at first."""

_TRIES = 1_000
"""So many places are looked at beyond as many as there are points: the space may have nothing new."""


class QuasiRandomSampler(WholePointSampler):
    """Sobol's sequence (1967) with Owen's scrambling (1998) over the dimensions of a search, by a seed."""

    def __init__(self, study: Study, *, seed: int) -> None:
        super().__init__(study)
        self._study, self._seed = study, seed
        self._axes = {name: axis for axis, name in enumerate(study.dimensions)}
        self._places = self._make(_FIRST)
        self._next = 0  # all points at places before it are known, or over the budget
        self._proposals, self._known = KnownOfShown(Proposals), set[PointKey]()

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """The values of the first point of the sequence that is new."""
        del search_space
        self._learn(study, trial.number)
        values = self._point(self._next)
        for _ in range(_TRIES + len(self._known)):
            if self._is_new(values):
                break
            self._next += 1
            values = self._point(self._next)
        return values

    def sample_independent(
        self, study: optuna.Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:  # noqa: ANN401 -- as Optuna has it
        """A value that the next point does not have, of a point that is partly given: that of its place."""
        del study, trial
        return at(param_distribution, self._place(self._next, param_name))

    def _learn(self, study: optuna.Study, before: int) -> None:
        """Take note of the points of all trials with a lower number, also of those that came to nothing."""
        self._known.update(point_key(each.params) for each in self._proposals.of(study).read(before))

    def _is_new(self, values: Mapping[str, Level]) -> bool:
        """Whether a point is not known, and within the budget of the study."""
        if point_key(values) in self._known:
            return False
        budget = self._study.budget
        return budget == StudyBudget() or budget.allows(self._study.trial_for(values).settings)

    def _point(self, place: int) -> dict[str, Level]:
        """The point at a place of the sequence, with the dimensions that it takes."""
        return self._study.choose(lambda name, _: at(self._space[name], self._place(place, name)))

    def _place(self, place: int, name: str) -> float:
        """Where a dimension is at a place of the sequence, from 0 to 1."""
        while place >= len(self._places):
            self._places = self._make(1 + int(math.log2(len(self._places))))
        return float(self._places[place, self._axes[name]])

    def _make(self, power: int) -> Any:  # noqa: ANN401 -- an array
        """The first points of the sequence, as many as 2 to that power; more of them begin with the same."""
        return Sobol(max(1, len(self._axes)), scramble=True, rng=self._seed).random_base2(power)


def at(distribution: BaseDistribution, place: float) -> Any:  # noqa: ANN401 -- a value of any kind
    """The value at a place from 0 to 1 of what can be drawn: all alike, of a range in logarithms by these."""
    match distribution:
        case CategoricalDistribution(choices=choices):
            return choices[int(place * len(choices))]
        case IntDistribution(low=low, high=high, log=False, step=step):
            return low + step * int(place * ((high - low) // step + 1))
        case IntDistribution(low=low, high=high):
            bottom, top = math.log(low - 0.5), math.log(high + 0.5)
            return min(max(round(math.exp(bottom + place * (top - bottom))), low), high)
        case FloatDistribution(low=low, high=high, log=log):
            bottom, top = (math.log(low), math.log(high)) if log else (low, high)
            value = bottom + place * (top - bottom)
            return min(max(math.exp(value) if log else value, low), high)
        case _:
            raise TypeError(f"expected a distribution of a search, got {distribution!r}")
