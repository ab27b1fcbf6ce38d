"""The trials of a grid: every cell of the design with its settings, solved size, and budget.

No model is built: settings come from the text, parameters and FLOPs from its analysis.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from ...grammar import Recipe, lookup
from ...grammar.checker import MAX_BLOCKS
from ...grammar.nodes import BlockNode, HoleNode, RepeatNode, walk
from ..ladder import Ladder, on_rung
from ..schema.design import MAX_TRIALS, Design, level_key
from ..schema.factors import SEED
from ..schema.level_names import level_text
from ..schema.search_settings import Limit
from ..schema.settings import MAX_D_MODEL, Level, TrialSettings, read_recipe
from ..text.document import Diagnostics
from ..text.strict_model import InvalidTableError, format_value
from ..text.toml_positions import KeyPath
from .costs import model_cost, parameter_count, sequence_tokens, step_flops
from .draft import report_cell_problem
from .resolve import resolve_settings
from .template import D_MODEL_PATH, RECIPE_PATH, Template
from .trial import Trial


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyBudget:
    """Limits on a model's parameters and on the FLOPs of a training step.

    For a search also its other limits.
    """

    max_parameters: int | None = None
    max_step_flops: float | None = None
    limits: tuple[Limit, ...] = ()  # of what follows from a trial's text

    def allows(self, settings: TrialSettings) -> bool:
        """Return whether a trial's model is within all limits."""
        return self.usage(settings) <= 1 and not any(self._exceeded(settings))

    def usage(self, settings: TrialSettings) -> float:
        """Return the model's cost as a fraction of its tightest limit; 0 without limits."""
        return max((spent / bound for spent, bound, _ in self._bounded_costs(settings)), default=0.0)

    def describe_excess(self, settings: TrialSettings) -> str:
        """Describe how the model exceeds the limits: `4,488,548 parameters, at most 2,000,000`.

        "" if it does not.
        """
        costs = self._bounded_costs(settings)
        over = [text.format(spent, bound) for spent, bound, text in costs if spent > bound]
        return " and ".join([*over, *self._exceeded(settings)])

    def _exceeded(self, settings: TrialSettings) -> Iterator[str]:
        for limit in self.limits:
            if not limit.holds(value := model_cost(limit.name, settings)):
                yield f"{limit.name} {value:,g}, not {limit.sign} {limit.bound:,g}"

    def _bounded_costs(self, settings: TrialSettings) -> Iterator[tuple[float, float, str]]:
        if self.max_parameters is not None:
            yield parameter_count(settings), self.max_parameters, "{:,} parameters, at most {:,}"
        if self.max_step_flops is not None:
            yield step_flops(settings), self.max_step_flops, "{:.4g} FLOPs a step, at most {:.4g}"


SIZE_PATHS = (RECIPE_PATH, D_MODEL_PATH)
"""The keys that may use a size."""

_MAX_SIZE = 2**31  # if a parameter sets no bound


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeMatch:
    """A cell's solved size (None without one), its model's parameters, and the baseline's."""

    size: int | None
    parameters: int
    target: int

    @property
    def residual(self) -> int:
        """The parameters minus the baseline's."""
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

    Most counts are affine, so two of them give the answer; otherwise the range is bisected.
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
    """Solver of the sizes at which cells match the baseline's parameters."""

    template: Template
    design: Design

    def solve(self, levels: Mapping[str, Level]) -> list[SizeMatch]:
        """Return the possible sizes of a cell, the nearest to its baseline first.

        A cell without a size to solve has one entry. Its baseline has the levels that the baseline names, and
        the cell's levels of other factors. Raise InvalidTableError if that baseline is invalid.
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
        """Return the parameters of a cell's model at a size."""
        assert self.design.matched_size is not None
        return parameter_count(resolve_settings(self.template, {**levels, self.design.matched_size[0]: size}))

    def _bounds(self, levels: Mapping[str, Level], name: str) -> tuple[int, int]:
        """Return the smallest and the largest integer that fits everywhere a cell uses the size."""
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


