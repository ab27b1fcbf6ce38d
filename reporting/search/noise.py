"""The noise of a search, and how far its best point may lead the baseline by luck.

The variance within points with several seeds is pooled. If T points all equal the baseline, the best of them
still leads it because of noise. Dunnett's one-sided criterion (1955) bounds this lead in 95 of 100 searches.
Points within the same bound of the best are indistinguishable from it (Hsu 1984). The bound does not depend
on how points are chosen, since each has its own noise.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import lru_cache

import polars as pl

from ...studies.catalog.metrics import COSTS, MODEL_COSTS, Metric, find_metric, is_target
from ...studies.planning.final_values import ValueStatus, smallest_step, trial_values
from ...studies.resolve.trial import settings_from_json, trial_id
from ...studies.schema.search_settings import SearchObjective
from ...studies.searches.points import FoundPoint, SearchPoints
from ...studies.study import Study
from ...studies.text.units import plural
from ..statistics.decided_differences import SIGNIFICANCE_LEVEL
from ..statistics.estimates import POWER, detectable, sample_sd
from ..statistics.pooled_differences import pooled_variance
from .promotion import FRESH_SEEDS, find_baseline

LEVEL = 0.95
"""The share of searches over equal points whose best point has at most the lead by chance."""

_NODES = 48  # nodes of each of the two integrals


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """The standard deviation of a metric between seeds, pooled over points, with its `degrees`."""

    sd: float
    degrees: int

    def lead(self, count: int, seeds: int, other: int) -> float:
        """Return how far the best of `count` equal points may lead another point by luck.

        In 95 % of searches, the lead is smaller. The other point, such as the baseline, has `other` seeds;
        each of the `count` points has `seeds` seeds.
        """
        return self.sd * chance_lead(count, seeds, other, self.degrees)


def measure_noise(found: SearchPoints, metric: str) -> Noise | None:
    """Estimate the noise of a metric from the points that have several seeds.

    Return None if there are no such points, or if their seeds do not differ.
    """
    samples = [list(point.measured.get(metric, {}).values()) for point in found.points]
    squares = sum((sample_sd(values) or 0.0) ** 2 * (len(values) - 1) for values in samples)
    degrees = sum(len(values) - 1 for values in samples if values)
    return Noise(sd=math.sqrt(squares / degrees), degrees=degrees) if squares else None


def find_plateau(found: SearchPoints, goal: SearchObjective, noise: Noise) -> list[int] | None:
    """Return which points may be as good as the best point, as their numbers.

    Their distance to the best point may be only noise. The points are numbered from 1 in the order of
    training. Return None for fewer than two points.
    """
    known = [
        (number, point.seeds, value)
        for number, point in enumerate(found.points, 1)
        if point in found.complete and (value := point.mean(goal.name)) is not None
    ]
    if len(known) < 2:
        return None
    best = max(known, key=lambda each: goal.sign * each[2])
    limit = noise.lead(len(known) - 1, min(count for _, count, _ in known), best[1])
    return [number for number, _, value in known if goal.sign * (best[2] - value) <= limit]


def noise_sentences(study: Study, found: SearchPoints, metric: Metric) -> Iterator[str]:
    """Yield sentences on a search's noise: how far its best point leads, and which points are as good."""
    goal, noise = found.goals[0], measure_noise(found, found.goals[0].name)
    if noise is None or not found.complete:
        return
    yield (
        f"Noise: one training of {metric.name} has a standard deviation of {_digits(noise.sd, metric)}"
        f" ({plural(noise.degrees, 'degree')} of freedom)."
    )
    baseline, best = find_baseline(study, found), found.ranked()[0]
    others = [point for point in found.complete if point is not baseline]
    if baseline is not None and best is baseline and others:
        yield "No point is better than the baseline."
    elif baseline is not None and (limit := lead_by_chance(found, baseline, noise)) is not None:
        lead = goal.sign * ((best.mean(goal.name) or 0.0) - (baseline.mean(goal.name) or 0.0))
        verdict = "so this is not chance" if lead > limit else "so this may be noise"
        if lead > limit and best.seeds == 1:
            verdict += ", unless its own seeds vary more than those of the points with several"
        yield (
            f"The best point leads the baseline by {_digits(lead, metric)}; of "
            f"{plural(len(others), 'point')} no"
            f" better than it, one would lead by up to {_digits(limit, metric)} by chance (95 %), {verdict}."
        )
    plateau = find_plateau(found, goal, noise) or []
    if len(plateau) > 1:
        yield (
            f"{len(plateau)} of {plural(len(found.complete), 'point')} are indistinguishable from the best,"
            f" the earliest being point {plateau[0]} in the order of training: later gains may be noise."
        )


