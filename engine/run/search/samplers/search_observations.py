"""Data that samplers read: the dimensions of a search, and its begun points.

Points are in the order in which they ended. Each trial is read once.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import takewhile
from random import Random
from typing import Any, Generic, TypeVar

import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.trial import FrozenTrial, TrialState

from .....grammar.canonical import option_label
from .....grammar.nodes import (
    ChoiceDimension,
    Dimension,
    IntegerDimension,
    RealDimension,
)
from .....studies.schema.settings import Level


def draw(distribution: BaseDistribution, rng: Random) -> Any:  # noqa: ANN401 -- a value of any kind
    """Draw a value uniformly. For a logarithmic distribution, it is uniform on the logarithmic scale."""
    match distribution:
        case CategoricalDistribution():
            return rng.choice(distribution.choices)
        case IntDistribution(log=False):
            return rng.randrange(distribution.low, distribution.high + 1, distribution.step)
        case IntDistribution() | FloatDistribution():
            return at(distribution, rng.random())
        case _:
            raise TypeError(f"expected a distribution of a search, got {distribution!r}")


def place_of(numbers: IntDistribution | FloatDistribution, value: float) -> float:
    """Return the relative position of a number in its range, from 0 to 1.

    It is 0 at the low end and 1 at the high end. The scale is logarithmic if the range is.
    """
    low, high, value = (_scaled(numbers, each) for each in (numbers.low, numbers.high, value))
    return (value - low) / (high - low)


def at(numbers: IntDistribution | FloatDistribution, place: float) -> float:
    """Return the number at a relative position in its range.

    `place` is 0 at the low end and 1 at the high end, as in `place_of`.
    """
    low, high = _scaled(numbers, numbers.low), _scaled(numbers, numbers.high)
    value = low + place * (high - low)
    # because of rounding, exp(log(x)) may lie slightly outside of the range
    value = min(max(math.exp(value) if numbers.log else value, numbers.low), numbers.high)
    if isinstance(numbers, FloatDistribution):
        return value
    return numbers.low + round((value - numbers.low) / numbers.step) * numbers.step


def _scaled(numbers: IntDistribution | FloatDistribution, value: float) -> float:
    return math.log(value) if numbers.log else value


def suggest(trial: optuna.Trial, name: str, dimension: Dimension) -> Level:
    """Ask Optuna for the value of one dimension of a trial. The other dimensions need not be defined."""
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
    """Return the Optuna distribution for a dimension of a search."""
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
    return [option_label(option) for option in choice.options]


def _aligned_high(dimension: IntegerDimension) -> int:
    return dimension.high - (dimension.high - dimension.low) % dimension.step


PointKey = frozenset[tuple[str, Any]]
"""The key of a point; equal points have equal keys."""

ELSEWHERE = "elsewhere"
"""The attribute of a trial whose point ended on another rung: it counts as begun, but has no value here."""


ENDED = (TrialState.COMPLETE, TrialState.PRUNED)
"""The states of trials whose points have ended."""

KnownT = TypeVar("KnownT")


def point_key(values: Mapping[str, Any]) -> PointKey:
    """Return a key of a search point's values that does not depend on their order."""
    return frozenset(values.items())


def whole_study(study: optuna.Study) -> optuna.Study:
    """Return the whole Optuna study. A plug-in's pruner may pass a view of a part of it, as Hyperband's."""
    return getattr(study, "_study", study)  # Optuna has no public way from a view to its study


class PerStudyCache(Generic[KnownT]):
    """Cache of what a sampler computes from an Optuna study.

    It holds the result for one study at a time. A search with rungs has several studies.
    """

    def __init__(self, make: Callable[[optuna.Study], KnownT]) -> None:
        self._make = make
        self._last: tuple[optuna.Study, KnownT] | None = None

    def of(self, study: optuna.Study) -> KnownT:
        """Return the result for a study. It is computed again if the last call was for a different study."""
        whole = whole_study(study)
        if self._last is None or self._last[0] is not whole:
            self._last = whole, self._make(whole)
        return self._last[1]


class Proposals:
    """Record of a search's begun points and rejected proposals.

    Only rejections since the last point began are kept. A point counts as begun on whichever rung it is
    trained. A point with a failed training counts as rejected.
    """

    def __init__(self, study: optuna.Study) -> None:
        self._study, self._end = study, 0
        self._open = dict[int, PointKey]()  # by the index of unfinished trials
        self._here, self._elsewhere = Counter[PointKey](), set[PointKey]()
        self._rejected = Counter[PointKey]()  # rejected since the last point began

    def __contains__(self, key: PointKey) -> bool:
        """Return whether a search point has begun or was recently rejected.

        Recently is since the last point began.
        """
        return self._here[key] > 0 or key in self._elsewhere or key in self._rejected

    @property
    def begun(self) -> int:
        """Return the number of begun search points."""
        return self._here.total() + len(self._elsewhere)

    @property
    def tries(self) -> int:
        """Return how many proposals were rejected since the last search point began."""
        return self._rejected.total()

    def read(self, before: int) -> list[FrozenTrial]:
        """Return the trials that are new or may have ended since the last call.

        Only trials with a number below `before` are read.
        """
        trials, end = self._study.get_trials(deepcopy=False), self._end
        while end < len(trials) and trials[end].number < before:
            end += 1
        places = [*self._open, *range(self._end, end)]
        self._end = end
        found = [trials[place] for place in places]
        for place, trial in zip(places, found, strict=True):
            self._take(place, trial)
        latest = (trials[place] for place in range(end - 1, -1, -1))
        self._rejected = Counter(point_key(each.params) for each in takewhile(_is_no_point, latest))
        return found

    def _take(self, place: int, trial: FrozenTrial) -> None:
        key = point_key(trial.params)
        if place in self._open:
            self._here[self._open.pop(place)] -= 1
        if _is_no_point(trial):
            return
        if trial.state == TrialState.FAIL:
            self._elsewhere |= set() if self._here[key] else {key}
            return
        self._here[key] += 1
        self._elsewhere.discard(key)
        if not trial.state.is_finished():
            self._open[place] = key


def _is_no_point(trial: FrozenTrial) -> bool:
    return trial.state == TrialState.FAIL and ELSEWHERE not in trial.user_attrs


def when_ended(trial: FrozenTrial) -> tuple[float, int]:
    """Return a sort key for the order in which trials ended. Unfinished trials come first."""
    return trial.datetime_complete.timestamp() if trial.datetime_complete else 0.0, trial.number
