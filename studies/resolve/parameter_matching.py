"""match = "parameters": the size that gives a cell's model as many parameters as the baseline's."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ...grammar import Recipe, lookup
from ...grammar.nodes import BlockNode, HoleNode, RepeatNode, walk
from ...grammar.semantics.checker import MAX_BLOCKS
from ..schema.design import Design, level_key
from ..schema.settings import Level, ModelSettings, read_recipe
from ..text.pydantic_messages import InvalidTableError
from .costs import cost
from .resolve import resolve_settings
from .template import D_MODEL_PATH, RECIPE_PATH, Template

SIZE_PATHS = (RECIPE_PATH, D_MODEL_PATH)
"""Where a size may stand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeMatch:
    """A cell's size, None where it has none to solve, and its model's parameters beside the baseline's."""

    size: int | None
    parameters: int
    target: int

    @property
    def residual(self) -> int:
        """How many parameters the model has more than the baseline; below 0, fewer."""
        return self.parameters - self.target

    @property
    def relative_residual(self) -> float:
        """The residual as a share of the baseline's parameters."""
        return self.residual / self.target

    def __str__(self) -> str:
        """The parameters and how far off they are: `1,603,940 (+0.032 %)`."""
        percent = 100 * self.relative_residual
        shown = f"{percent:+,.0f}" if abs(percent) >= 100 else f"{percent:+.3g}"
        return f"{self.parameters:,} ({shown} %)".replace("-", "−")


def nearest_sizes(count: Callable[[int], float], target: int, low: int, high: int) -> list[int]:
    """The sizes on both sides of the target, the nearer first; one where the target lies outside.

    `count` must not fall with the size.
    """
    above = _smallest_reaching(count, target, low, high)
    sizes = [size for size in (above - 1, above) if low <= size <= high and math.isfinite(count(size))]
    return sorted(sizes, key=lambda size: abs(count(size) - target))


def _smallest_reaching(count: Callable[[int], float], target: int, low: int, high: int) -> int:
    """The smallest size that counts the target or more, one beyond `high` if none does.

    Most counts are affine, and then the first two tell the place; otherwise the range is halved.
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
    """Solves the size of cells; the baseline's levels and size are the design's."""

    template: Template
    design: Design

    def solve(self, levels: Mapping[str, Level]) -> list[SizeMatch]:
        """What a cell can have, the nearest to its baseline first; one entry if it has nothing to solve.

        Its baseline is the cell with the levels of the named one; factors that are not named stay its own.
        Raises ProblemsError where that baseline cannot be.
        """
        assert self.design.matched_size is not None
        name, given = self.design.matched_size
        like = {**levels, **self.design.baseline}
        target = self._count(like, given)
        texts = {factor: [level] for factor, level in levels.items()}
        if not any(name in self.template.names_at(path, texts) for path in SIZE_PATHS):
            return [SizeMatch(size=None, parameters=self._count(levels, given), target=target)]
        if all(level_key(like[factor]) == level_key(level) for factor, level in levels.items()):
            return [SizeMatch(size=given, parameters=target, target=target)]
        low, high = self._bounds(levels, name)

        def count(size: int) -> float:
            try:
                return self._count(levels, size)
            except InvalidTableError:  # a model of too many blocks
                return math.inf

        sizes = nearest_sizes(count, target, low, high)
        return [SizeMatch(size=size, parameters=int(count(size)), target=target) for size in sizes]

    def _count(self, levels: Mapping[str, Level], size: int) -> int:
        """The parameters of a cell's model with a size."""
        assert self.design.matched_size is not None
        return cost(
            resolve_settings(self.template, {**levels, self.design.matched_size[0]: size}), 1
        ).parameters

    def _bounds(self, levels: Mapping[str, Level], name: str) -> tuple[int, int]:
        """The least and the greatest whole number that can stand wherever the size does in a cell."""
        values = {**levels, name: f"{{{name}}}"}
        ranges = _ranges(read_recipe(self.template.recipe(values)), name)
        if name in self.template.holes.get(D_MODEL_PATH, ()):
            ranges.append(_d_model_bounds())
        return max(low for low, _ in ranges), min(high for _, high in ranges)


def _ranges(recipe: Recipe, name: str) -> list[tuple[int, int]]:
    """The whole numbers that can stand at each place of a hole in a recipe."""
    found: list[tuple[int, int]] = []
    for node in walk(recipe.root):
        if isinstance(node, RepeatNode) and node.count == HoleNode(name):
            found.append((1, MAX_BLOCKS))
        if isinstance(node, BlockNode) and (spec := lookup(node.name)):
            for key, value in node.arguments:
                parameter = spec.parameter(key)
                if value == HoleNode(name) and parameter is not None:
                    found.append(_integer_bounds(parameter.low, parameter.high))
    return found


def _integer_bounds(low: float | None, high: float | None) -> tuple[int, int]:
    """The whole numbers between two bounds; without one, those up to 2 ** 31 either way."""
    return math.ceil(-(2**31) if low is None else low), math.floor(2**31 if high is None else high)


def _d_model_bounds() -> tuple[int, int]:
    """The bounds of d_model."""
    metadata = ModelSettings.model_fields["d_model"].metadata
    (low,) = (one.ge for one in metadata if hasattr(one, "ge"))
    (high,) = (one.le for one in metadata if hasattr(one, "le"))
    return low, high
