"""Seeds that would decide the differences of tables: whether they exist, or are too small to matter.

A table with a `smallest_difference` asks for seeds for each difference that is not decided yet. These are
differences from a baseline and, with `best = "test"`, differences of the bold values from the best of their
column. A candidate is one such difference, all of a column, or all of the table.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import polars as pl

from ...studies.schema.factors import SEED
from ...studies.schema.level_names import level_text
from ..kinds.cells import CellsTable, make_filler
from ..statistics.decided_differences import DecidedDifference
from ..statistics.estimates import t_quantile
from ..statistics.sequential import seeds_at_looks
from .candidate import MIN_CHANCE, NextSeeds, total_seconds

if TYPE_CHECKING:
    from ...studies.planning.time_estimates import TimeEstimator
    from ...studies.resolve.trial import Trial
    from ...studies.study import Study
    from ..tables.cells import CellFiller
    from ..tables.tally import CellKey


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedDifference:
    """A difference of two cells of a table, the decision on it, and the smallest that matters."""

    cells: tuple[CellKey, CellKey]
    found: DecidedDifference
    margin: float


def asks_for_seeds(study: Study) -> list[CellsTable]:
    """Return the tables of a study that say which differences matter."""
    return [spec for spec in study.tables if isinstance(spec, CellsTable) and spec.smallest_difference]


def decided_differences(study: Study, outcomes: pl.DataFrame) -> tuple[int, int]:
    """Return how many differences are decided in the tables with a margin, and how many there are."""
    decided = left = 0
    for spec in asks_for_seeds(study):
        filler = make_filler(study, spec, outcomes)
        judged = [each for column in judged_differences(filler) for each in column]
        undecided = sum(not each.found.is_decided for each in judged)
        tested = [best for best in filler.best_of_columns if spec.margin(best.metric.name) is not None]
        decided += len(judged) - undecided + sum(best.worse for best in tested)
        left += undecided
    return decided, decided + left


def table_candidates(study: Study, outcomes: pl.DataFrame, estimator: TimeEstimator) -> Iterator[NextSeeds]:
    """Yield candidates of seeds for the tables of a study."""
    for spec in asks_for_seeds(study) if study.later_seeds else ():
        yield from _OpenTable(study, make_filler(study, spec, outcomes), outcomes).candidates(estimator)


def judged_differences(filler: CellFiller) -> list[list[JudgedDifference]]:
    """Return the differences of each column of a table that are to be decided."""
    found: list[list[JudgedDifference]] = []
    for column, best in zip(filler.columns, filler.best_of_columns, strict=True):
        name = column.metric.name
        margin = filler.spec.margin(name)
        if margin is None:
            continue
        pairs = {
            ((row, column.level, name), (filler.baselines[row], column.level, name)): each
            for row, each in filler.differences[name, column.level].decided.items()
        }
        pairs |= best.rivals
        found.append([JudgedDifference(cells=two, found=each, margin=margin) for two, each in pairs.items()])
    return found


@dataclass(frozen=True)
class _OpenTable:
    """A table of a study to which seeds may be added."""

    study: Study
    filler: CellFiller
    outcomes: pl.DataFrame

    def candidates(self, estimator: TimeEstimator) -> Iterator[NextSeeds]:
        """Yield candidates: seeds of one difference, of a column, or of all.

        If some differences have a single seed, and so no spread, all candidates are seeds of these.
        """
        columns = [
            [each for each in column if self._grows(each)] for column in judged_differences(self.filler)
        ]
        every = [each for column in columns for each in column]
        blind = [each for each in every if each.found.last.error is None and self._seeds_of(each, 0) == 1]
        if blind:
            if (found := self._of(blind, 1, estimator, expected=None)) is not None:
                yield found
            return
        groups = [[each] for each in every] + [column for column in columns if len(column) > 1]
        for group in [*groups, every] if sum(map(bool, columns)) > 1 else groups:
            for ahead in range(1, len(self._looks)):
                found = self._candidate(group, ahead, estimator)
                if found is not None:
                    yield found

    @cached_property
    def _looks(self) -> tuple[tuple[int, ...], ...]:
        return seeds_at_looks(self.study.seeds, self.study.later_seeds)

    @cached_property
    def _to_train(self) -> dict[tuple[str, str], dict[int, list[Trial]]]:
        spec = self.filler.spec
        ended = set(self.outcomes.filter(pl.col("status") != "incomplete")["trial"])
        own = {trial.id: trial for trial in self.study.with_later_seeds().trials}  # without the rows' names
        found: dict[tuple[str, str], dict[int, list[Trial]]] = {}
        for trial in self.filler.trials:
            if trial.id not in ended:
                column = "" if spec.columns is None else level_text(trial.levels[spec.columns])
                place = level_text(trial.levels[spec.rows]), column
                found.setdefault(place, {}).setdefault(int(trial.levels[SEED]), []).append(own[trial.id])
        return found

    def _grows(self, each: JudgedDifference) -> bool:
        """Return whether seeds may be added to a difference, all trials of which have a value so far."""
        complete = not any(tally.gaps for cell in each.cells for tally in self.filler.grown[cell])
        return complete and not each.found.is_decided and each.found.looks < len(self._looks)

    def _candidate(
        self, group: Sequence[JudgedDifference], ahead: int, estimator: TimeEstimator
    ) -> NextSeeds | None:
        """Return the differences that may be decided `ahead` looks from now; None if there are none."""
        chances = [self._chance(each, ahead) for each in group]
        chosen = [each for each, chance in zip(group, chances, strict=True) if chance >= MIN_CHANCE]
        expected = math.fsum(chance for chance in chances if chance >= MIN_CHANCE)
        return self._of(chosen, ahead, estimator, expected=expected)

    def _of(
        self,
        chosen: Sequence[JudgedDifference],
        ahead: int,
        estimator: TimeEstimator,
        *,
        expected: float | None,
    ) -> NextSeeds | None:
        """Return the candidate that brings differences to their next look; None if it needs no trial."""
        trials = self._trials(chosen, 1)
        if not trials:
            return None
        return NextSeeds(
            kind="table",
            name=self.filler.spec.name,
            trials=trials,
            seeds=max(self._seeds_of(each, 1) for each in chosen),
            seconds=total_seconds(trials, estimator),
            undecided=len(chosen),
            expected=expected,
            seeds_then=max(self._seeds_of(each, ahead) for each in chosen),
            seconds_then=total_seconds(self._trials(chosen, ahead), estimator),
        )

    def _seeds_of(self, each: JudgedDifference, ahead: int) -> int:
        return self.filler.counts[min(each.found.looks + ahead, len(self._looks)) - 1]

    def _trials(self, chosen: Sequence[JudgedDifference], ahead: int) -> tuple[Trial, ...]:
        found = {
            trial.id: trial
            for each in chosen
            for row, column, _ in each.cells
            for seed in self._looks[-1][: self._seeds_of(each, ahead)]
            for trial in self._to_train.get((row, column), {}).get(seed, ())
        }
        return tuple(found.values())

    def _chance(self, each: JudgedDifference, ahead: int) -> float:
        """Return the chance that a difference is decided `ahead` looks from now, given the last look.

        The mean of the added seeds is centred at the found effect, with the error of both means. This is the
        predictive distribution of a normal mean under a flat prior.
        """
        from scipy.special import ndtr  # noqa: PLC0415 -- only this needs it

        last = each.found.last
        if last.error is None or last.degrees is None:
            return 0.0
        growth = self._seeds_of(each, ahead) / self.filler.counts[each.found.looks - 1]
        count = last.n * growth
        error = last.error * math.sqrt(1 - 1 / growth) or 1e-12
        degrees, then = last.degrees + count - last.n, last.error / math.sqrt(growth)
        there = t_quantile(1 - each.found.level, degrees + 1) * then
        small = max(0.0, each.margin - t_quantile(1 - each.found.level_within, degrees + 1) * then)

        def between(low: float, high: float) -> float:
            return max(0.0, float(ndtr((high - last.mean) / error) - ndtr((low - last.mean) / error)))

        return 1.0 - between(small, there) - between(-there, -small)
