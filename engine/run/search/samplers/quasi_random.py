"""Points that fill a space evenly: each new one is the next of a scrambled Sobol sequence that is not known.

The sequence has an axis for each dimension of the search, whether or not a point takes it. What a search
knows is refused, so that one which was killed goes on with the point that would have come.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
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

_FIRST = 10
"""2 to the power of this many points of the sequence are made at first."""


class QuasiRandomSampler(optuna.samplers.BaseSampler):
    """Sobol's sequence (1967) with Owen's scrambling (1998) over these dimensions, by a seed."""

    def __init__(self, dimensions: Sequence[str], *, seed: int) -> None:
        self._axes = {name: axis for axis, name in enumerate(dimensions)}
        self._seed = seed
        self._points = self._make(_FIRST)

    def infer_relative_search_space(
        self, study: optuna.Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """None: each dimension is an axis of its own."""
        del study, trial
        return {}

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Nothing."""
        del study, trial, search_space
        return {}

    def sample_independent(
        self, study: optuna.Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:  # noqa: ANN401 -- as Optuna has it
        """The value of a dimension at its place of the sequence, which has one for each proposal."""
        del study
        while trial.number >= len(self._points):
            self._points = self._make(1 + int(math.log2(len(self._points))))
        return at(param_distribution, float(self._points[trial.number, self._axes[param_name]]))

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
