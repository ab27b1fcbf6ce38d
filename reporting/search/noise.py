"""The noise of a search, and how far its best point may lead the baseline by luck.

The variance within points with several seeds is pooled. If T points all equal the baseline, the best of them
still leads it because of noise. Dunnett's one-sided criterion (1955) bounds this lead in 95 of 100 searches.
Points within the same bound of the best are indistinguishable from it (Hsu 1984). The bound does not depend
on how points are chosen, since each has its own noise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from ...studies.catalog.metrics import Metric
from ...studies.schema.search_settings import SearchObjective
from ...studies.searches.points import FoundPoint, SearchPoints
from ...studies.study import Study
from ...studies.text.units import plural
from ..statistics.estimates import detectable, sample_sd
from ..statistics.look_levels import SIGNIFICANCE_LEVEL
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
    root = math.hypot(
        *((sample_sd(values) or 0.0) * math.sqrt(max(len(values) - 1, 0)) for values in samples)
    )
    degrees = sum(len(values) - 1 for values in samples if values)
    return Noise(sd=root / math.sqrt(degrees), degrees=degrees) if root else None


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
