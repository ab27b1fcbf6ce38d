"""The claims that the study holds against its results, and what came of each.

The first table has a row for each claim, with the one comparison that its verdict hangs on; all comparisons
of all claims are folded away below it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ...studies.catalog.metrics import with_sign
from ...studies.schema.level_names import one_line
from ..claims.check import check_claims, needs_metrics
from ..claims.terminal import format_missing, format_number, format_p, format_seeds, legend
from ..claims.verdicts import ClaimResult, ComparisonResult, Verdict
from .html import (
    Html,
    HtmlColumn,
    PageSection,
    code,
    collapsible,
    escape_html,
    html_table,
    join_html,
    paragraph,
)
from .inputs import PageInputs

_NUMBERS = (
    HtmlColumn("effect", "number"),
    HtmlColumn("interval", "number"),
    HtmlColumn("p", "number"),
    HtmlColumn("seeds"),
)


def section(inputs: PageInputs) -> PageSection | None:
    """The verdicts, what the numbers mean, and every comparison on demand."""
    study = inputs.study
    if not study.claims or not len(inputs.own_outcomes):
        return None
    ids = [trial.id for trial in study.trials()]
    metrics = inputs.store.metrics(ids) if needs_metrics(study) else None
    checked = check_claims(study, inputs.outcomes, metrics)
    counts = Counter(each.verdict for each in checked)
    columns = [HtmlColumn("verdict"), HtmlColumn("claim", "words"), *_NUMBERS]
    pieces = [
        paragraph(escape_html(" · ".join(f"{counts[each]} {each}" for each in Verdict) + ".")),
        html_table("claims and their verdicts", columns, map(_row, checked)),
        paragraph(escape_html(" ".join(legend(checked))), "faint"),
        collapsible(
            escape_html("Every comparison"),
            join_html(piece for each in checked for piece in _comparisons(each)),
        ),
    ]
    return PageSection(name="claims", title="Claims", body=join_html(pieces))


def _row(checked: ClaimResult) -> tuple[Html, ...]:
    """The verdict, the claim with its source and what is missing of it, and the numbers that it hangs on."""
    spec = checked.spec
    below = [one_line(text) for text in (spec.source, *format_missing(checked.findings)) if text]
    small = (Html(f'<small class="faint">{escape_html(text)}</small>') for text in below)
    claim = join_html([escape_html(spec.name), *small], "<br>")
    return (
        _verdict(checked.verdict),
        claim,
        *_numbers(checked, checked.deciding, checked.needed, checked.verdict),
    )


def _comparisons(checked: ClaimResult) -> Iterator[Html]:
    """The claim as the file has it, and a row for each comparison in it."""
    yield paragraph(
        join_html([escape_html(f"{checked.spec.name}:"), code(one_line(checked.spec.holds))], " ")
    )
    rows = [
        (_verdict(each.verdict), code(each.text), *_numbers(checked, each, each.needed, each.verdict))
        for each in checked.findings
    ]
    columns = [HtmlColumn("verdict"), HtmlColumn("comparison", "words"), *_NUMBERS]
    yield html_table(f"comparisons of: {checked.spec.name}", columns, rows)


def _verdict(verdict: Verdict) -> Html:
    """The word, bold where something is decided."""
    return (
        escape_html(verdict)
        if verdict is Verdict.UNDECIDED
        else Html(f"<strong>{escape_html(verdict)}</strong>")
    )


def _numbers(
    checked: ClaimResult, finding: ComparisonResult, needed: int | None, verdict: Verdict
) -> Iterator[Html]:
    """Effect, interval, p and seeds of a finding; no p where nothing is decided."""
    decimals = finding.decimals
    ends = ", ".join(format_number(end, decimals) for end in finding.interval or ())
    yield escape_html("" if finding.effect is None else with_sign(format_number(finding.effect, decimals)))
    yield escape_html(f"[{ends}]" if ends else "")
    p = finding.p if verdict is not Verdict.UNDECIDED else None
    yield escape_html("" if p is None else format_p(p).removeprefix("p ").removeprefix("= "))
    yield escape_html(format_seeds(finding, checked.seeds, needed))
