"""Seeds that would decide claims: of one undecided comparison of a claim, or of all of them.

The chance to decide the claim at each of its later looks is predicted from the effect and the spread found
so far.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ...studies.claims.comparisons import AllOf, AnyOf, Claim, Comparison, NotOf, Statement, iter_comparisons
from ..claims.cell_values import CellResults
from ..claims.check import cell_results, check_claims, comparison_tests
from ..claims.hypothesis_test import PairedTest
from ..claims.verdicts import OPEN, ClaimResult, Verdict
from ..statistics.estimates import t_quantile
from .candidate import MIN_CHANCE, NextSeeds, total_seconds

if TYPE_CHECKING:
    import polars as pl

    from ...studies.planning.time_estimates import TimeEstimator
    from ...studies.resolve.trial import Trial
    from ...studies.study import Study


@dataclass(frozen=True, slots=True)
class _Chances:
    """The chances that something is confirmed, and that it is refuted."""

    confirmed: float
    refuted: float


_UNDECIDED = _Chances(0.0, 0.0)


def claim_candidates(
    study: Study, outcomes: pl.DataFrame, metrics: pl.DataFrame | None, estimator: TimeEstimator
) -> Iterator[NextSeeds]:
    """Yield candidates of seeds for the undecided claims of a study.

    `estimator` predicts how long a trial trains. The other arguments are the same as for `next_seeds`.
    """
    if not study.claims:
        return
    judged = study.with_later_seeds()
    results = cell_results(judged, outcomes, metrics)
    for claim, result in zip(study.claims, check_claims(judged, outcomes, metrics), strict=True):
        if result.verdict in OPEN:
            yield from _OpenClaim.of(claim, result, results).candidates(estimator)


@dataclass(frozen=True, slots=True, kw_only=True)
class _OpenClaim:
    """An undecided claim: the tests of its comparisons look by look, and their verdicts now.

    `level` is the significance level of one look.
    """

    claim: Claim
    tests: Mapping[Comparison, Sequence[PairedTest]]
    now: Mapping[Comparison, _Chances]
    results: CellResults
    level: float

    @classmethod
    def of(cls, claim: Claim, result: ClaimResult, results: CellResults) -> _OpenClaim:
        family = list(dict.fromkeys(iter_comparisons(claim.statement)))
        return cls(
            claim=claim,
            tests={each: comparison_tests(each, claim, results, len(family)) for each in family},
            now={
                each: _known(finding.verdict) for each, finding in zip(family, result.findings, strict=True)
            },
            results=results,
            level=result.level_of_look,
        )

    def candidates(self, estimator: TimeEstimator) -> Iterator[NextSeeds]:
        """Yield possible additions: seeds of one comparison, or of all; first of those with a single seed."""
        if not all(each[0].complete for each in self.tests.values()):
            return
        growing = [
            each
            for each, tests in self.tests.items()
            if self.now[each] == _UNDECIDED and not tests[0].exact and len(tests) < len(self.results.looks)
        ]
        blind = [each for each in growing if self._is_blind(each)]
        if blind:
            found = self._candidate(blind, 1, estimator)
            if found is not None:
                yield replace(found, expected=None)
            return
        for chosen in [[each] for each in growing] + ([growing] if len(growing) > 1 else []):
            for ahead in range(1, len(self.results.looks)):
                found = self._candidate(chosen, ahead, estimator)
                if found is not None and found.chance is not None and found.chance >= MIN_CHANCE:
                    yield found

    def _is_blind(self, comparison: Comparison) -> bool:
        """Return whether an effect is known but not its spread: one seed, without comparable cells."""
        last = self.tests[comparison][-1]
        return last.effect is not None and last.spread is None

    def _candidate(
        self, chosen: Sequence[Comparison], ahead: int, estimator: TimeEstimator
    ) -> NextSeeds | None:
        """Return the candidate that reaches the look `ahead`; None if the next look needs no more trials."""
        soon, then = self._seeds(chosen, 1), self._seeds(chosen, ahead)
        trials = self._to_train(soon)
        if not trials:
            return None
        predicted = {
            each: _predicted(self.tests[each][-1], len(its), self.level) for each, its in then.items()
        }
        chances = _combined(self.claim.statement, {**self.now, **predicted})
        return NextSeeds(
            kind="claim",
            name=self.claim.spec.name,
            trials=trials,
            seeds=max(map(len, soon.values())),
            seconds=total_seconds(trials, estimator),
            undecided=1,
            expected=chances.confirmed + chances.refuted,
            seeds_then=max(map(len, then.values())),
            seconds_then=total_seconds(self._to_train(then), estimator),
        )

    def _seeds(self, chosen: Sequence[Comparison], ahead: int) -> dict[Comparison, tuple[int, ...]]:
        looks = self.results.looks
        return {each: looks[min(len(self.tests[each]) + ahead, len(looks)) - 1] for each in chosen}

    def _to_train(self, seeds: Mapping[Comparison, tuple[int, ...]]) -> tuple[Trial, ...]:
        found = {
            number: trial
            for each, its in seeds.items()
            for number, trial in self.results.trials(each, its).items()
            if not self.results.has_ended(trial)
        }
        return tuple(found.values())


def _known(verdict: Verdict) -> _Chances:
    return _Chances(float(verdict is Verdict.CONFIRMED), float(verdict is Verdict.REFUTED))


def _predicted(test: PairedTest, count: int, level: float) -> _Chances:
    """Return the chances of one comparison at `count` seeds, predicted from its last look.

    The mean of the added seeds is centred at the found effect, with the error of both means. This is the
    predictive distribution of a normal mean under a flat prior. To decide, the mean over all seeds must be
    further from an end of the region than the test's limit.
    """
    from scipy.special import ndtr  # noqa: PLC0415 -- only this needs it

    effect, spread, degrees = test.effect, test.spread, test.degrees
    if effect is None or spread is None or degrees is None:
        return _UNDECIDED
    limit = t_quantile(level, degrees + count - test.n + 1) * spread / math.sqrt(count)
    error = spread * math.sqrt((count - test.n) / (test.n * count)) or 1e-12
    low, high = test.region

    def below(end: float) -> float:
        return float(ndtr((end - effect) / error))

    return _Chances(
        confirmed=max(0.0, below(high - limit) - below(low + limit)),
        refuted=below(low - limit) + 1.0 - below(high + limit),
    )


def _combined(statement: Statement, chances: Mapping[Comparison, _Chances]) -> _Chances:
    """Return the chances of a statement, whose parts are taken to be independent."""
    match statement:
        case Comparison():
            return chances[statement]
        case NotOf():
            part = _combined(statement.part, chances)
            return _Chances(part.refuted, part.confirmed)
        case AllOf():
            parts = [_combined(part, chances) for part in statement.parts]
            return _Chances(
                confirmed=math.prod(part.confirmed for part in parts),
                refuted=1.0 - math.prod(1.0 - part.refuted for part in parts),
            )
        case AnyOf():
            parts = [_combined(part, chances) for part in statement.parts]
            return _Chances(
                confirmed=1.0 - math.prod(1.0 - part.confirmed for part in parts),
                refuted=math.prod(part.refuted for part in parts),
            )