_MAX_FAULTS = 20  # of cells that only several levels together make invalid


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialGrid:
    """The trials of a grid in file order.

    `cells` has every cell with every seed; different cells may be the same trial. `size_matches` has the
    sizes solved for equal parameters, by trial.
    """

    cells: tuple[Trial, ...] = ()
    over_budget: tuple[Trial, ...] = ()
    size_matches: Mapping[str, SizeMatch] = field(default_factory=dict)

    @property
    def trials(self) -> tuple[Trial, ...]:
        """Every trial once, with the levels of its first cell."""
        first: dict[str, Trial] = {}
        for trial in self.cells:
            first.setdefault(trial.id, trial)
        return tuple(first.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class GridBuilder:
    """Builder of a study's grid; faults of combined levels are reported.

    `tolerance` bounds the difference of a cell's parameters from its baseline's, as a fraction of those.
    """

    diagnostics: Diagnostics
    study: str
    template: Template
    design: Design
    budget: StudyBudget
    tolerance: float
    ladder: Ladder | None = None
    reported: set[tuple[KeyPath | None, str]] = field(default_factory=set)  # cells that no size can match

    def build(self) -> TrialGrid:
        """Return the grid without faulty cells; empty if there are too many trials.

        A budget that excludes every cell is a fault: there would be nothing to run.
        """
        count = self.design.count()
        if count > MAX_TRIALS:
            where = "factors" if "factors" in self.diagnostics.data else "cells"
            self.diagnostics.report((where,), f"expected at most {MAX_TRIALS:,} trials, got {count:,}")
            return TrialGrid()
        cells: list[Trial] = []
        over_budget: list[Trial] = []
        size_matches: dict[str, SizeMatch] = {}
        for levels, settings, match in self._resolved_cells():
            seeded = settings.model_copy(update={"seed": levels[SEED]})
            trial = Trial(study=self.study, levels=levels, settings=seeded)
            (cells if self.budget.allows(settings) else over_budget).append(trial)
            if match is not None:
                size_matches.setdefault(trial.id, match)
        if over_budget and not cells and not self.diagnostics.faults:
            self._report_over_budget(over_budget)
        return TrialGrid(cells=tuple(cells), over_budget=tuple(over_budget), size_matches=size_matches)

    def _resolved_cells(self) -> Iterator[tuple[dict[str, Level], TrialSettings, SizeMatch | None]]:
        """Yield every cell with every seed, its settings, and its solved size.

        Cells that differ only in the seed are resolved once. It stops after _MAX_FAULTS faults.
        """
        resolved: dict[object, tuple[TrialSettings, SizeMatch | None] | None] = {}
        for levels in self.design.cells():
            key = tuple(level_key(level) for factor, level in levels.items() if factor != SEED)
            if key not in resolved:
                if len(self.diagnostics.faults) >= _MAX_FAULTS:
                    return
                resolved[key] = self._resolve_cell(levels)
            if (cell := resolved[key]) is not None:
                yield levels, *cell

    def _resolve_cell(self, levels: Mapping[str, Level]) -> tuple[TrialSettings, SizeMatch | None] | None:
        """Return a cell's settings, with its size solved if it has one; report faults and return None."""
        values, match = dict(levels), None
        if self.design.matched_size is not None:
            name, baseline_size = self.design.matched_size
            match = self._solve_size(name, levels)
            if match is None:
                return None
            values[name] = baseline_size if match.size is None else match.size
        try:
            settings = resolve_settings(self.template, values)
        except InvalidTableError as error:
            for problem in error.problems:
                report_cell_problem(self.diagnostics, self.template, problem, levels, {})
            return None
        if self.ladder is not None:
            tokens = sequence_tokens(settings)
            parameters = parameter_count(settings)
            settings = on_rung(self.ladder, settings, levels, parameters=parameters, sequence_tokens=tokens)
        return settings, match

    def _solve_size(self, name: str, levels: Mapping[str, Level]) -> SizeMatch | None:
        """Return the size of a cell; report the nearest sizes if none is within the tolerance."""
        try:
            nearest, *others = ParameterMatcher(template=self.template, design=self.design).solve(levels)
        except InvalidTableError as error:
            baseline = self.design.baseline_of(levels)
            for problem in error.problems:
                report_cell_problem(self.diagnostics, self.template, problem, baseline, {})
            return None
        if abs(nearest.relative_residual) <= self.tolerance:
            return nearest
        self._report_mismatch(name, levels, [nearest, *others])
        return None

    def _report_mismatch(self, name: str, levels: Mapping[str, Level], nearest: Sequence[SizeMatch]) -> None:
        """Report a cell that no size brings to its baseline's parameters, and its nearest sizes.

        The fault is at the level if the cell's model depends on only one, else at the recipe, naming all
        levels.
        """
        texts = {factor: [level] for factor, level in levels.items()}
        names = dict.fromkeys(factor for path in SIZE_PATHS for factor in self.template.names_at(path, texts))
        factors = [factor for factor in names if factor in levels and len(self.design.factors[factor]) > 1]
        target = f"{nearest[0].target:,} parameters within {100 * self.tolerance:g} %"
        if nearest[0].size is None:
            outcome = f"got {nearest[0]}, and no hole {{{name}}} to solve"
        else:
            outcome = "but " + " and ".join(f"{name}={match.size} gives {match}" for match in nearest)
        where = ", ".join(f"{factor}={format_value(levels[factor])}" for factor in factors)
        origin = None
        if len(factors) == 1:
            keys = [level_key(level) for level in self.design.combined_factors.get(factors[0], ())]
            key = level_key(levels[factors[0]])
            origin = ("factors", factors[0], keys.index(key)) if key in keys else None
        if (origin, where) not in self.reported:  # once for all tasks
            self.reported.add((origin, where))
            message = f"expected the baseline's {target}, {outcome}"
            message += "" if origin or not where else f", where {where}"
            self.diagnostics.report(origin or RECIPE_PATH, message)

    def _report_over_budget(self, trials: Sequence[Trial]) -> None:
        """Report a budget that every cell exceeds, and by how much the smallest one does."""
        smallest = min(trials, key=lambda trial: self.budget.usage(trial.settings))
        cell = ", ".join(
            f"{name}={level_text(level)}" for name, level in smallest.levels.items() if name != SEED
        )
        what = f"every cell is over budget; the smallest{f' is {cell}' if cell else ''}: "
        key = "max_parameters" if self.budget.max_parameters is not None else "max_step_flops"
        self.diagnostics.report(("study", key), what + self.budget.describe_excess(smallest.settings))
