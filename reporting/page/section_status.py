"""How far the study is, and what a search has found so far.

A page may be built at any time; this is what tells whether it is the last one.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import fsum

from ...studies.catalog.metrics import METRICS
from ...studies.planning.best_points import best_points
from ...studies.schema.level_names import level_text
from ...studies.text.units import format_duration
from .html import Html, HtmlColumn, PageSection, code, escape_html, html_table, join_html, paragraph
from .inputs import PageInputs


def section(inputs: PageInputs) -> PageSection:
    """The counts, the time that training took, the best points of a search."""
    pieces = [paragraph(escape_html(f"{inputs.status.summary()}."))]
    if len(inputs.own_outcomes):
        seconds = fsum(inputs.own_outcomes["seconds"])
        pieces.append(
            paragraph(escape_html(f"Training took {format_duration(seconds)}, one trial after the other."))
        )
    return PageSection(
        name="standing", title="How far it is", body=join_html([*pieces, *_best_points(inputs)])
    )


def _best_points(inputs: PageInputs) -> Iterator[Html]:
    """The best points, the best first."""
    study, found = inputs.study, best_points(inputs.study, inputs.outcomes)
    if study.search is None or not found:
        return
    metric = METRICS[study.search.metric]
    columns = [HtmlColumn(metric.name, "number"), *(HtmlColumn(name) for name in study.dimensions)]
    rows = [
        (
            escape_html(metric.format(each.mean)),
            *(code(level_text(each.values[name])) for name in study.dimensions),
        )
        for each in found
    ]
    yield html_table("best points of the search", columns, rows)
