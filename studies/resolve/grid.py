"""The trials of a grid: every cell of the design with its settings, solved size, and budget.

No model is built: settings come from the text, parameters and FLOPs from its analysis.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ..ladder import Ladder, on_rung
from ..schema.design import MAX_TRIALS, Design, MatchedSize, level_key
from ..schema.factors import SEED
from ..schema.level_names import level_text
from ..schema.search_settings import Limit
from ..schema.settings import Level, MatchedCost, TrialSettings
from ..text.document import Diagnostics
from ..text.strict_model import InvalidTableError, format_value
from ..text.toml_positions import KeyPath
from .costs import model_cost, parameter_count, sequence_tokens, step_flops
from .draft import report_cell_problem
from .equal_costs import SIZE_PATHS, SizeMatch, SizeMatcher, cost_text
from .resolve import resolve_settings
from .template import RECIPE_PATH, Template
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


_NOUNS: Mapping[MatchedCost, str] = {
    "parameters": "parameters",
    "flops": "",
    "state": "of state",
    "memory": "in a step",
}

_MAX_FAULTS = 20  # of cells that only several levels together make invalid


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialGrid:
    """The trials of a grid in file order.

    `cells` has every cell with every seed; different cells may be the same trial. `size_matches` has the
    sizes solved for equal costs, by trial.
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

    `tolerance` bounds the difference of a cell's matched costs from its baseline's, as a fraction of those.
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
        if (matched := self.design.matched_size) is not None:
            match = self._solve_size(matched, levels)
            if match is None:
                return None
            values[matched.name] = matched.size if match.size is None else match.size
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

    def _solve_size(self, matched: MatchedSize, levels: Mapping[str, Level]) -> SizeMatch | None:
        """Return the size of a cell; report the nearest sizes if none is within the tolerance."""
        matcher = SizeMatcher(template=self.template, design=self.design, matched=matched)
        try:
            nearest, *others = matcher.solve(levels)
        except InvalidTableError as error:
            baseline = self.design.baseline_of(levels)
            for problem in error.problems:
                report_cell_problem(self.diagnostics, self.template, problem, baseline, {})
            return None
        if abs(nearest.largest.relative_residual) <= self.tolerance:
            return nearest
        self._report_mismatch(matcher, levels, [nearest, *others])
        return None

    def _report_mismatch(
        self, matcher: SizeMatcher, levels: Mapping[str, Level], nearest: Sequence[SizeMatch]
    ) -> None:
        """Report a cell that no size brings to its baseline's costs, and its nearest sizes.

        The fault is at the level if the cell's model depends on only one, else at the recipe, naming all
        levels.
        """
        name, texts = matcher.matched.name, {factor: [level] for factor, level in levels.items()}
        names = dict.fromkeys(factor for path in SIZE_PATHS for factor in self.template.names_at(path, texts))
        factors = [factor for factor in names if factor in levels and len(self.design.factors[factor]) > 1]
        costs = " and ".join(
            f"{cost_text(each.name, each.target)} {_NOUNS[each.name]}".rstrip() for each in nearest[0].costs
        )
        target = f"{costs} within {100 * self.tolerance:g} %"
        if nearest[0].size is None:
            outcome = f"got {nearest[0]}, and no hole {{{name}}} to solve"
        elif not matcher.is_changed_by_size(levels, nearest):
            outcome = f"got {nearest[0]}, whatever {name} is"
        elif len(nearest[0].costs) > 1:
            outcome = f"but no size satisfies both; the nearest is {name}={nearest[0].size}"
            outcome += f", which gives {nearest[0]}"
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
        what = f"every cell exceeds the budget; the smallest{f' is {cell}' if cell else ''}: "
        key = "max_parameters" if self.budget.max_parameters is not None else "max_step_flops"
        self.diagnostics.report(("study", key), what + self.budget.describe_excess(smallest.settings))
