"""The study's claims, and the verdict of each.

The first table has a row for each claim, with the one comparison that its verdict hangs on; all comparisons
of all claims are folded away below it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from ...studies.catalog.metrics import with_sign
from ..claims.check import check_claims, needs_metrics
from ..claims.terminal import format_missing, format_number, format_p, format_seeds, legend
from ..claims.verdicts import ClaimResult, ComparisonResult, Verdict
from .inputs import PageInputs


def values(inputs: PageInputs) -> Mapping[str, object] | None:
    """The verdicts, what the numbers mean, and every comparison on demand."""
    study = inputs.study
    if not study.claims or not len(inputs.own_outcomes):
        return None
    ids = [trial.id for trial in study.trials]
    metrics = inputs.store.metrics(ids) if needs_metrics(study) else None
    checked = check_claims(study, inputs.outcomes, metrics)
    counts = Counter(each.verdict for each in checked)
    return {
        "counts": " · ".join(f"{counts[each]} {each}" for each in Verdict),
        "legend": " ".join(legend(checked)),
        "claims": [
            {
                "spec": each.spec,
                "verdict": each.verdict,
                "numbers": _numbers(each, each.deciding, each.needed, each.verdict),
                "missing": format_missing(each.findings),
                "comparisons": [
                    (one.verdict, one.text, _numbers(each, one, one.needed, one.verdict))
                    for one in each.findings
                ],
            }
            for each in checked
        ],
    }


def _numbers(
    checked: ClaimResult, finding: ComparisonResult, needed: int | None, verdict: Verdict
) -> tuple[str, str, str, str]:
    """Effect, interval, p and seeds of a finding; no p where nothing is decided."""
    decimals = finding.decimals
    ends = ", ".join(format_number(end, decimals) for end in finding.interval or ())
    p = finding.p if verdict is not Verdict.UNDECIDED else None
    return (
        "" if finding.effect is None else with_sign(format_number(finding.effect, decimals)),
        f"[{ends}]" if ends else "",
        "" if p is None else format_p(p).removeprefix("p ").removeprefix("= "),
        format_seeds(finding, checked.seeds, needed),
    )