def lead_by_chance(found: SearchPoints, baseline: FoundPoint, noise: Noise) -> float | None:
    """Return how far the best point may lead the baseline by luck.

    In 95 % of searches, the lead by luck is smaller. Return None if there are no other points.
    """
    others = [point for point in found.complete if point is not baseline]
    return noise.lead(len(others), min(each.seeds for each in others), baseline.seeds) if others else None


def plan_sentences(study: Study, found: SearchPoints, metric: Metric) -> Iterator[str]:
    """Yield sentences on the differences that a search can detect, or on how to measure its noise."""
    search = study.search
    assert search is not None
    noise, seeds = measure_noise(found, found.goals[0].name), len(search.seeds)
    count = len(search.baseline_seeds)
    repeated = any(len(point.measured.get(found.goals[0].name, {})) > 1 for point in found.points)
    if noise is None and repeated:
        yield f"{metric.name} does not differ between the seeds of a point: the noise is unknown so far"
    elif noise is None and search.baseline and count > 1:
        yield f"the baseline is trained first, with {plural(count, 'seed')}, whose spread estimates the noise"
    elif noise is None and max(seeds, count) < 2:
        keys = "baseline_seeds" if search.baseline else "baseline and baseline_seeds"
        yield f"noise and gain cannot be separated: set [study] {keys}, or use more seeds"
    if noise is None:
        return
    yield f"one training of {metric.name} has a standard deviation of {_digits(noise.sd, metric)}"
    if search.baseline:
        points = search.num_points
        limit = _digits(noise.lead(max(points - 1, 1), seeds, count), metric)
        yield f"the best of {points} points leads the baseline by up to {limit} by chance"
    # as a claim on two points, which is paired by seed, with a power of 80 %
    smallest = detectable(noise.sd * math.sqrt(2 / FRESH_SEEDS), FRESH_SEEDS - 1, SIGNIFICANCE_LEVEL)
    yield f"{FRESH_SEEDS} fresh seeds detect a difference of {_digits(smallest, metric)}"


@lru_cache(maxsize=256)
def chance_lead(count: int, seeds: int, other: int, degrees: int) -> float:
    """Return how far the best of `count` equal means may lead another mean by luck.

    The unit is the standard deviation of one value. A share LEVEL of searches among equal points stays below
    this lead. Each mean averages `seeds` values, the other mean `other` values. The standard deviation is
    estimated with `degrees` of freedom.
    """
    import numpy as np  # noqa: PLC0415 -- only noise needs it
    from scipy.special import gammaincinv, log_ndtr  # noqa: PLC0415 -- as above

    # an integral over the other mean's normal error, then one over the estimate of the deviation
    nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
    weights = weights / weights.sum()
    ranks = (np.arange(4 * _NODES) + 0.5) / (4 * _NODES)
    scales = np.sqrt(gammaincinv(degrees / 2, ranks) * 2 / degrees)  # quantiles of the estimated deviation

    def below(limit: float) -> float:
        # as a logarithm, the power `count` of a probability does not underflow
        ahead = (limit * scales[:, None] + nodes[None, :] / math.sqrt(other)) * math.sqrt(seeds)
        return float((np.exp(count * log_ndtr(ahead)) @ weights).mean())

    low, high = 0.0, 1.0
    while below(high) < LEVEL:
        low, high = high, 2 * high
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if below(middle) < LEVEL else (low, middle)
    return high


