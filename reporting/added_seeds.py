"""The choice of the seeds to add next.

They are those that decide the most open questions per training hour. A question is an undecided comparison of
a claim, or an undecided difference in a table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

import polars as pl

from ..studies.claims.comparisons import AllOf, AnyOf, Claim, Comparison, NotOf, Statement
from ..studies.planning.time_estimates import TimeEstimator
from ..studies.presentation.kinds import TableExtras
from ..studies.schema.factors import SEED
from ..studies.text.units import plural
from .claims.check import checked_comparisons, judge_claim
from .claims.checked_comparison import CheckedComparison
from .claims.hypothesis_test import PairedTest
from .claims.verdicts import OPEN, ClaimResult, Verdict
from .statistics.decided_differences import DecidedDifference
from .statistics.estimates import TESTS, smallest_p, t_quantile

if TYPE_CHECKING:
    from ..studies.resolve.trial import Trial
    from ..studies.study import Study
    from .tables.cells import TableCells
    from .tables.differences import CellPair

MIN_CHANCE = 0.01
"""A candidate is dropped if its chance to decide a question stays below this, however many seeds are
added."""

Kind = Literal["claim", "table"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NextSeeds:
    """The trials that add the next seeds to a claim or a table.

    With them, each of its cells has `seeds` seeds. `undecided` counts the open questions: one claim, or some
    differences of a table. `expected` is the expected number of these questions that are decided at
    `seeds_at_decision` seeds. It is None while there is only one seed, since one seed has no spread.
    `seconds` is the sequential training time of these trials, and `seconds_at_decision` that of all trials up
    to `seeds_at_decision`. Both times are None if they are unknown.
    """

    kind: Kind
    name: str
    trials: tuple[Trial, ...]
    seeds: int
    seconds: float | None
    undecided: int
    expected: float | None
    seeds_at_decision: int
    seconds_at_decision: float | None

    def __repr__(self) -> str:
        return f"<NextSeeds for {self.kind} {self.name!r}: {plural(len(self.trials), 'trial')}>"

    @property
    def chance(self) -> float | None:
        """Return the expected share of open questions that `seeds_at_decision` seeds decide, if known."""
        return None if self.expected is None else self.expected / self.undecided


_Chances = tuple[float, float]
"""The probabilities that a statement will be confirmed, and that it will be refuted."""

_UNDECIDED: _Chances = (0.0, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    """An undecided comparison of a claim, or an undecided difference of a table, that may get more seeds.

    `looks` has the seeds of its last look (interim test) and of each look to come. `is_blind` means that it
    has only one seed, so that the spread over seeds is unknown. `trials` returns the trials that it still
    needs for some seeds, and `chances` the chances of its decisions with a number of seeds.
    """

    looks: Sequence[Sequence[int]]
    is_blind: bool
    trials: Callable[[Sequence[int]], Iterable[Trial]]
    chances: Callable[[int], _Chances]

    def seeds(self, ahead: int) -> Sequence[int]:
        """Return the seeds that the question has after `ahead` more looks (interim tests)."""
        return self.looks[min(ahead, len(self.looks) - 1)]


_Expected = tuple[Sequence[_Question], float | None]
"""The questions that get more seeds, and how many of them are decided then; None if unknown."""


def _candidates(
    kind: Kind,
    name: str,
    columns: Sequence[Sequence[_Question]],
    expect: Callable[[Sequence[_Question], int], _Expected],
    estimator: TimeEstimator,
) -> Iterator[NextSeeds]:
    """Yield the possible next seeds of a claim or a table with open questions.

    There is one option for each number of looks (interim tests) and each group of questions that may get more
    seeds together: one, those of a column, or all. `expect` returns what a group gains by some more looks. If
    some questions have a single seed, and thus no spread, the only option adds a look to these questions,
    because nothing can be predicted without a spread.
    """
    every = [each for column in columns for each in column]
    blind = [each for each in every if each.is_blind]
    options: Iterable[tuple[int, _Expected]] = [(1, (blind, None))]
    if not blind:
        groups = [*([each] for each in every), *(column for column in columns if len(column) > 1)]
        groups += [every] if sum(map(bool, columns)) > 1 else []
        options = (
            (ahead, expect(group, ahead))
            for group in groups
            for ahead in range(1, max(len(each.looks) for each in group))
        )

    def to_train(chosen: Sequence[_Question], ahead: int) -> tuple[tuple[Trial, ...], float | None]:
        """Return the trials of some more looks, and the seconds that they take one after the other."""
        needed = (trial for each in chosen for trial in each.trials(each.seeds(ahead)))
        trials = tuple({trial.id: trial for trial in needed}.values())
        times = [estimator.estimate(trial).seconds for trial in trials]
        known = [time for time in times if time is not None]
        return trials, math.fsum(known) if len(known) == len(times) else None

    for ahead, (chosen, expected) in options:
        soon, seconds = to_train(chosen, 1)
        if soon and (expected is None or expected >= MIN_CHANCE):
            yield NextSeeds(
                kind=kind,
                name=name,
                trials=soon,
                seeds=max(len(each.seeds(1)) for each in chosen),
                seconds=seconds,
                undecided=1 if kind == "claim" else len(chosen),
                expected=expected,
                seeds_at_decision=max(len(each.seeds(ahead)) for each in chosen),
                seconds_at_decision=to_train(chosen, ahead)[1],
            )


def _open_claim(
    claim: Claim, checked: Sequence[CheckedComparison], result: ClaimResult, estimator: TimeEstimator
) -> Iterator[NextSeeds]:
    now = {
        each.comparison: (float(one.verdict is Verdict.CONFIRMED), float(one.verdict is Verdict.REFUTED))
        for each, one in zip(checked, result.findings, strict=True)
    }
    if any(each.gaps for each in checked):
        return

    def question(asked: CheckedComparison) -> _Question:
        last, results = asked.tests[-1], asked.results
        # ranks have no spread at all
        has_value = last.effect is not None or (last.bounds is not None and not last.is_unknown)
        return _Question(
            looks=results.looks[len(asked.tests) - 1 :],
            is_blind=last.n > 0 and has_value and last.spread is None,
            trials=lambda seeds: (
                trial
                for cell in asked.cells
                for trial in map(cell.trials.get, seeds)
                if trial is not None and not results.has_ended(trial)
            ),
            chances=lambda count: _chances_of_comparison(last, count, result.level_of_look),
        )

    growing = {
        each.comparison: question(each)
        for each in checked
        if now[each.comparison] == _UNDECIDED
        and not (each.tests[0].exact or each.tests[0].at_bound)
        and len(each.tests) < len(each.results.looks)
    }

    def expect(group: Sequence[_Question], ahead: int) -> _Expected:
        predicted = {
            asked: each.chances(len(each.seeds(ahead))) for asked, each in growing.items() if each in group
        }
        return group, sum(_combined(claim.statement, {**now, **predicted}))

    yield from _candidates("claim", claim.spec.name, [list(growing.values())], expect, estimator)


def _chances_of_comparison(test: PairedTest, count: int, level: float) -> _Chances:
    """Return the chances that `count` seeds will confirm or refute a comparison.

    The results so far are used: the mean of the added seeds is centred at the observed effect, with the error
    of both means. This is the predictive distribution of a normal mean under a flat prior. To decide, the
    mean over all seeds must be further from an end of the region than the test's limit. A permutation test
    decides nothing with too few seeds.
    """
    effect, spread, degrees = test.effect, test.spread, test.degrees
    if test.method in TESTS and smallest_p(count) > 1 - level:
        return _UNDECIDED
    if effect is None or spread is None or degrees is None:
        return _UNDECIDED
    limit = t_quantile(level, degrees + count - test.n) * spread / math.sqrt(count)
    # without further seeds the prediction is the present result: a tiny error avoids a division by 0
    error = spread * math.sqrt((count - test.n) / (test.n * count)) or 1e-12
    (low, high), below = test.region, partial(_chance_below, effect, error)
    confirmed = max(0.0, below(high - limit) - below(low + limit))
    return confirmed, below(low - limit) + 1.0 - below(high + limit)


def _chance_below(mean: float, error: float, end: float) -> float:
    """Return the chance that the mean over all seeds is below `end`, from the mean so far and the error."""
    from scipy.special import ndtr  # noqa: PLC0415 -- only this needs it

    return float(ndtr((end - mean) / error))


def _combined(statement: Statement, chances: Mapping[Comparison, _Chances]) -> _Chances:
    """Return the chances of a statement, computed from its comparisons as if they were independent."""
    match statement:
        case Comparison():
            return chances[statement]
        case NotOf():
            confirmed, refuted = _combined(statement.part, chances)
            return refuted, confirmed
        case AllOf() | AnyOf():
            confirmed, refuted = zip(*(_combined(part, chances) for part in statement.parts), strict=True)
            if isinstance(statement, AllOf):
                return math.prod(confirmed), 1.0 - math.prod(1.0 - each for each in refuted)
            return 1.0 - math.prod(1.0 - each for each in confirmed), math.prod(refuted)


def _tested_tables(study: Study, outcomes: pl.DataFrame) -> Iterator[TableCells]:
    """Yield the tables for which seeds may be added: those with a smallest difference that matters."""
    for spec in study.tables:
        if spec.asks_for_seeds and (made := spec.cells(study, outcomes, TableExtras())):
            yield made


def decided_differences(study: Study, outcomes: pl.DataFrame) -> tuple[int, int]:
    """Return how many differences of tables with a margin are decided, and how many there are."""
    decided = every = 0
    for made in _tested_tables(study, outcomes):
        judged = [each for column in _judged_differences(made) for each in column.values()]
        worse = sum(best.worse for best in made.bold_cells if best.margin is not None)
        decided += worse + sum(each.is_decided for each in judged)
        every += worse + len(judged)
    return decided, every


def _judged_differences(made: TableCells) -> list[dict[CellPair, DecidedDifference]]:
    """Return the tested differences by the pair of cells, for each column with a margin."""
    return [
        {**made.differences[column.metric.name, column.level].decided, **best.rivals}
        for column, best in zip(made.columns, made.bold_cells, strict=True)
        if column.metric.name in made.spec.smallest_difference
    ]


def _open_table(made: TableCells, estimator: TimeEstimator) -> Iterator[NextSeeds]:
    waiting = _not_ended(made)

    def question(cells: CellPair, found: DecidedDifference) -> _Question:
        looks, margin = made.looks[found.looks - 1 :], made.spec.smallest_difference.get(cells[0][2], 0.0)
        return _Question(
            looks=looks,
            is_blind=found.last.error is None and len(looks[0]) == 1,
            trials=lambda seeds: (
                trial
                for row, column, _ in cells
                for seed in made.looks[-1][: len(seeds)]
                for trial in waiting.get((row, column), {}).get(seed, ())
            ),
            chances=lambda count: _chances_of_difference(found, margin, count, made.counts),
        )

    def expect(group: Sequence[_Question], ahead: int) -> _Expected:
        chances = [each.chances(len(each.seeds(ahead)))[0] for each in group]
        chosen = [(each, chance) for each, chance in zip(group, chances, strict=True) if chance >= MIN_CHANCE]
        return [each for each, _ in chosen], math.fsum(chance for _, chance in chosen)

    columns = [
        [
            question(cells, each)
            for cells, each in column.items()
            if not each.is_decided
            and each.looks < len(made.looks)
            # only complete cells can be decided by more seeds
            and not any(tally.gaps for cell in cells for tally in made.look_tallies[cell])
        ]
        for column in _judged_differences(made)
    ]
    yield from _candidates("table", made.spec.name, columns, expect, estimator)


def _not_ended(made: TableCells) -> dict[tuple[str, str], dict[int, list[Trial]]]:
    """Return the unfinished trials of a table, by row and column, then by seed."""
    ended = set(made.outcomes.filter(pl.col("status") != "incomplete")["trial"])
    # the table's trials have the displayed names of rows as levels, so the study's own are returned
    own = {trial.id: trial for trial in made.study.with_later_seeds().trials}
    found: dict[tuple[str, str], dict[int, list[Trial]]] = {}
    for trial in made.trials:
        if trial.id not in ended:
            of_place = found.setdefault(made.place(trial.levels), {})
            of_place.setdefault(int(trial.levels[SEED]), []).append(own[trial.id])
    return found


def _chances_of_difference(
    found: DecidedDifference, margin: float, seeds: int, counts: Sequence[int]
) -> _Chances:
    """Return the chances that a difference is shown with `seeds` seeds to exist, or to be below the margin.

    The mean of the added seeds is predicted as for a claim.
    """
    last = found.last
    if last.error is None or last.degrees is None:
        return _UNDECIDED
    growth = seeds / counts[found.looks - 1]
    count = last.n * growth
    error = last.error * math.sqrt(1 - 1 / growth) or 1e-12  # not 0, since it is a divisor
    degrees, then = last.degrees + count - last.n, last.error / math.sqrt(growth)
    there = t_quantile(1 - found.level, degrees) * then
    small = max(0.0, margin - t_quantile(1 - found.level_within, degrees) * then)
    below = partial(_chance_below, last.mean, error)
    undecided = [max(0.0, below(high) - below(low)) for low, high in ((small, there), (-there, -small))]
    return 1.0 - undecided[0] - undecided[1], 0.0


def next_seeds(
    study: Study, outcomes: pl.DataFrame, metrics: pl.DataFrame | None, *, seconds: float | None = None
) -> NextSeeds | None:
    """Return the trials to train next; None if every question is decided or more seeds would not help.

    `study` is the study of the file, without later seeds. `outcomes` and `metrics` are the arguments of
    `check_claims`. Candidates that train for more than `seconds` are left out. Candidates that depend on
    trials of the file without a value are left out as well, since these trials must be trained first or will
    never have a value.
    """
    grown = study.with_later_seeds()
    estimator, found = TimeEstimator(outcomes, grown.cells), list[NextSeeds]()
    for claim, checked in checked_comparisons(grown, outcomes, metrics):
        result = judge_claim(claim, checked, small=study.header.small)
        if result.verdict in OPEN:
            found += _open_claim(claim, checked, result, estimator)
    for made in _tested_tables(study, outcomes) if study.later_seeds else ():
        found += _open_table(made, estimator)

    def worth(candidate: NextSeeds) -> tuple[float, float]:
        """Return the decided questions per second, and as a tie-break minus the seconds.

        Trials of unknown duration count as one second each.
        """
        time = candidate.seconds_at_decision or float(len(candidate.trials))
        return math.inf if candidate.expected is None else candidate.expected / time, -time

    affordable = (each for each in found if seconds is None or (each.seconds or 0.0) <= seconds)
    return max(affordable, key=worth, default=None)
