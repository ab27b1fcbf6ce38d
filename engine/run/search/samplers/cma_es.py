"""CMA-ES (Hansen and Ostermeier 2001) whose state is made of the points that have ended, in their order.

A generation is as many points as the population has, whoever proposed them: a baseline and what programs hand
in count as well. Where a run of it has converged, another begins anywhere, with twice the population (Auger
and Hansen 2005). Random numbers depend on the seed and on the points so far: a search of one worker which is
killed goes on as it would have.
"""

from __future__ import annotations

from random import Random
from typing import Any

import cmaes
import numpy as np
import optuna
from optuna.distributions import BaseDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial

from .....studies.study import Study
from .numbers import at, draw, place_of
from .optuna_space import WholePointSampler
from .told_points import EndedPoint, KnownOfShown, ToldPoints

STEP = 1 / 6
"""The first standard deviation, as a share of each range."""

PATIENCE = 20
"""After so many proposals in a row that are known already, which happens with whole numbers, one is drawn."""


class CmaEsSampler(WholePointSampler):
    """Proposes the points of the search of one study, whose dimensions are numbers that each point has."""

    def __init__(self, study: Study, *, seed: int) -> None:
        super().__init__(study)
        self._seed = seed
        self._run = KnownOfShown(lambda shown: _Generations(ToldPoints(shown), self._space, seed))

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """The values of a point of the current generation."""
        run = self._run.of(study)
        told = run.told
        told.read(before=trial.number)
        rng = Random(f"cmaes {self._seed} {told.begun} {told.tries}")
        if told.tries >= PATIENCE:
            return {name: draw(each, rng) for name, each in search_space.items()}
        return run.ask(rng)

    def sample_independent(
        self, study: optuna.Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:  # noqa: ANN401 -- as Optuna has it
        """A value that no proposal has, of a point that is partly given: drawn evenly."""
        del study
        return draw(param_distribution, Random(f"cmaes {self._seed} {trial.number} {param_name}"))


class _Generations:
    """The state after all whole generations of points that have ended."""

    def __init__(self, told: ToldPoints, space: dict[str, BaseDistribution], seed: int) -> None:
        self.told, self._seed, self._read = told, seed, 0
        self._numbers = {
            name: each
            for name, each in space.items()
            if isinstance(each, IntDistribution | FloatDistribution)
        }
        self._optimiser = self._begin(np.full(len(self._numbers), 0.5), None)

    def ask(self, rng: Random) -> dict[str, Any]:
        """The values of a point, drawn with these random numbers."""
        while len(self.told.ended) - self._read >= self._optimiser.population_size:
            self._learn(self.told.ended[self._read : self._read + self._optimiser.population_size])
        self._optimiser.reseed_rng(rng.getrandbits(32))
        places = self._optimiser.ask()
        return {
            name: at(each, float(place))
            for (name, each), place in zip(self._numbers.items(), places, strict=True)
        }

    def _learn(self, generation: list[EndedPoint]) -> None:
        """Move to where the better half of a generation is; begin again where the last run has converged."""
        ranked = sorted(generation, key=lambda each: each.goodness, reverse=True)
        self._optimiser.tell([(self._places(each), float(rank)) for rank, each in enumerate(ranked)])
        self._read += len(generation)
        if self._optimiser.should_stop():
            rng = Random(f"cmaes {self._seed} run {self._read}")
            start = np.array([rng.random() for _ in self._numbers])
            self._optimiser = self._begin(start, 2 * self._optimiser.population_size)

    def _places(self, point: EndedPoint) -> Any:  # noqa: ANN401 -- an array
        """Where a point is in the ranges; a range of one number has but its middle."""
        return np.array(
            [
                0.5 if each.single() else place_of(each, point.values[name])
                for name, each in self._numbers.items()
            ]
        )

    def _begin(self, start: Any, population: int | None) -> cmaes.CMA:  # noqa: ANN401 -- an array
        """A run from a place on."""
        bounds = np.tile([0.0, 1.0], (len(self._numbers), 1))
        return cmaes.CMA(start, STEP, bounds, population_size=population, seed=0)
