"""What samplers read: the dimensions of a search, and earlier proposals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any, Protocol

import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from .....grammar.canonical import option_label
from .....grammar.nodes import (
    Dimension,
    IntegerDimension,
    RealDimension,
)
from .....studies.schema.settings import Level

if TYPE_CHECKING:
    from ..stored_points import PointEnd

Values = dict[str, Level]
"""The values of a search point's active dimensions."""


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
    """Return the number at a relative place in its range, from 0 (low) to 1 (high), as in `place_of`."""
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
    match found := distribution(dimension):
        case IntDistribution():
            return trial.suggest_int(name, found.low, found.high, step=found.step, log=found.log)
        case FloatDistribution():
            return trial.suggest_float(name, found.low, found.high, log=found.log)
        case _:
            option = trial.suggest_categorical(name, found.choices)
            assert option is not None, "no option of a choice is None"
            return option


def distribution(dimension: Dimension) -> CategoricalDistribution | FloatDistribution | IntDistribution:
    """Return the Optuna distribution for a dimension of a search."""
    match dimension:
        case IntegerDimension():
            high = dimension.high - (dimension.high - dimension.low) % dimension.step
            return IntDistribution(dimension.low, high, log=dimension.log, step=dimension.step)
        case RealDimension():
            return FloatDistribution(dimension.low, dimension.high, log=dimension.log)
        case _:
            return CategoricalDistribution([option_label(option) for option in dimension.options])


ValuesKey = frozenset[tuple[str, Any]]
"""The key of a point; equal points have equal keys."""


def values_key(values: Mapping[str, Any]) -> ValuesKey:
    """Return a key of a search point's values that does not depend on their order."""
    return frozenset(values.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposals:
    """Earlier proposals, as far as a sampler knows them, besides the ended points.

    Any driver may have begun the `begun` points; `known` has those that this process has seen. `training` are
    the values of the points in training. `rejected` are the proposals that were rejected since the last point
    began.
    """

    begun: int = 0
    known: Set[ValuesKey] = frozenset()
    training: Sequence[Values] = ()
    rejected: Sequence[ValuesKey] = ()

    def __contains__(self, key: ValuesKey) -> bool:
        """Return whether a search point has begun or was rejected since the last point began."""
        return key in self.known or key in self.rejected

    def random(self, seed: int, *purpose: str) -> Random:
        """Return a generator for this proposal. A search that was killed and resumed gets an equal one."""
        return Random(" ".join(map(str, (seed, self.begun, len(self.rejected), *purpose))))


class Sampler(Protocol):
    """Built-in sampler, which learns from ended points and proposes the values of new ones."""

    def learn(self, values: Values, end: PointEnd) -> None:
        """Add an ended search point. Points are added in the order in which they ended."""
        ...

    def propose(self, proposals: Proposals) -> Values:
        """Return the values of a search point, which may be a known one."""
        ...
