"""The trials of a grid: every cell of the design with its settings, sized and checked against the budget.

No model is built: settings come from the text, parameters and operations from its analysis.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ..schema.design import MAX_TRIALS, Design, level_key
from ..schema.factors import SEED
from ..schema.level_names import level_text
from ..schema.settings import Level, TrialSettings
from ..text.diagnostics import Diagnostics
from ..text.pydantic_messages import InvalidTableError, format_value
from ..text.toml_positions import KeyPath
from .level_checks import report_cell_problem
from .parameter_matching import SIZE_PATHS, ParameterMatcher, SizeMatch
from .resolve import resolve_settings
from .study_budget import StudyBudget
from .template import RECIPE_PATH, Template
from .trial import Trial

_MAX_FAULTS = 20  # of cells that are wrong only by several levels together


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialGrid:
    """The trials of a grid in the order of the file.

    `cells` has every cell with every seed: several may be the same trial under other levels. `size_matches`
    has by trial the size that was solved for equal parameters.
    """

    cells: tuple[Trial, ...] = ()
    over_budget: tuple[Trial, ...] = ()
    size_matches: Mapping[str, SizeMatch] = field(default_factory=dict)

    @property
    def trials(self) -> tuple[Trial, ...]:
        """Every trial once, with the levels of its first cell."""
        found: dict[str, Trial] = {}
        for trial in self.cells:
            found.setdefault(trial.id, trial)
        return tuple(found.values())


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
    reported: set[tuple[KeyPath | None, str]] = field(default_factory=set)  # what no size can match

    def build(self) -> TrialGrid:
        """The grid, without the cells that have faults; empty if there are too many trials.

        A budget that excludes every cell is a fault: there would be nothing to run.
        """
        count = self.design.count()
        if count > MAX_TRIALS:
            where = "factors" if "factors" in self.diagnostics.document.data else "cells"
            self.diagnostics.report_error((where,), f"expected at most {MAX_TRIALS:,} trials, got {count:,}")
            return TrialGrid()
        asked: list[Trial] = []
        refused: list[Trial] = []
        sized: dict[str, SizeMatch] = {}
        for levels, settings, size in self._resolved_cells():
            seeded = settings.model_copy(update={"seed": levels[SEED]})
            trial = Trial(study=self.study, levels=levels, settings=seeded)
            (asked if self.budget.allows(settings) else refused).append(trial)
            if size is not None:
                sized.setdefault(trial.id, size)
        if refused and not asked and not self.diagnostics.faults:
            self._report_over_budget(refused)
        return TrialGrid(cells=tuple(asked), over_budget=tuple(refused), size_matches=sized)

    def _resolved_cells(self) -> Iterator[tuple[dict[str, Level], TrialSettings, SizeMatch | None]]:
        """Every cell with every seed, its settings, and its solved size.

        Cells that differ only in the seed are resolved once. It ends early after _MAX_FAULTS faults.
        """
        known: dict[object, tuple[TrialSettings, SizeMatch | None] | None] = {}
        for levels in self.design.cells():
            key = tuple(level_key(level) for factor, level in levels.items() if factor != SEED)
            if key not in known:
                if len(self.diagnostics.faults) >= _MAX_FAULTS:
                    return
                known[key] = self._resolve_cell(levels)
            found = known[key]
            if found is not None:
                yield levels, *found

    def _resolve_cell(self, levels: Mapping[str, Level]) -> tuple[TrialSettings, SizeMatch | None] | None:
        """A cell's settings, with its size solved if it has one; None if faulty, which is noted."""
        values, sized = dict(levels), None
        if self.design.matched_size is not None:
            name, given = self.design.matched_size
            sized = self._solve_size(name, levels)
            if sized is None:
                return None
            values[name] = given if sized.size is None else sized.size
        try:
            return resolve_settings(self.template, values), sized
        except InvalidTableError as error:
            self._report_problems(error, levels)
            return None

    def _solve_size(self, name: str, levels: Mapping[str, Level]) -> SizeMatch | None:
        """The size of a cell; None if none is within the tolerance, which is noted with the nearest ones."""
        try:
            found = ParameterMatcher(template=self.template, design=self.design).solve(levels)
        except InvalidTableError as error:
            self._report_problems(error, {**levels, **self.design.baseline})
            return None
        if abs(found[0].relative_residual) <= self.tolerance:
            return found[0]
        self._report_mismatch(name, levels, found)
        return None

    def _report_problems(self, error: InvalidTableError, levels: Mapping[str, Level]) -> None:
        """Note what is wrong with a cell, with its levels."""
        for problem in error.problems:
            report_cell_problem(self.diagnostics, self.template, problem, levels, {})

    def _report_mismatch(self, name: str, levels: Mapping[str, Level], found: Sequence[SizeMatch]) -> None:
        """Note a cell whose parameters cannot match its baseline's within the tolerance, and the nearest.

        It is noted at the level if the cell's model depends on one alone, else at the recipe, with all.
        """
        texts = {factor: [level] for factor, level in levels.items()}
        factors = list(
            dict.fromkeys(one for path in SIZE_PATHS for one in self.template.names_at(path, texts))
        )
        factors = [factor for factor in factors if factor in levels and len(self.design.factors[factor]) > 1]
        wanted = f"expected the baseline's {found[0].target:,} parameters within {100 * self.tolerance:g} %"
        if found[0].size is None:
            outcome = f"got {found[0]}, and no hole {{{name}}} to solve"
        else:
            outcome = "but " + " and ".join(f"{name}={one.size} gives {one}" for one in found)
        where = ", ".join(f"{factor}={format_value(levels[factor])}" for factor in factors)
        origin = self._level_path(factors[0], levels[factors[0]]) if len(factors) == 1 else None
        if (origin, where) not in self.reported:  # once for all tasks
            self.reported.add((origin, where))
            message = f"{wanted}, {outcome}" + ("" if origin or not where else f", where {where}")
            self.diagnostics.report_error(origin or RECIPE_PATH, message)

    def _level_path(self, factor: str, level: Level) -> KeyPath | None:
        """Where a level stands in [factors]; None if it does not."""
        found = [level_key(one) for one in self.design.combined_factors.get(factor, ())]
        return ("factors", factor, found.index(level_key(level))) if level_key(level) in found else None

    def _report_over_budget(self, refused: Sequence[Trial]) -> None:
        """Note a budget that every cell exceeds, and by how much the smallest one does."""
        smallest = min(refused, key=lambda trial: self.budget.usage(trial.settings))
        cell = ", ".join(
            f"{name}={level_text(level)}" for name, level in smallest.levels.items() if name != SEED
        )
        what = f"every cell is over budget; the smallest{f' is {cell}' if cell else ''}: "
        key = "max_parameters" if self.budget.max_parameters is not None else "max_step_flops"
        self.diagnostics.report_error(("study", key), what + self.budget.describe_excess(smallest.settings))
