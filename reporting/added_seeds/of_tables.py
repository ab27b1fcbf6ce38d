"""Seeds that would decide differences in tables: whether they are real, or too small to matter.

A table with a `smallest_difference` needs seeds for each undecided difference. These are differences from a
baseline and, with `best = "test"`, differences of the bold values from the best of their column. A candidate
is one such difference, all of a column, or all of the table.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import polars as pl

from ...studies.schema.factors import SEED, level_text
from ..kinds.cells import CellsTable
from ..statistics.decided_differences import DecidedDifference
from ..statistics.estimates import t_quantile
from ..tables.cells import TableCells
from .candidate import MIN_CHANCE, NextSeeds, OpenResult

if TYPE_CHECKING:
    from ...studies.planning.time_estimates import TimeEstimator
    from ...studies.resolve.trial import Trial
    from ...studies.study import Study
    from ..tables.tally import CellKey


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedDifference:
    """A difference between two cells of a table, its decision, and the smallest difference that matters."""

    cells: tuple[CellKey, CellKey]
    found: DecidedDifference
    margin: float


def asks_for_seeds(study: Study) -> list[CellsTable]:
    """Return the tables of a study that define a smallest difference."""
    return [spec for spec in study.tables if isinstance(spec, CellsTable) and spec.smallest_difference]


def decided_differences(study: Study, outcomes: pl.DataFrame) -> tuple[int, int]:
    """Return how many differences are decided in the tables with a margin, and the total."""
    decided = left = 0
    for spec in asks_for_seeds(study):
        made = TableCells(study=study, spec=spec, outcomes=outcomes)
        judged = [each for column in judged_differences(made) for each in column]
        undecided = sum(not each.found.is_decided for each in judged)
        tested = [best for best in made.best_of_columns if spec.margin(best.metric.name) is not None]
        decided += len(judged) - undecided + sum(best.worse for best in tested)
        left += undecided
    return decided, decided + left


def table_candidates(study: Study, outcomes: pl.DataFrame, estimator: TimeEstimator) -> Iterator[NextSeeds]:
    """Yield candidates of seeds for the tables of a study."""
    for spec in asks_for_seeds(study) if study.later_seeds else ():
        yield from _OpenTable(TableCells(study=study, spec=spec, outcomes=outcomes)).candidates(estimator)


def judged_differences(made: TableCells) -> list[list[JudgedDifference]]:
    """Return the differences in each column of a table that need a decision."""
    found: list[list[JudgedDifference]] = []
    for column, best in zip(made.columns, made.best_of_columns, strict=True):
        name = column.metric.name
        margin = made.spec.margin(name)
        if margin is None:
            continue
        pairs = {
            ((row, column.level, name), (made.baselines[row], column.level, name)): each
            for row, each in made.differences[name, column.level].decided.items()
        }
        pairs |= best.rivals
        found.append([JudgedDifference(cells=two, found=each, margin=margin) for two, each in pairs.items()])
    return found


@dataclass(frozen=True)
class _OpenTable(OpenResult[JudgedDifference]):
    """A table of a study to which seeds may be added."""

    kind: ClassVar = "table"
    made: TableCells

    @property
    def name(self) -> str:
        return self.made.spec.name

    @property
    def looks(self) -> Sequence[Sequence[int]]:
        return self.made.looks

    def groups(self) -> list[list[JudgedDifference]]:
        columns = [[each for each in column if self._grows(each)] for column in judged_differences(self.made)]
        every = [each for column in columns for each in column]
        groups = [[each] for each in every] + [column for column in columns if len(column) > 1]
        return [*groups, every] if sum(map(bool, columns)) > 1 else groups

    def held(self, question: JudgedDifference) -> int:
        return question.found.looks

    def is_blind(self, question: JudgedDifference) -> bool:
        return question.found.last.error is None and len(self.seeds(question, 0)) == 1

    def trials(self, question: JudgedDifference, seeds: Collection[int]) -> Iterator[Trial]:
        for row, column, _ in question.cells:
            for seed in self.looks[-1][: len(seeds)]:
                yield from self._not_ended.get((row, column), {}).get(seed, ())

    def expect(self, group: Sequence[JudgedDifference], ahead: int) -> tuple[list[JudgedDifference], float]:
        chances = {each: self._chance(each, ahead) for each in group}
        chosen = {each: chance for each, chance in chances.items() if chance >= MIN_CHANCE}
        return list(chosen), math.fsum(chosen.values())

    @cached_property
    def _not_ended(self) -> dict[tuple[str, str], dict[int, list[Trial]]]:
        """Return the trials to train by row and column, then by seed."""
        spec, study = self.made.spec, self.made.study
        ended = set(self.made.outcomes.filter(pl.col("status") != "incomplete")["trial"])
        own = {trial.id: trial for trial in study.with_later_seeds().trials}  # without the rows' names
        found: dict[tuple[str, str], dict[int, list[Trial]]] = {}
        for trial in self.made.trials:
            if trial.id not in ended:
                column = "" if spec.columns is None else level_text(trial.levels[spec.columns])
                place = level_text(trial.levels[spec.rows]), column
                found.setdefault(place, {}).setdefault(int(trial.levels[SEED]), []).append(own[trial.id])
        return found

    def _grows(self, each: JudgedDifference) -> bool:
        """Return whether seeds may be added to a difference whose trials all have a value so far."""
        complete = not any(tally.gaps for cell in each.cells for tally in self.made.grown[cell])
        return complete and not each.found.is_decided and each.found.looks < len(self.looks)

    def _chance(self, each: JudgedDifference, ahead: int) -> float:
        """Return the chance that a difference is decided `ahead` looks from now, given the last look.

        The mean of the added seeds is centred at the observed effect, with the error of both means. This is
        the predictive distribution of a normal mean under a flat prior.
        """
        from scipy.special import ndtr  # noqa: PLC0415 -- only this needs it

        last = each.found.last
        if last.error is None or last.degrees is None:
            return 0.0
        growth = len(self.seeds(each, ahead)) / self.made.counts[each.found.looks - 1]
        count = last.n * growth
        error = last.error * math.sqrt(1 - 1 / growth) or 1e-12
        degrees, then = last.degrees + count - last.n, last.error / math.sqrt(growth)
        there = t_quantile(1 - each.found.level, degrees + 1) * then
        small = max(0.0, each.margin - t_quantile(1 - each.found.level_within, degrees + 1) * then)

        def between(low: float, high: float) -> float:
            return max(0.0, float(ndtr((high - last.mean) / error) - ndtr((low - last.mean) / error)))

        return 1.0 - between(small, there) - between(-there, -small)
