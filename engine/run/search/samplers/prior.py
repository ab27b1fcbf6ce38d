"""What a study believes of its search before anything is known: values that are likely to be near the best.

A belief is a mixture: with `confidence` the best point is near the values that are named, otherwise it is
anywhere. It counts ever less as points are tried, as in πBO (Hvarfner et al. 2022): with confidence
c, of n points that have been begun, it is c · 10 / (10 + n). So the best is found where the belief is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from random import Random
from statistics import NormalDist
from typing import Any

import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.trial import FrozenTrial, TrialState

from .numbers import at, draw, place_of
from .told_points import KnownOfShown, Proposals

WIDTH = 0.15
"""How far from a number the best may be: a standard deviation, as a share of its range or its logarithm's."""

NAMED = 0.8
"""How likely a named option is to be that of the best point, if the belief is right."""

LASTING = 10.0
"""After so many points a belief counts half."""

_NORMAL = NormalDist()


class Prior:
    """The values that are believed in, by dimension; others may be anything."""

    def __init__(self, values: Mapping[str, Any], confidence: float) -> None:
        self._values, self._confidence = dict(values), confidence

    def trust(self, begun: int) -> float:
        """The confidence that is left after so many points."""
        return self._confidence * LASTING / (LASTING + begun)

    def draw(self, name: str, distribution: BaseDistribution, rng: Random) -> Any:  # noqa: ANN401 -- any kind
        """A value near the one that is named, if there is one."""
        if name not in self._values or distribution.single():
            return draw(distribution, rng)
        value = self._values[name]
        if isinstance(distribution, CategoricalDistribution):
            return value if rng.random() < NAMED else draw(distribution, rng)
        assert isinstance(distribution, IntDistribution | FloatDistribution), (
            f"no search has {distribution!r}"
        )
        low, high = _bounds(place_of(distribution, value))
        return at(
            distribution, place_of(distribution, value) + WIDTH * _NORMAL.inv_cdf(rng.uniform(low, high))
        )

    def log_ratio(self, values: Mapping[str, Any], space: Mapping[str, BaseDistribution]) -> float:
        """How much likelier a point is by the whole belief than by none: the logarithm of the ratio."""
        return math.log(self._confidence * self.likelihood(values, space) + 1 - self._confidence)

    def likelihood(self, values: Mapping[str, Any], space: Mapping[str, BaseDistribution]) -> float:
        """How much likelier a point is near the values that are named than anywhere."""
        return math.prod(self._ratio(name, space[name], value) for name, value in values.items())

    def _ratio(self, name: str, distribution: BaseDistribution, value: Any) -> float:  # noqa: ANN401 -- any kind
        """How much likelier a value is near what is named than anywhere."""
        if name not in self._values or distribution.single():
            return 1.0
        named = self._values[name]
        if isinstance(distribution, CategoricalDistribution):
            return (1 - NAMED) + (NAMED * len(distribution.choices) if value == named else 0.0)
        assert isinstance(distribution, IntDistribution | FloatDistribution), (
            f"no search has {distribution!r}"
        )
        middle = place_of(distribution, named)
        low, high = _bounds(middle)
        return _NORMAL.pdf((place_of(distribution, value) - middle) / WIDTH) / WIDTH / (high - low)


class PriorSampler(optuna.samplers.BaseSampler):
    """Draws some points as a belief says, all others as a sampler does, which learns from all of them."""

    def __init__(self, sampler: optuna.samplers.BaseSampler, prior: Prior, *, seed: int) -> None:
        self._sampler, self._prior, self._seed = sampler, prior, seed
        self._asked = -1  # the trial that was asked for last, and the text that seeds its draws
        self._key = ""
        self._is_believed = False
        self._proposals = KnownOfShown(Proposals)

    def infer_relative_search_space(
        self, study: optuna.Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """The dimensions that the sampler chooses together; none for a point of the belief."""
        if self._believes(study, trial):
            return {}
        return self._sampler.infer_relative_search_space(study, trial)

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """What the sampler chooses together."""
        if self._believes(study, trial):
            return {}
        return self._sampler.sample_relative(study, trial, search_space)

    def sample_independent(
        self, study: optuna.Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:  # noqa: ANN401 -- as Optuna has it
        """A value near what is believed, or what the sampler chooses by itself."""
        if self._believes(study, trial):
            return self._prior.draw(param_name, param_distribution, Random(f"{self._key} {param_name}"))
        return self._sampler.sample_independent(study, trial, param_name, param_distribution)

    def before_trial(self, study: optuna.Study, trial: FrozenTrial) -> None:
        """A point is asked for."""
        self._sampler.before_trial(study, trial)

    def after_trial(
        self, study: optuna.Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None
    ) -> None:
        """A point has ended."""
        self._sampler.after_trial(study, trial, state, values)

    def _believes(self, study: optuna.Study, trial: FrozenTrial) -> bool:
        """Whether a point is drawn as the belief says, which depends on the points before it alone."""
        if trial.number != self._asked:
            known = self._proposals.of(study)
            known.read(trial.number)
            self._asked, self._key = trial.number, f"prior {self._seed} {known.begun} {known.tries}"
            self._is_believed = Random(self._key).random() < self._prior.trust(known.begun)
        return self._is_believed


def _bounds(middle: float) -> tuple[float, float]:
    """The quantiles of a normal distribution around a place that lie at the ends of a range."""
    return _NORMAL.cdf(-middle / WIDTH), _NORMAL.cdf((1 - middle) / WIDTH)
