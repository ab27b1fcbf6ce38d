"""match = "parameters": the size that gives a cell's model as many parameters as the baseline's."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

from ...grammar import Recipe, lookup
from ...grammar.nodes import BlockNode, HoleNode, RepeatNode, walk
from ...grammar.semantics.checker import MAX_BLOCKS
from ..schema.design import Design, level_key
from ..schema.settings import MAX_D_MODEL, Level, read_recipe
from ..text.pydantic_messages import InvalidTableError
from .costs import parameter_count
from .resolve import resolve_settings
from .template import D_MODEL_PATH, RECIPE_PATH, Template

SIZE_PATHS = (RECIPE_PATH, D_MODEL_PATH)
"""The keys that may use a size."""

_MAX_SIZE = 2**31  # if a parameter sets no bound


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeMatch:
    """A cell's size, None if it has none to solve, and its model's parameters and the baseline's."""

    size: int | None
    parameters: int
    target: int

    @property
    def residual(self) -> int:
        """The parameters beyond the baseline's; negative if there are fewer."""
        return self.parameters - self.target

    @property
    def relative_residual(self) -> float:
        """The residual as a fraction of the baseline's parameters."""
        return self.residual / self.target

    def __str__(self) -> str:
        """Return the parameters and their relative residual: `1,603,940 (+0.032 %)`."""
        percent = 100 * self.relative_residual
        shown = f"{percent:+,.0f}" if abs(percent) >= 100 else f"{percent:+.3g}"
        return f"{self.parameters:,} ({shown} %)".replace("-", "−")


def nearest_sizes(count: Callable[[int], float], target: int, low: int, high: int) -> list[int]:
    """Return the sizes on both sides of the target, the nearer first.

    There is only one if the target is out of range. `count` must not decrease with the size.
    """
    above = _smallest_reaching(count, target, low, high)
    sizes = [size for size in (above - 1, above) if low <= size <= high and math.isfinite(count(size))]
    return sorted(sizes, key=lambda size: abs(count(size) - target))


def _smallest_reaching(count: Callable[[int], float], target: int, low: int, high: int) -> int:
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
class ParameterMatcher:
    """Solves the sizes of cells against the design's baseline."""

    template: Template
    design: Design

    def solve(self, levels: Mapping[str, Level]) -> list[SizeMatch]:
        """Return the possible sizes of a cell, the nearest to its baseline first.

        A cell without a size to solve has one entry. Its baseline is the cell with the levels that the
        baseline names, and its own of other factors. Raises InvalidTableError if that baseline is invalid.
        """
        assert self.design.matched_size is not None
        name, baseline_size = self.design.matched_size
        baseline = self.design.baseline_of(levels)
        target = self._count(baseline, baseline_size)
        texts = {factor: [level] for factor, level in levels.items()}
        if not any(name in self.template.names_at(path, texts) for path in SIZE_PATHS):
            return [SizeMatch(size=None, parameters=self._count(levels, baseline_size), target=target)]
        if all(level_key(baseline[factor]) == level_key(level) for factor, level in levels.items()):
            return [SizeMatch(size=baseline_size, parameters=target, target=target)]
        low, high = self._bounds(levels, name)

        @cache  # it is asked for the same sizes again, and each is read and counted anew
        def count(size: int) -> float:
            try:
                return self._count(levels, size)
            except InvalidTableError:  # too many blocks
                return math.inf

        sizes = nearest_sizes(count, target, low, high)
        return [SizeMatch(size=size, parameters=int(count(size)), target=target) for size in sizes]

    def _count(self, levels: Mapping[str, Level], size: int) -> int:
        """Return the parameters of a cell's model with a size."""
        assert self.design.matched_size is not None
        return parameter_count(resolve_settings(self.template, {**levels, self.design.matched_size[0]: size}))

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
