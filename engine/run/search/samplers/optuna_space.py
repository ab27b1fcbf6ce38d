"""A study's search dimensions in Optuna's terms, and samplers that choose values of all of them at once."""

from __future__ import annotations

import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.trial import FrozenTrial

from .....grammar.dimensions import option_label
from .....grammar.nodes import ChoiceDimension, Dimension, IntegerDimension, RealDimension
from .....studies.schema.settings import Level
from .....studies.study import Study


def suggest(trial: optuna.Trial, name: str, dimension: Dimension) -> Level:
    """Return Optuna's proposal for a dimension; the other dimensions need not be known."""
    match dimension:
        case IntegerDimension():
            return trial.suggest_int(
                name, dimension.low, _aligned_high(dimension), step=dimension.step, log=dimension.log
            )
        case RealDimension():
            return trial.suggest_float(name, dimension.low, dimension.high, log=dimension.log)
        case _:
            found = trial.suggest_categorical(name, _labels(dimension))
            assert found is not None, "no option of a choice is None"
            return found


def distribution(dimension: Dimension) -> BaseDistribution:
    """Optuna's name for a dimension of the recipe language."""
    match dimension:
        case IntegerDimension():
            return IntDistribution(
                dimension.low, _aligned_high(dimension), log=dimension.log, step=dimension.step
            )
        case RealDimension():
            return FloatDistribution(dimension.low, dimension.high, log=dimension.log)
        case _:
            return CategoricalDistribution(_labels(dimension))


def _labels(choice: ChoiceDimension) -> list[Level]:
    """Return the options as plain data, in their order."""
    return [option_label(option) for option in choice.options]


def _aligned_high(dimension: IntegerDimension) -> int:
    """Return the greatest number that steps from the lowest reach, which Optuna requires as its bound."""
    return dimension.high - (dimension.high - dimension.low) % dimension.step


class WholePointSampler(optuna.samplers.BaseSampler):
    """Is asked once for a point of the search of one study, with all dimensions."""

    def __init__(self, study: Study) -> None:
        self._space = {name: distribution(each) for name, each in study.dimensions.items()}

    def infer_relative_search_space(
        self, study: optuna.Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """Return all dimensions."""
        del study, trial
        return self._space
