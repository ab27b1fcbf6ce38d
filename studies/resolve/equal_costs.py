"""Sizes solved so that every cell costs what its baseline costs: parameters, FLOPs, state or memory."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from ...grammar import Recipe, lookup
from ...grammar.checker import MAX_BLOCKS
from ...grammar.nodes import BlockNode, HoleNode, RepeatNode, walk
from ..schema.design import Design, MatchedSize, level_key
from ..schema.settings import MAX_D_MODEL, Level, MatchedCost, TrialSettings, read_recipe
from ..text.strict_model import InvalidTableError
from ..text.units import format_bytes, si_prefix
from .costs import flops_per_token, parameter_count, state_bytes, step_bytes
from .resolve import resolve_settings
from .template import D_MODEL_PATH, RECIPE_PATH, Template

SIZE_PATHS = (RECIPE_PATH, D_MODEL_PATH)
"""The keys that may use a size."""

_MAX_SIZE = 2**31  # if a parameter sets no bound

_COSTS: Mapping[MatchedCost, Callable[[TrialSettings], float]] = {
    "parameters": parameter_count,
    "flops": flops_per_token,
    "state": state_bytes,
    "memory": step_bytes,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CostMatch:
    """What a cell's model costs, and what the baseline's does."""

    name: MatchedCost
    amount: float
    target: float

    @property
    def residual(self) -> float:
        """The cost beyond the baseline's; negative if there is less."""
        return self.amount - self.target

    @property
    def relative_residual(self) -> float:
        """The residual as a fraction of the baseline's cost; infinite if that is 0 and this is not."""
        if not self.residual:
            return 0.0
        return self.residual / self.target if self.target else math.copysign(math.inf, self.residual)

    @property
    def residual_text(self) -> str:
        """Return the residual: a count of parameters, `−1,284`, else a percentage, `+0.31 %`."""
        if not self.residual:
            return "0"
        shown = f"{self.residual:+,.0f}" if self.name == "parameters" else self.percent
        return shown.replace("-", "−")

    @property
    def percent(self) -> str:
        """Return the relative residual: `+0.032 %`."""
        percent = 100 * self.relative_residual
        text = f"{percent:+,.0f} %" if abs(percent) >= 100 else f"{percent:+.3g} %"
        return text.replace("-", "−").replace("inf", "∞")

    def __str__(self) -> str:
        """Return the cost and its relative residual: `1,603,940 (+0.032 %)`."""
        return f"{cost_text(self.name, self.amount)} ({self.percent})"


def cost_text(name: MatchedCost, amount: float) -> str:
    """Return a cost with its unit: `1,603,940`, `12.3 MFLOPs a token`, `65.5 kB`."""
    if name == "parameters":
        return f"{amount:,.0f}"
    if name == "flops":
        unit, size = si_prefix(amount)
        return f"{amount / size:.4g} {unit}FLOPs a token"
    return format_bytes(amount)


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeMatch:
    """A cell's size, None if it has none to solve, and its model's costs beside the baseline's."""

    size: int | None
    costs: tuple[CostMatch, ...]

    @property
    def largest(self) -> CostMatch:
        """The cost that is furthest from the baseline's."""
        return max(self.costs, key=lambda cost: abs(cost.relative_residual))

    @property
    def residual_text(self) -> str:
        """Return the deviations of the costs: `−1,284`, and of several costs `flops +0.3 %, state −2 %`."""
        if len(self.costs) == 1:
            return self.costs[0].residual_text
        return ", ".join(f"{cost.name} {cost.residual_text}" for cost in self.costs)

    @property
    def balance(self) -> float:
        """The sum of the smallest and the largest relative residual; 0 where they are equally far apart."""
        found = [cost.relative_residual for cost in self.costs]
        return min(found) + max(found)

    def __str__(self) -> str:
        if len(self.costs) == 1:
            return str(self.costs[0])
        return ", ".join(f"{cost.name} {cost}" for cost in self.costs)


def nearest_sizes(count: Callable[[int], float], target: float, low: int, high: int) -> list[int]:
    """Return the sizes on both sides of the target, the nearer first.

    There is only one if the target is out of range. `count` must not decrease with the size.
    """
    above = _smallest_reaching(count, target, low, high)
    sizes = [size for size in (above - 1, above) if low <= size <= high and math.isfinite(count(size))]
    return sorted(sizes, key=lambda size: abs(count(size) - target))


