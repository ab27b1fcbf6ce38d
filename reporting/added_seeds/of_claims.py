"""Seeds that would decide claims: of one undecided comparison of a claim, or of all of them.

The chance to decide the claim at each of its later looks is predicted from the effect and the spread found
so far.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

from ...studies.claims.comparisons import AllOf, AnyOf, Claim, Comparison, NotOf, Statement, iter_comparisons
from ..claims.cell_values import CellResults
from ..claims.check import cell_results, check_claims, comparison_tests
from ..claims.hypothesis_test import PairedTest
from ..claims.verdicts import OPEN, ClaimResult, Verdict
from ..statistics.estimates import t_quantile
from .candidate import NextSeeds, OpenResult

if TYPE_CHECKING:
    import polars as pl

    from ...studies.planning.time_estimates import TimeEstimator
    from ...studies.resolve.trial import Trial
    from ...studies.study import Study


@dataclass(frozen=True, slots=True)
class _Chances:
    """The probabilities that something is confirmed, and that it is refuted."""

    confirmed: float
    refuted: float


_UNDECIDED = _Chances(0.0, 0.0)


def claim_candidates(
    study: Study, outcomes: pl.DataFrame, metrics: pl.DataFrame | None, estimator: TimeEstimator
) -> Iterator[NextSeeds]:
    """Yield candidates of seeds for the undecided claims of a study.

    `estimator` predicts the training time of a trial. The other arguments are the same as for `next_seeds`.
    """
    if not study.claims:
        return
    judged = study.with_later_seeds()
    results = cell_results(judged, outcomes, metrics)
    for claim, result in zip(study.claims, check_claims(judged, outcomes, metrics), strict=True):
        if result.verdict in OPEN:
            yield from _OpenClaim.of(claim, result, results).candidates(estimator)


@dataclass(frozen=True, kw_only=True)
class _OpenClaim(OpenResult[Comparison]):
    """An undecided claim: the tests of its comparisons look by look, and their current verdicts.

    `level` is the significance level of one look.
    """

    kind: ClassVar = "claim"
    claim: Claim
    tests: Mapping[Comparison, Sequence[PairedTest]]
    now: Mapping[Comparison, _Chances]
    results: CellResults
    level: float

    @classmethod
    def of(cls, claim: Claim, result: ClaimResult, results: CellResults) -> Self:
        family = list(dict.fromkeys(iter_comparisons(claim.statement)))
        findings = zip(family, result.findings, strict=True)
        return cls(
            claim=claim,
            tests={each: comparison_tests(each, claim, results, len(family)) for each in family},
            now={each: _known(finding.verdict) for each, finding in findings},
            results=results,
            level=result.level_of_look,
        )

    @property
    def name(self) -> str:
        return self.claim.spec.name

    @property
    def looks(self) -> Sequence[Sequence[int]]:
        return self.results.looks

    def groups(self) -> list[list[Comparison]]:
        if not all(each[0].complete for each in self.tests.values()):
            return []
        growing = [
            each
            for each, tests in self.tests.items()
            if self.now[each] == _UNDECIDED and not tests[0].exact and len(tests) < len(self.looks)
        ]
        return [[each] for each in growing] + ([growing] if len(growing) > 1 else [])

    def held(self, question: Comparison) -> int:
        return len(self.tests[question])

    def is_blind(self, question: Comparison) -> bool:
        last = self.tests[question][-1]
        return last.effect is not None and last.spread is None

    def trials(self, question: Comparison, seeds: Collection[int]) -> Iterator[Trial]:
        found = self.results.trials(question, seeds).values()
        return (trial for trial in found if not self.results.has_ended(trial))

    def expect(self, group: Sequence[Comparison], ahead: int) -> tuple[Sequence[Comparison], float]:
        predicted = {
            each: _predicted(self.tests[each][-1], len(self.seeds(each, ahead)), self.level) for each in group
        }
        chances = _combined(self.claim.statement, {**self.now, **predicted})
        return group, chances.confirmed + chances.refuted

    def count(self, group: Sequence[Comparison]) -> int:
        return 1  # the claim


def _known(verdict: Verdict) -> _Chances:
    return _Chances(float(verdict is Verdict.CONFIRMED), float(verdict is Verdict.REFUTED))


def _predicted(test: PairedTest, count: int, level: float) -> _Chances:
    """Return the chances of one comparison at `count` seeds, predicted from its last look.

    The mean of the added seeds is centred at the observed effect, with the error of both means. This is the
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
    """Return the chances of a statement, assuming that its parts are independent."""
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
