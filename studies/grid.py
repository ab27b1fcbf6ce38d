"""The trials of a grid: every cell of the design with its settings, sized and held against the budget.

Nothing is built for it: settings come from the text, parameters and operations from its analysis.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from .budget import Budget
from .design import MOST_TRIALS, Design, same
from .factors import SEED
from .labels import level_text
from .matching import PLACES, Matcher, Sized
from .positions import KeyPath
from .probing import note_of_cell
from .report import Report
from .settings import Level, Settings
from .settling import settle
from .template import RECIPE, Template
from .trial import Trial
from .wording import ProblemsError, shown

_MOST_FAULTS = 20  # of cells that only several levels together make wrong


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """The trials of a grid in the order of the file.

    `asked` has every cell with every seed, so that several may be the same trial under other levels;
    `refused` are those over budget; `sized` has by trial what was solved for equal parameters.
    """

    asked: tuple[Trial, ...] = ()
    refused: tuple[Trial, ...] = ()
    sized: Mapping[str, Sized] = field(default_factory=dict)

    @property
    def trials(self) -> tuple[Trial, ...]:
        """Every trial once, with the levels of its first cell."""
        found: dict[str, Trial] = {}
        for trial in self.asked:
            found.setdefault(trial.id, trial)
        return tuple(found.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Maker:
    """Makes the grid of a study; what only several levels together make wrong is noted.

    `tolerance` bounds how far a cell's parameters may be from its baseline's, as a share of those.
    """

    report: Report
    study: str
    template: Template
    design: Design
    budget: Budget
    tolerance: float
    told: set[tuple[KeyPath | None, str]] = field(default_factory=set)  # what no size can match

    def grid(self) -> Grid:
        """The grid, without the cells that have faults; an empty one of too many trials.

        A budget that refuses every cell is a fault: there would be nothing to run.
        """
        count = self.design.count()
        if count > MOST_TRIALS:
            where = "factors" if "factors" in self.report.document.data else "cells"
            self.report.note((where,), f"expected at most {MOST_TRIALS:,} trials, got {count:,}")
            return Grid()
        asked: list[Trial] = []
        refused: list[Trial] = []
        sized: dict[str, Sized] = {}
        for levels, settings, size in self._settled():
            seeded = settings.model_copy(update={"seed": levels[SEED]})
            trial = Trial(study=self.study, levels=levels, settings=seeded)
            (asked if self.budget.allows(settings) else refused).append(trial)
            if size is not None:
                sized.setdefault(trial.id, size)
        if refused and not asked and not self.report.faults:
            self._note_refusal(refused)
        return Grid(asked=tuple(asked), refused=tuple(refused), sized=sized)

    def _settled(self) -> Iterator[tuple[dict[str, Level], Settings, Sized | None]]:
        """Every cell with every seed, its settings, and what was solved for it.

        Cells that differ in the seed settle once. It ends early when there are faults enough.
        """
        known: dict[object, tuple[Settings, Sized | None] | None] = {}
        for levels in self.design.cells():
            key = tuple(same(level) for factor, level in levels.items() if factor != SEED)
            if key not in known:
                if len(self.report.faults) >= _MOST_FAULTS:
                    return
                known[key] = self._settle(levels)
            found = known[key]
            if found is not None:
                yield levels, *found

    def _settle(self, levels: Mapping[str, Level]) -> tuple[Settings, Sized | None] | None:
        """A cell's settings, its size solved if it has one; None if that cannot be, which is noted."""
        values, sized = dict(levels), None
        if self.design.size is not None:
            sized = self._solve(levels)
            if sized is None:
                return None
            values[self.design.size[0]] = self.design.size[1] if sized.size is None else sized.size
        try:
            return settle(self.template, values), sized
        except ProblemsError as error:
            for problem in error.problems:
                note_of_cell(self.report, self.template, problem, levels, {})
            return None

    def _solve(self, levels: Mapping[str, Level]) -> Sized | None:
        """The size of a cell; None if none comes near enough, which is noted with those that come nearest."""
        assert self.design.size is not None
        try:
            found = Matcher(template=self.template, design=self.design).solve(levels)
        except ProblemsError as error:
            for problem in error.problems:
                note_of_cell(self.report, self.template, problem, {**levels, **self.design.baseline}, {})
            return None
        if abs(found[0].share) <= self.tolerance:
            return found[0]
        self._note_mismatch(self.design.size[0], levels, found)
        return None

    def _note_mismatch(self, name: str, levels: Mapping[str, Level], found: Sequence[Sized]) -> None:
        """Note a cell whose parameters come not near enough to its baseline's, and what comes nearest.

        At the level that makes it so, if the cell's model hangs on one alone; else at the recipe, with all.
        """
        texts = {factor: [level] for factor, level in levels.items()}
        factors = list(dict.fromkeys(one for path in PLACES for one in self.template.names_at(path, texts)))
        factors = [factor for factor in factors if factor in levels and len(self.design.factors[factor]) > 1]
        wanted = f"expected the baseline's {found[0].target:,} parameters within {100 * self.tolerance:g} %"
        if found[0].size is None:
            told = f"got {found[0]}, and no hole {{{name}}} to solve"
        else:
            told = "but " + " and ".join(f"{name}={one.size} gives {one}" for one in found)
        where = ", ".join(f"{factor}={shown(levels[factor])}" for factor in factors)
        origin = self._place(factors[0], levels[factors[0]]) if len(factors) == 1 else None
        if (origin, where) not in self.told:  # once for all tasks
            self.told.add((origin, where))
            message = f"{wanted}, {told}" + ("" if origin or not where else f", where {where}")
            self.report.note(origin or RECIPE, message)

    def _place(self, factor: str, level: Level) -> KeyPath | None:
        """Where a level stands in [factors]; None if it does not."""
        found = [same(one) for one in self.design.combined.get(factor, ())]
        return ("factors", factor, found.index(same(level))) if same(level) in found else None

    def _note_refusal(self, refused: Sequence[Trial]) -> None:
        """Note a budget that no cell keeps to, and by how much the smallest of them misses it."""
        least = min(refused, key=lambda trial: self.budget.load(trial.settings))
        cell = ", ".join(
            f"{name}={level_text(level)}" for name, level in least.levels.items() if name != SEED
        )
        what = f"every cell is over budget; the least{f' is {cell}' if cell else ''}: "
        key = "max_parameters" if self.budget.max_parameters is not None else "max_step_flops"
        self.report.note(("study", key), what + self.budget.excess(least.settings))