def _smallest_reaching(count: Callable[[int], float], target: float, low: int, high: int) -> int:
    """Return the smallest size whose count is at least the target, `high + 1` if there is none.

    Most counts are affine, so that the first two give the answer; otherwise the range is bisected.
    """
    first = count(low)
    slope = count(low + 1) - first if low < high else 0
    if slope > 0 and math.isfinite(slope):
        guess = low + math.ceil((target - first) / slope)
        if low < guess <= high and count(guess - 1) < target <= count(guess):
            return guess
    return low + bisect_left(range(low, high + 1), target, key=count)


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeMatcher:
    """Solves the sizes of cells against the design's baseline."""

    template: Template
    design: Design
    matched: MatchedSize

    def solve(self, levels: Mapping[str, Level]) -> list[SizeMatch]:
        """Return the possible sizes of a cell, the nearest to its baseline first.

        A cell without a size to solve has one entry. Its baseline is the cell with the levels that the
        baseline names, and its own of other factors. Of several costs the largest relative residual counts.
        The baseline's size is kept where no other is nearer. Raises InvalidTableError if that baseline or
        every size is invalid.
        """
        name = self.matched.name
        baseline = self.design.baseline_of(levels)
        target = self._costs(baseline, self.matched.size)
        texts = {factor: [level] for factor, level in levels.items()}
        if not any(name in self.template.names_at(path, texts) for path in SIZE_PATHS):
            return [self._match(None, self._costs(levels, self.matched.size), target)]
        if all(level_key(baseline[factor]) == level_key(level) for factor, level in levels.items()):
            return [self._match(self.matched.size, target, target)]
        low, high = self._bounds(levels, name)

        @cache  # it is asked for the same sizes again, and each is read and counted anew
        def match(size: int) -> SizeMatch | None:
            try:
                return self._match(size, self._costs(levels, size), target)
            except InvalidTableError:  # too many blocks
                return None

        def balance(size: int) -> float:
            found = match(size)
            return math.inf if found is None else found.balance

        def distance(found: SizeMatch) -> float:
            return abs(found.largest.relative_residual)

        found = filter(None, map(match, nearest_sizes(balance, 0.0, low, high)))
        nearest = sorted(found, key=distance)
        kept = match(self.matched.size) if low <= self.matched.size <= high else None
        if kept is not None and (not nearest or distance(kept) <= distance(nearest[0])):
            return [kept, *(each for each in nearest if each.size != kept.size)]
        return nearest or [self._match(low, self._costs(levels, low), target)]

    def is_changed_by_size(self, levels: Mapping[str, Level], found: Sequence[SizeMatch]) -> bool:
        """Return whether the costs of a cell differ at these sizes, the baseline's and the one after it."""
        costs = [{cost.name: cost.amount for cost in each.costs} for each in found]
        try:
            costs += [self._costs(levels, self.matched.size + more) for more in (0, 1)]
        except InvalidTableError:
            return True
        return any(each != costs[0] for each in costs)

    def _match(
        self, size: int | None, costs: Mapping[MatchedCost, float], target: Mapping[MatchedCost, float]
    ) -> SizeMatch:
        matches = (CostMatch(name=name, amount=costs[name], target=target[name]) for name in costs)
        return SizeMatch(size=size, costs=tuple(matches))

    def _costs(self, levels: Mapping[str, Level], size: int) -> dict[MatchedCost, float]:
        """Return what a cell's model of a size costs."""
        settings = resolve_settings(self.template, {**levels, self.matched.name: size})
        return {name: _COSTS[name](settings) for name in self.matched.costs}

    def _bounds(self, levels: Mapping[str, Level], name: str) -> tuple[int, int]:
        """Return the smallest and the largest integer that fits wherever a cell uses the size."""
        values = {**levels, name: f"{{{name}}}"}
        ranges = _ranges(read_recipe(self.template.recipe(values)), name)
        if name in self.template.holes.get(D_MODEL_PATH, ()):
            ranges.append((1, MAX_D_MODEL))
        return max(low for low, _ in ranges), min(high for _, high in ranges)


def _ranges(recipe: Recipe, name: str) -> list[tuple[int, int]]:
    """Return the range of integers at each occurrence of a hole in a recipe."""
    ranges: list[tuple[int, int]] = []
    for node in walk(recipe.root):
        if isinstance(node, RepeatNode) and node.count == HoleNode(name):
            ranges.append((1, MAX_BLOCKS))
        if isinstance(node, BlockNode) and (spec := lookup(node.name)):
            for key, value in node.arguments:
                parameter = spec.parameter(key)
                if value == HoleNode(name) and parameter is not None:
                    low = -_MAX_SIZE if parameter.low is None else parameter.low
                    high = _MAX_SIZE if parameter.high is None else parameter.high
                    ranges.append((math.ceil(low), math.floor(high)))
    return ranges