def _digits(value: float, metric: Metric) -> str:
    return f"{value:,.{metric.decimals + 1}f}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseFloor:
    """The smallest difference between two cells that a claim detects with a chance of POWER.

    Each cell has `seeds` seeds. It is estimated from the paired differences of all `cells` with several
    seeds; `sd` is the standard deviation of one value. `degrees` are those of the claim's t test, which may
    pool fewer cells.
    """

    metric: str
    sd: float
    cells: int
    degrees: int
    seeds: int
    difference: float
    level: float = SIGNIFICANCE_LEVEL
    power: float = POWER


def noise_floors(study: Study, outcomes: pl.DataFrame) -> dict[str, NoiseFloor | None]:
    """Estimate the smallest difference that a study can detect, for each metric that it compares.

    Each task has its own estimate if several tasks have one. The estimate is None if no cell has several
    seeds. Costs are left out, since they hardly depend on the seed.
    """
    found: dict[str, NoiseFloor | None] = {}
    frames = outcomes.partition_by("task", maintain_order=True)
    pooled = [_fewest_pooled(study, set(frame["trial"])) for frame in frames]
    for name in study.metrics:
        if name in {*COSTS, *MODEL_COSTS} or is_target(name):
            continue
        floors = {
            f"{name} on {frame['task'][0]}": floor
            for frame, cells in zip(frames, pooled, strict=True)
            if (floor := noise_floor(frame, name, max(len(study.seeds), 1), cells))
        }
        found |= floors if len(floors) > 1 else {name: next(iter(floors.values()), None)}
    return found


def _fewest_pooled(study: Study, trials: Collection[str]) -> int | None:
    """Return how many cells have the variance of a claim on two cells that differ in one factor, at least.

    Return None if it is that of all cells, as in a search or a design that is no grid.
    """
    if study.search is not None or not study.design.is_grid:
        return None
    cells = {trial.cell for trial in study.cells if trial.id in trials}
    sizes = Counter(cell - {level} for cell in cells for level in cell)
    return min((size for size in sizes.values() if size > 1), default=None)


def noise_floor(
    outcomes: pl.DataFrame, metric: str, seeds: int, pooled_cells: int | None = None
) -> NoiseFloor | None:
    """Estimate the smallest difference between two cells with `seeds` seeds that a claim detects.

    The claim pools the variance of `pooled_cells` cells, by default all. Return None if no cell in `outcomes`
    has several seeds. Trainings that the column DIVERGED marks do not count.
    """
    found = trial_values("", outcomes["trial"], outcomes, metric)
    known = outcomes.select("settings", "seed", found["value"]).filter(found["status"] == ValueStatus.DONE)
    cells: dict[str, dict[int, float]] = {}
    for settings, seed, value in known.iter_rows():
        cells.setdefault(cell_of(settings), {})[seed] = value
    several = [cell for cell in cells.values() if len(cell) > 1]
    if not several:
        return None
    pool = pooled_variance(several)
    if pool is not None:
        variance, degrees = pool.variance, pool.degrees
    else:  # a single cell varies, or cells share no seeds
        sd, count = max((sample_sd([*cell.values()]) or 0.0, len(cell)) for cell in several)
        variance, degrees = 2 * sd**2, count - 1
    if pool is not None or variance:  # rounding adds some
        variance = max(variance, 2 * _step(metric, known["settings"][0]) ** 2 / 12)
    if pooled_cells is not None:
        degrees = min(degrees, (pooled_cells - 1) * (seeds - 1))
    return NoiseFloor(
        metric=metric,
        sd=math.sqrt(variance / 2),
        cells=len(several),
        degrees=degrees,
        seeds=seeds,
        difference=detectable(math.sqrt(variance / seeds), degrees, SIGNIFICANCE_LEVEL),
    )


def _step(metric: str, settings: str) -> float:
    try:
        return smallest_step(find_metric(metric), settings_from_json(settings))
    except (ValueError, KeyError):  # a metric of a plug-in that is not loaded
        return smallest_step(find_metric(metric), None)


def cell_of(settings: str) -> str:
    """Return a key for settings that differ only in the seed or in the version of activemem."""
    try:
        return trial_id(settings_from_json(settings).with_seed(0))
    except (ValueError, KeyError):  # a metric of a plug-in that is not loaded
        return "".join(part for part in settings.split(",") if not part.strip().startswith('"seed":'))
