"""Which dimensions of a search matter: shares of variance, and what leads to the best points.

By fANOVA (Hutter et al. 2014) a dimension has the share of the variance over its space that it accounts for
by itself; by PED-ANOVA (Watanabe et al. 2023) it matters as much as its values differ between the best points
and all. A dimension that only some points take is held against those that all of these take, among these
points. Intervals are of points drawn anew.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...grammar.nodes import ChoiceDimension, Dimension, IntegerDimension
from ...studies.schema.search import representative_values
from ...studies.schema.settings import Level
from ...studies.searches.points import SearchPoints
from ..statistics.functional_anova import variance_shares

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

    Floats = np.ndarray[tuple[int, ...], np.dtype[np.float64]]

MIN_POINTS = 10
"""Fewer points say nothing of a dimension."""

_TREES, _DRAWN_TREES = 64, 8  # of the forest of all points, and of those of points drawn anew

Point = tuple[Mapping[str, Level], float]
"""The values of a point, and what it measured: more is better."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportanceShare:
    """A share with its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Importance:
    """What a dimension accounts for, over so many points that take it; None where they are too few.

    `variance` is by fANOVA, `best` by PED-ANOVA. `is_everywhere` says whether all points take it.
    """

    name: str
    points: int
    is_everywhere: bool
    variance: ImportanceShare | None
    best: ImportanceShare | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Importances:
    """All dimensions that vary, those of all points first; `rest` is what these leave to interactions."""

    dimensions: tuple[Importance, ...]
    rest: ImportanceShare | None
    points: int


def find_importances(
    dimensions: Mapping[str, Dimension],
    found: SearchPoints,
    metric: str,
    sign: int,
    *,
    top: float,
    resamples: int,
    seed: int,
) -> Importances:
    """The importance of each dimension for a metric; `top` is the share of points that count as the best."""
    means = [(point.values, point.mean(metric)) for point in found.complete]
    points: list[Point] = [(values, sign * value) for values, value in means if value is not None]
    names = [
        name for name in dimensions if len({values.get(name) for values, _ in points if name in values}) > 1
    ]
    everywhere = [name for name in names if all(name in values for values, _ in points)]
    generator = np.random.default_rng(seed)
    shares: dict[str, ImportanceShare] = {}
    rest = None
    if len(points) >= MIN_POINTS and everywhere:
        drawn = _drawn_shares(points, everywhere, dimensions, resamples, generator)
        shares |= _shares(everywhere, drawn)
        left = [None if each is None else np.array([max(0.0, 1.0 - float(each.sum()))]) for each in drawn]
        rest = _shares([""], left).get("")
    for name in (name for name in names if name not in everywhere):
        own = [point for point in points if name in point[0]]
        common = [other for other in names if all(other in values for values, _ in own)]
        if len(own) >= MIN_POINTS:
            drawn = _drawn_shares(own, common, dimensions, resamples, generator)
            place = common.index(name)
            shares |= _shares([name], [None if each is None else each[[place]] for each in drawn])
    best = _best_shares(points, names, dimensions, generator, top=top, resamples=resamples)
    counts = {name: sum(name in values for values, _ in points) for name in names}
    every = [
        Importance(
            name=name,
            points=counts[name],
            is_everywhere=name in everywhere,
            variance=shares.get(name),
            best=best.get(name) if counts[name] >= MIN_POINTS else None,
        )
        for name in names
    ]
    order = sorted(
        every, key=lambda each: (not each.is_everywhere, -(each.variance.value if each.variance else -1.0))
    )
    return Importances(dimensions=tuple(order), rest=rest, points=len(points))


def _drawn_shares(
    points: Sequence[Point],
    names: Sequence[str],
    dimensions: Mapping[str, Dimension],
    resamples: int,
    generator: np.random.Generator,
) -> list[Floats | None]:
    """The shares of these dimensions over all points, then over points drawn anew."""
    values = np.array([value for _, value in points])
    found = [variance_shares(_places(points, names, dimensions), values, trees=_TREES, generator=generator)]
    for _ in range(resamples):
        chosen = generator.integers(len(points), size=len(points))
        drawn = [points[number] for number in chosen]
        places = _places(drawn, names, dimensions)
        found.append(variance_shares(places, values[chosen], trees=_DRAWN_TREES, generator=generator))
    return found


def _shares(names: Sequence[str], drawn: Sequence[Floats | None]) -> dict[str, ImportanceShare]:
    """The first of the rows, with the interval of the others."""
    if drawn[0] is None:
        return {}
    others = np.array([each for each in drawn[1:] if each is not None] or [drawn[0]])
    lows, highs = np.quantile(others, [0.025, 0.975], axis=0)
    return {
        name: ImportanceShare(value=float(drawn[0][at]), low=float(lows[at]), high=float(highs[at]))
        for at, name in enumerate(names)
    }


def _places(points: Sequence[Point], names: Sequence[str], dimensions: Mapping[str, Dimension]) -> Floats:
    """Where points stand in the unit cube of these dimensions, options in the order of their means."""
    columns = [_column([values[name] for values, _ in points], dimensions[name], points) for name in names]
    return np.array(columns).T


def _column(values: Sequence[Level], dimension: Dimension, points: Sequence[Point]) -> list[float]:
    if isinstance(dimension, ChoiceDimension):
        options = representative_values(dimension)
        own = {
            option: [y for value, (_, y) in zip(values, points, strict=True) if value == option]
            for option in options
        }
        means = {option: float(np.mean(each)) if each else math.inf for option, each in own.items()}
        ranks = {option: at for at, option in enumerate(sorted(options, key=means.__getitem__))}
        return [(ranks[value] + 0.5) / len(options) for value in values]
    scale = math.log if dimension.log else float
    margin = 0.5 if isinstance(dimension, IntegerDimension) and not dimension.log else 0.0
    low, high = scale(dimension.low) - margin, scale(dimension.high) + margin
    return [(scale(float(value)) - low) / (high - low) for value in values]


def _best_shares(
    points: Sequence[Point],
    names: Sequence[str],
    dimensions: Mapping[str, Dimension],
    generator: np.random.Generator,
    *,
    top: float,
    resamples: int,
) -> dict[str, ImportanceShare]:
    """The shares by PED-ANOVA, which add up to 1, with their intervals."""
    if len(points) < MIN_POINTS or not names:
        return {}
    drawn: list[Floats | None] = [_ped_anova(points, names, dimensions, top)]
    for _ in range(resamples):
        chosen = generator.integers(len(points), size=len(points))
        drawn.append(_ped_anova([points[number] for number in chosen], names, dimensions, top))
    return _shares(names, drawn)


def _ped_anova(
    points: Sequence[Point], names: Sequence[str], dimensions: Mapping[str, Dimension], top: float
) -> Floats | None:
    """What Optuna's evaluator says of these points; of conditional dimensions by Conditional PED-ANOVA."""
    import optuna  # noqa: PLC0415 -- only importances need it

    distributions = {name: _distribution(dimensions[name]) for name in names}
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(direction="maximize")
    study.add_trials(
        [
            optuna.trial.create_trial(
                params={name: _param(values[name], dimensions[name]) for name in names if name in values},
                distributions={name: distributions[name] for name in names if name in values},
                value=value,
            )
            for values, value in points
        ]
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of few points, which the table tells
        evaluator = optuna.importance.PedAnovaImportanceEvaluator(target_quantile=top)
        found = evaluator.evaluate(study)
    total = sum(found.values())
    return np.array([found.get(name, 0.0) / total for name in names]) if total > 0 else None


def _distribution(dimension: Dimension) -> BaseDistribution:
    """Optuna's name for a dimension; an option is its number."""
    from optuna import distributions  # noqa: PLC0415 -- as above

    if isinstance(dimension, ChoiceDimension):
        return distributions.CategoricalDistribution(range(len(dimension.options)))
    if isinstance(dimension, IntegerDimension):
        high = dimension.high - (dimension.high - dimension.low) % dimension.step
        return distributions.IntDistribution(dimension.low, high, log=dimension.log, step=dimension.step)
    return distributions.FloatDistribution(dimension.low, dimension.high, log=dimension.log)


def _param(value: Level, dimension: Dimension) -> Level:
    return representative_values(dimension).index(value) if isinstance(dimension, ChoiceDimension) else value
