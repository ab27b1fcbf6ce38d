"""A race over seeds: a point is trained on another seed only while it may still be the best.

As in F-Race (Birattari et al. 2002), points are compared on the same seeds. Part of the best point's lead is
noise, so the limit grows with the number of points that it was chosen from (Hsu 1984). Rank tests would need
more seeds: for three differences of the same sign, the Wilcoxon test gives p = 0.125.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ....studies.schema.search_settings import RaceSettings
from ....studies.study import Study


class SeedRace:
    """A race between points over seeds.

    The noise is the part of the losses that points and seeds do not explain. It is assumed to be normal and
    equal for all points. `bench/race.py` measures how often the race drops the best point if that does not
    hold.
    """

    def __init__(self, seeds: Sequence[int], risk: float) -> None:
        self._seeds, self._risk = tuple(seeds), risk
        self._losses = np.empty((0, len(self._seeds)))  # of complete points, by seed, and room for more
        self._eligible = np.empty(
            0, dtype=bool
        )  # whether they keep to the limits, so that they can be the best
        self._count = 0

    def add(self, losses: Mapping[int, float], *, eligible: bool = True) -> None:
        """Add the losses of an ended point by seed; a point without all seeds is ignored."""
        found = [losses.get(seed, math.nan) for seed in self._seeds]
        if all(map(math.isfinite, found)):
            if self._count == len(self._losses):
                room = max(16, self._count)
                self._losses = np.pad(self._losses, ((0, room), (0, 0)))
                self._eligible = np.pad(self._eligible, (0, room))
            self._losses[self._count], self._eligible[self._count] = found, eligible
            self._count += 1

    def is_promising(self, losses: Mapping[int, float]) -> bool:
        """Return whether a point with these losses may still be the best; false if a loss is NaN."""
        if not all(map(math.isfinite, losses.values())):
            return False
        places = [place for place, seed in enumerate(self._seeds) if seed in losses]
        rivals, eligible = self._losses[: self._count], self._eligible[: self._count]
        if not places or not eligible.any() or (noise := residual_deviation(rivals)) is None:
            return True
        deviation, degrees = noise
        means = np.where(eligible, rivals.mean(axis=1), math.inf)
        best = rivals[int(means.argmin())]
        behind = float(np.mean([losses[self._seeds[place]] - best[place] for place in places]))
        looks = max(1, len(self._seeds) - 1)
        quantile = _t_quantile(self._risk / (looks * int(eligible.sum())), degrees)
        return behind <= quantile * deviation * math.sqrt(2 / len(places))


def make_race(study: Study) -> SeedRace | None:
    """Return the race of a study's search; None if it has none."""
    search = study.search
    if search is None or not isinstance(search.scheduler, RaceSettings):
        return None
    return SeedRace(study.seeds, search.scheduler.risk)


def residual_deviation(losses: NDArray[np.float64]) -> tuple[float, int] | None:
    """Return the standard deviation that rows and columns do not explain, and its degrees of freedom.

    None if it cannot be estimated, or if nothing varies.
    """
    rows, columns = losses.shape
    degrees = (rows - 1) * (columns - 1)
    if degrees < 1:
        return None
    rest = losses - losses.mean(axis=1, keepdims=True) - losses.mean(axis=0, keepdims=True) + losses.mean()
    deviation = math.sqrt(float((rest**2).sum()) / degrees)
    return (deviation, degrees) if deviation > 1e-12 * float(np.abs(losses).max()) else None


def _t_quantile(chance: float, degrees: int) -> float:
    from scipy.special import stdtrit  # noqa: PLC0415 -- only races need it

    return -float(stdtrit(degrees, chance))
