"""Claims held against the results: every comparison tested, and the verdict that they allow together.

The comparisons of a claim are one family. Hochberg's procedure picks the level at which they are all held:
the claim's own where each of them is decided at it, else a stricter one. So an `all` is confirmed when each
part would be by itself, which needs no correction (Berger 1982); one that refutes it pays for the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...studies.catalog.metrics import ANALYTIC_COSTS, find_metric
from ...studies.claims.comparisons import Comparison, Quantity, iter_comparisons, iter_quantities
from ...studies.claims.spec import Claim
from ..statistics.corrections import hochberg_adjusted, hochberg_threshold
from .cell_values import CellResults
from .hypothesis_test import PairedTest
from .labels import comparison_labels, full_text
from .verdicts import (
    ClaimResult,
    ComparisonResult,
    Verdict,
    combine_verdicts,
    deciding_comparison,
    seeds_needed,
)

if TYPE_CHECKING:
    import polars as pl

    from ...studies.study import Study


def check_claims(
    study: Study, outcomes: pl.DataFrame, metrics: pl.DataFrame | None = None
) -> tuple[ClaimResult, ...]:
    """What came of each claim of a study, over its trials in the store's latest attempts.

    `metrics` are the store's of these trials; they are needed where `needs_metrics` says so, and are not
    looked at otherwise. The result is in the order of the study file, one for each claim, and empty without
    any.
    """
    asked = {each for claim in study.claims for each in _claim_quantities(claim)}
    results = CellResults(study, asked, outcomes, metrics)
    return tuple(_check_claim(claim, results) for claim in study.claims)


def needs_metrics(study: Study) -> bool:
    """Whether a claim speaks of a metric with an index, as `bleu[10-20]`."""
    return any("[" in each.metric for claim in study.claims for each in _claim_quantities(claim))


def _check_claim(claim: Claim, results: CellResults) -> ClaimResult:
    family = list(dict.fromkeys(iter_comparisons(claim.statement)))
    tried = {each: _paired_test(each, claim, results) for each in family}
    tested = [each for each in family if not tried[each].exact]
    p_values = [tried[each].p for each in tested]
    threshold = hochberg_threshold(p_values, 1 - claim.spec.level)
    verdicts = {each: _verdict(tried[each], threshold) for each in family}
    adjusted = dict(zip(tested, hochberg_adjusted(p_values), strict=True))
    whole = combine_verdicts(claim.statement, verdicts)
    called = comparison_labels(claim)
    findings = {
        each: ComparisonResult(
            text=full_text(each, claim),
            label=called[each],
            verdict=verdicts[each],
            effect=tried[each].effect,
            interval=tried[each].interval(1 - threshold),
            p=adjusted.get(each) if tried[each].complete and tried[each].n > 1 else None,
            n=tried[each].n,
            needed=tried[each].needed(1 - threshold) if verdicts[each] is Verdict.UNDECIDED else None,
            decimals=_decimals(each),
            gaps=results.gaps(each),
        )
        for each in family
    }
    needed = seeds_needed(claim.statement, verdicts, lambda each: findings[each].needed)
    return ClaimResult(
        spec=claim.spec,
        verdict=whole,
        findings=tuple(findings.values()),
        deciding=findings[deciding_comparison(claim.statement, verdicts, lambda each: tried[each].p)],
        level=1 - threshold,
        needed=needed if whole is Verdict.UNDECIDED else None,
        seeds=len(results.seeds),
    )


def _paired_test(comparison: Comparison, claim: Claim, results: CellResults) -> PairedTest:
    """A comparison with its differences; what is counted and not measured is exact."""
    names = {each.metric for each in _quantities(comparison)}
    return PairedTest(
        differences=results.differences(comparison),
        region=comparison.accepted_range(results.step(comparison)),
        rounding_sd=results.rounding_sd(comparison),
        test=claim.spec.test,
        complete=not results.gaps(comparison),
        exact=bool(names) and names <= set(ANALYTIC_COSTS),
    )


def _verdict(tried: PairedTest, threshold: float) -> Verdict:
    """What one comparison says at a level."""
    if not tried.complete or tried.p > threshold:
        return Verdict.UNDECIDED
    return Verdict.CONFIRMED if tried.inside else Verdict.REFUTED


def _decimals(comparison: Comparison) -> int:
    """The digits that tables print of what is compared."""
    return max((find_metric(each.metric).decimals for each in _quantities(comparison)), default=1)


def _claim_quantities(claim: Claim) -> Iterator[Quantity]:
    for comparison in iter_comparisons(claim.statement):
        yield from _quantities(comparison)


def _quantities(comparison: Comparison) -> Iterator[Quantity]:
    for side in (comparison.left, comparison.right):
        yield from iter_quantities(side)
