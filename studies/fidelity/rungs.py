"""The rungs of a search: what its points are trained at first, and how many of them come to each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..schema.settings import Level


@dataclass(frozen=True, slots=True, kw_only=True)
class Fidelity:
    """The factor that grows from rung to rung: its name and its values, the smallest first.

    One of `reduction` points on a rung is promoted to the next. With `brackets`, as in Hyperband, some
    points begin on higher rungs and compete only with those that began there, too.
    """

    name: str
    rungs: tuple[int, ...]
    reduction: int
    brackets: bool

    @property
    def top(self) -> int:
        """The number of the last rung, from 0 on."""
        return len(self.rungs) - 1

    def level(self, rung: int) -> dict[str, Level]:
        """Return the level of a rung's trials."""
        return {self.name: self.rungs[rung]}

    def rung_of(self, levels: Mapping[str, Level]) -> int | None:
        """Return the rung of a trial with these levels, by default the last; None if there is none."""
        value = levels.get(self.name, self.rungs[-1])
        return self.rungs.index(value) if isinstance(value, int) and value in self.rungs else None

    def next_first(self, begun: Mapping[int, int]) -> int:
        """Return the rung on which the next point begins, given how many have begun on each.

        Each bracket gets its share of points, that of Hyperband (Li et al. 2018, Algorithm 1).
        """
        if not self.brackets:
            return 0
        return min(range(self.top + 1), key=lambda first: (begun.get(first, 0) / self._share(first), first))

    def _share(self, first: int) -> int:
        """Return how many points of a round of brackets begin on a rung: ⌈(s_max + 1) / (s + 1) · η^s⌉."""
        halvings = self.top - first
        return -(-(self.top + 1) * self.reduction**halvings // (halvings + 1))

    @property
    def least_points(self) -> int:
        """The fewest points of which one comes to the last rung; each bracket gets its first in turn."""
        return len(self.rungs) if self.brackets else self.reduction**self.top

    def planned(self, points: int, *, has_baseline: bool = False) -> list[int]:
        """Return how many points reach each rung, the smallest first, if no early promotion is overtaken.

        A baseline is one of them and is trained on the last rung only.
        """
        begun = self._first_rungs(points - has_baseline)
        counts = [0] * self.top + [int(has_baseline)]
        for first, count in begun.items():
            for rung in range(first, self.top + 1):
                counts[rung] += count
                count = promoted_count(count, self.reduction)  # noqa: PLW2901 -- those that go on
        return counts

    def _first_rungs(self, points: int) -> dict[int, int]:
        """Return how many points begin on each rung: whole rounds of brackets, then one by one."""
        if not self.brackets:
            return {0: points}
        shares = {first: self._share(first) for first in range(self.top + 1)}
        rounds, others = divmod(points, sum(shares.values()))
        begun = {first: rounds * share for first, share in shares.items()}
        for _ in range(others):
            begun[self.next_first(begun)] += 1
        return begun


def promoted_count(ended: int, reduction: int) -> int:
    """Return how many of the points that ended on a rung are promoted; below `reduction` none is."""
    return ended // reduction
