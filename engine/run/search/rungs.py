"""Rungs: a point is first trained at a low fidelity, and at the next one if it is among the best.

This is asynchronous successive halving (Li et al. 2020, Algorithm 2) and, with brackets, Hyperband (Li et al.
2018). No point is dropped for good: it may be promoted later, after more points have ended on its rung. The
state follows from the stored rows alone, so that a search can resume.
"""

from __future__ import annotations

import math
from bisect import insort
from collections import Counter

from ....studies.fidelity import Fidelity, promoted_count


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
