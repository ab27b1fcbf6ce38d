"""The trials of a grid: every cell of the design with its settings, sized and checked against the budget.

No model is built: settings come from the text, parameters and operations from its analysis.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ..ladder import Ladder, on_rung
from ..schema.design import MAX_TRIALS, Design, level_key
from ..schema.factors import SEED
from ..schema.level_names import level_text
from ..schema.settings import Level, TrialSettings
from ..text.diagnostics import Diagnostics
from ..text.pydantic_messages import InvalidTableError, format_value
from ..text.toml_positions import KeyPath
from .costs import parameter_count, sequence_tokens
from .level_checks import report_cell_problem
from .parameter_matching import SIZE_PATHS, ParameterMatcher, SizeMatch
from .resolve import resolve_settings
from .study_budget import StudyBudget
from .template import RECIPE_PATH, Template
from .trial import Trial

_MAX_FAULTS = 20  # of cells that only several levels together make invalid


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialGrid:
    """The trials of a grid in the order of the file.

    `cells` has every cell with every seed: cells of different levels may be the same trial. `size_matches`
    has the size that was solved for equal parameters, by trial.
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
    """Builds the grid of a study; faults of several levels together are noted.

    `tolerance` bounds how far a cell's parameters may be from its baseline's, as a fraction of those.
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
        """Return the grid without the cells that have faults; empty if there are too many trials.

        A budget that excludes every cell is a fault: there would be nothing to run.
        """
        count = self.design.count()
        if count > MAX_TRIALS:
            where = "factors" if "factors" in self.diagnostics.document.data else "cells"
            self.diagnostics.report_error((where,), f"expected at most {MAX_TRIALS:,} trials, got {count:,}")
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
        """Every cell with every seed, its settings, and its solved size.

        Cells that differ only in the seed are resolved once. It ends early after _MAX_FAULTS faults.
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
            self._report_problems(error, levels)
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
            self._report_problems(error, self.design.baseline_of(levels))
            return None
        if abs(nearest.relative_residual) <= self.tolerance:
            return nearest
        self._report_mismatch(name, levels, [nearest, *others])
        return None

    def _report_problems(self, error: InvalidTableError, levels: Mapping[str, Level]) -> None:
        """Note what is wrong with a cell, with its levels."""
        for problem in error.problems:
            report_cell_problem(self.diagnostics, self.template, problem, levels, {})

    def _report_mismatch(self, name: str, levels: Mapping[str, Level], nearest: Sequence[SizeMatch]) -> None:
        """Note a cell that no size brings to its baseline's parameters, and its nearest sizes.

        It is noted at the level if the cell's model depends on one alone, else at the recipe, with all.
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
        origin = self._level_path(factors[0], levels[factors[0]]) if len(factors) == 1 else None
        if (origin, where) not in self.reported:  # once for all tasks
            self.reported.add((origin, where))
            message = f"expected the baseline's {target}, {outcome}"
            message += "" if origin or not where else f", where {where}"
            self.diagnostics.report_error(origin or RECIPE_PATH, message)

    def _level_path(self, factor: str, level: Level) -> KeyPath | None:
        """Return the path of a level in [factors]; None if it is not there."""
        keys = list(map(level_key, self.design.combined_factors.get(factor, ())))
        return ("factors", factor, keys.index(level_key(level))) if level_key(level) in keys else None

    def _report_over_budget(self, trials: Sequence[Trial]) -> None:
        """Note a budget that every cell exceeds, and by how much the smallest one does."""
        smallest = min(trials, key=lambda trial: self.budget.usage(trial.settings))
        cell = ", ".join(
            f"{name}={level_text(level)}" for name, level in smallest.levels.items() if name != SEED
        )
        what = f"every cell is over budget; the smallest{f' is {cell}' if cell else ''}: "
        key = "max_parameters" if self.budget.max_parameters is not None else "max_step_flops"
        self.diagnostics.report_error(("study", key), what + self.budget.describe_excess(smallest.settings))
