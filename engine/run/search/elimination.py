"""How points leave a search early: on rungs of a rising fidelity, or in a race over seeds.

Rungs: asynchronous successive halving (Li et al. 2020, Algorithm 2) and, with brackets, Hyperband (Li et al.
2018). No point is dropped for good: it may be promoted later, after more points have ended on its rung. The
state follows from the stored rows alone, so that a search can resume.

A race: as in F-Race (Birattari et al. 2002), points are compared on the same seeds. Part of the best point's
lead is noise, so the limit grows with the number of points that it was chosen from (Hsu 1984). Rank tests
would need more seeds: for three differences of the same sign, the Wilcoxon test gives p = 0.125.
"""

from __future__ import annotations

import math
from bisect import insort
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ....studies.expansions.fidelity import Fidelity, promoted_count
from ....studies.schema.search_settings import RaceSettings
from ....studies.study import Study


class RungBoard:
    """The losses of each bracket's points on each rung, which decide the promotions."""

    def __init__(self, fidelity: Fidelity) -> None:
        self._fidelity = fidelity
        self._first: dict[str, int] = {}  # by point: the rung on which it began, which is its bracket
        self._begun: set[tuple[str, int]] = set()
        self._counts = Counter[int]()
        self._ended: dict[tuple[int, int], list[tuple[float, int, str]]] = {}  # the best first

    def next_first(self) -> int:
        """Return the rung on which the next point starts."""
        return self._fidelity.next_first(self._counts)

    def begin(self, point: str, rung: int) -> None:
        """Record that a point is trained on a rung; its first rung is its bracket."""
        if point not in self._first:
            self._first[point] = rung
            self._counts[rung] += 1
        self._begun.add((point, rung))

    def end(self, point: str, rung: int, loss: float) -> None:
        """Record the loss of a point on a rung; a point with an infinite loss is never promoted."""
        ended = self._ended.setdefault((self._first[point], rung), [])
        insort(ended, (loss, len(ended), point))

    def next_promoted(self) -> tuple[str, int] | None:
        """Return the next point to promote and its new rung, the highest rung first; None without one."""
        for rung in reversed(range(self._fidelity.top)):
            for first in range(rung + 1):
                ended = self._ended.get((first, rung), [])
                for loss, _, point in ended[: promoted_count(len(ended), self._fidelity.reduction)]:
                    if math.isfinite(loss) and (point, rung + 1) not in self._begun:
                        return point, rung + 1
        return None


class SeedRace:
    """A race between points over seeds.

    The noise is the part of the losses that points and seeds do not explain. It is assumed to be normal and
    equal for all points. `bench/race.py` measures how often the race drops the best point if that does not
    hold.
    """

    def __init__(self, seeds: Sequence[int], risk: float) -> None:
        self._seeds, self._risk = tuple(seeds), risk
        self._losses: list[list[float]] = []  # of complete points, by seed
        self._eligible: list[bool] = []  # whether they keep to the limits, so that they can be the best

    def add(self, losses: Mapping[int, float], *, eligible: bool = True) -> None:
        """Add the losses of an ended point by seed; a point without all seeds is ignored."""
        found = [losses.get(seed, math.nan) for seed in self._seeds]
        if all(map(math.isfinite, found)):
            self._losses.append(found)
            self._eligible.append(eligible)

    def is_promising(self, losses: Mapping[int, float]) -> bool:
        """Return whether a point with these losses may still be the best; false if a loss is NaN."""
        if not all(map(math.isfinite, losses.values())):
            return False
        places = [place for place, seed in enumerate(self._seeds) if seed in losses]
        rivals, eligible = np.array(self._losses), np.array(self._eligible)
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
