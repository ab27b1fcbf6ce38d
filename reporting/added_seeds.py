"""The choice of the seeds to add next: those that decide the most open comparisons per training hour."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import polars as pl

from ..studies.claims.comparisons import AllOf, AnyOf, Claim, Comparison, NotOf, Statement
from ..studies.planning.time_estimates import TimeEstimator
from ..studies.text.units import plural
from .claims.check import checked_comparisons, judge_claim
from .claims.checked_comparison import CheckedComparison
from .claims.hypothesis_test import PairedTest
from .claims.verdicts import OPEN, ClaimResult, Verdict
from .statistics.estimates import TESTS, smallest_p, t_quantile

if TYPE_CHECKING:
    from ..studies.resolve.trial import Trial
    from ..studies.study import Study

MIN_CHANCE = 0.01
"""A candidate is dropped if its chance to decide its claim stays below this, however many seeds are added."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NextSeeds:
    """The trials that add the next seeds to the claim with this name.

    With them, each of its cells has `seeds` seeds. `chance` is the chance that the claim is decided at
    `seeds_at_decision` seeds. It is None while there is only one seed, since one seed has no spread.
    `seconds` is the sequential training time of these trials, and `seconds_at_decision` that of all trials up
    to `seeds_at_decision`. Both times are None if they are unknown.
    """

    name: str
    trials: tuple[Trial, ...]
    seeds: int
    seconds: float | None
    chance: float | None
    seeds_at_decision: int
    seconds_at_decision: float | None

    def __repr__(self) -> str:
        return f"<NextSeeds for claim {self.name!r}: {plural(len(self.trials), 'trial')}>"


_Chances = tuple[float, float]
"""The probabilities that a statement will be confirmed, and that it will be refuted."""

_UNDECIDED: _Chances = (0.0, 0.0)


@dataclass(frozen=True, slots=True)
class _Growing:
    """An undecided comparison of a claim that may get more seeds."""

    checked: CheckedComparison

    @property
    def is_blind(self) -> bool:
        """Return whether it has only one seed, so that the spread over seeds is unknown."""
        last = self.checked.tests[-1]
        # ranks have no spread at all
        has_value = last.effect is not None or (last.bounds is not None and not last.is_unknown)
        return last.n > 0 and has_value and last.spread is None

    @property
    def looks_left(self) -> int:
        """Return how many looks (interim tests) are to come."""
        return len(self.checked.results.looks) - len(self.checked.tests)

    def seeds(self, ahead: int) -> Sequence[int]:
        """Return the seeds that it has after `ahead` more looks."""
        looks = self.checked.results.looks
        return looks[min(len(self.checked.tests) - 1 + ahead, len(looks) - 1)]

    def trials(self, ahead: int) -> Iterator[Trial]:
        """Yield the trials that it still needs for `ahead` more looks."""
        for cell in self.checked.cells:
            for trial in map(cell.trials.get, self.seeds(ahead)):
                if trial is not None and not self.checked.results.has_ended(trial):
                    yield trial


def _candidates(
    claim: Claim, checked: Sequence[CheckedComparison], result: ClaimResult, estimator: TimeEstimator
) -> Iterator[NextSeeds]:
    """Yield the possible next seeds of an undecided claim.

    There is one option for each number of looks (interim tests), and for each comparison or all of them. If
    some comparisons have a single seed, and thus no spread, the only option adds a look to these, because
    nothing can be predicted without a spread.
    """
    now = {
        each.comparison: (float(one.verdict is Verdict.CONFIRMED), float(one.verdict is Verdict.REFUTED))
        for each, one in zip(checked, result.findings, strict=True)
    }
    if any(each.gaps for each in checked):
        return
    every = [
        _Growing(each)
        for each in checked
        if now[each.comparison] == _UNDECIDED and not (each.tests[0].exact or each.tests[0].at_bound)
    ]
    every = [each for each in every if each.looks_left]
    blind = [each for each in every if each.is_blind]
    groups = [blind] if blind else [*([each] for each in every), *([every] if len(every) > 1 else [])]

    def chance_of(group: Sequence[_Growing], ahead: int) -> float:
        predicted = {
            each.checked.comparison: _chances_of_comparison(
                each.checked.tests[-1], len(each.seeds(ahead)), result.level_of_look
            )
            for each in group
        }
        return sum(_combined(claim.statement, {**now, **predicted}))

    def to_train(group: Sequence[_Growing], ahead: int) -> tuple[tuple[Trial, ...], float | None]:
        """Return the trials of some more looks, and the seconds that they take one after the other."""
        trials = tuple({trial.id: trial for each in group for trial in each.trials(ahead)}.values())
        times = [estimator.estimate(trial).seconds for trial in trials]
        known = [time for time in times if time is not None]
        return trials, math.fsum(known) if len(known) == len(times) else None

    for group in groups:
        for ahead in range(1, 2 if blind else 1 + max(each.looks_left for each in group)):
            chance = None if blind else chance_of(group, ahead)
            soon, seconds = to_train(group, 1)
            if soon and (chance is None or chance >= MIN_CHANCE):
                yield NextSeeds(
                    name=claim.spec.name,
                    trials=soon,
                    seeds=max(len(each.seeds(1)) for each in group),
                    seconds=seconds,
                    chance=chance,
                    seeds_at_decision=max(len(each.seeds(ahead)) for each in group),
                    seconds_at_decision=to_train(group, ahead)[1],
                )


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


def next_seeds(
    study: Study, outcomes: pl.DataFrame, metrics: pl.DataFrame | None, *, seconds: float | None = None
) -> NextSeeds | None:
    """Return the trials to train next; None if every claim is decided or more seeds would not help.

    `study` is the study of the file, without later seeds. `outcomes` and `metrics` are the arguments of
    `check_claims`. Candidates that train for more than `seconds` are left out. Candidates that depend on
    trials of the file without a value are left out as well, since these trials must be trained first or will
    never have a value.
    """
    grown = study.with_later_seeds()
    estimator, found = TimeEstimator(outcomes, grown.cells), list[NextSeeds]()
    for claim, checked in checked_comparisons(grown, outcomes, metrics):
        result = judge_claim(claim, checked, study)
        if result.verdict in OPEN:
            found += _candidates(claim, checked, result, estimator)

    def worth(candidate: NextSeeds) -> tuple[float, float]:
        """Return the decided claims per second, and as a tie-break minus the seconds.

        Trials of unknown duration count as one second each.
        """
        time = candidate.seconds_at_decision or float(len(candidate.trials))
        return math.inf if candidate.chance is None else candidate.chance / time, -time

    affordable = (each for each in found if seconds is None or (each.seconds or 0.0) <= seconds)
    return max(affordable, key=worth, default=None)
