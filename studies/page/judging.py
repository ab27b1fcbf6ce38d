"""The claims that the study holds against its results, and what came of each.

The first table has a row for each claim, with the one comparison that its verdict hangs on; all comparisons
of all claims are folded away below it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ..claims.checking import check, needs_metrics
from ..claims.verdicts import Checked, Finding, Verdict
from ..labels import one_line
from ..measures import signed
from ..render.claims import gaps_text, legend, number_text, p_text, seeds_text
from .markup import Column, Html, Section, code, folded, grid, joined, paragraph, plain
from .material import Material

_NUMBERS = (
    Column("effect", "number"),
    Column("interval", "number"),
    Column("p", "number"),
    Column("seeds"),
)


def section(material: Material) -> Section | None:
    """The verdicts, what the numbers mean, and every comparison on demand."""
    study = material.study
    if not study.claims or not len(material.own):
        return None
    ids = [trial.id for trial in study.trials()]
    metrics = material.store.metrics(ids) if needs_metrics(study) else None
    checked = check(study, material.outcomes, metrics)
    counts = Counter(each.verdict for each in checked)
    columns = [Column("verdict"), Column("claim", "words"), *_NUMBERS]
    pieces = [
        paragraph(plain(" · ".join(f"{counts[each]} {each}" for each in Verdict) + ".")),
        grid("claims and their verdicts", columns, map(_row, checked)),
        paragraph(plain(" ".join(legend(checked))), "faint"),
        folded(plain("Every comparison"), joined(piece for each in checked for piece in _comparisons(each))),
    ]
    return Section(name="claims", title="Claims", body=joined(pieces))


def _row(checked: Checked) -> tuple[Html, ...]:
    """The verdict, the claim with its source and what is missing of it, and the numbers that it hangs on."""
    spec = checked.spec
    below = [one_line(text) for text in (spec.source, *gaps_text(checked.findings)) if text]
    small = (Html(f'<small class="faint">{plain(text)}</small>') for text in below)
    claim = joined([plain(spec.name), *small], "<br>")
    return (
        _verdict(checked.verdict),
        claim,
        *_numbers(checked, checked.deciding, checked.needed, checked.verdict),
    )


def _comparisons(checked: Checked) -> Iterator[Html]:
    """The claim as the file has it, and a row for each comparison in it."""
    yield paragraph(joined([plain(f"{checked.spec.name}:"), code(one_line(checked.spec.holds))], " "))
    rows = [
        (_verdict(each.verdict), code(each.text), *_numbers(checked, each, each.needed, each.verdict))
        for each in checked.findings
    ]
    columns = [Column("verdict"), Column("comparison", "words"), *_NUMBERS]
    yield grid(f"comparisons of: {checked.spec.name}", columns, rows)


def _verdict(verdict: Verdict) -> Html:
    """The word, bold where something is decided."""
    return plain(verdict) if verdict is Verdict.UNDECIDED else Html(f"<strong>{plain(verdict)}</strong>")


def _numbers(checked: Checked, finding: Finding, needed: int | None, verdict: Verdict) -> Iterator[Html]:
    """Effect, interval, p and seeds of a finding; no p where nothing is decided."""
    decimals = finding.decimals
    ends = ", ".join(number_text(end, decimals) for end in finding.interval or ())
    yield plain("" if finding.effect is None else signed(number_text(finding.effect, decimals)))
    yield plain(f"[{ends}]" if ends else "")
    p = finding.p if verdict is not Verdict.UNDECIDED else None
    yield plain("" if p is None else p_text(p).removeprefix("p ").removeprefix("= "))
    yield plain(seeds_text(finding, checked.seeds, needed))
