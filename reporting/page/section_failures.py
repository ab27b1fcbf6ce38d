"""The trials that failed, and why.

Nothing is left out of it: a table marks how many of a cell's seeds are missing, here is which and for what.
"""

from __future__ import annotations

import polars as pl

from ...studies.schema.level_names import level_name, one_line
from ...studies.schema.settings import Level
from ..frames import study_levels
from .html import (
    Html,
    HtmlColumn,
    PageSection,
    bullet_list,
    code,
    code_block,
    collapsible,
    escape_html,
    html_table,
    join_html,
    paragraph,
)
from .inputs import PageInputs


def section(inputs: PageInputs) -> PageSection | None:
    """How often each reason came, then every trial that failed with its levels; whole messages on demand."""
    failed = inputs.own_outcomes.filter(pl.col("status") == "failed").select("trial", "epochs", "reason")
    if not len(failed):
        return None
    cells = study_levels(inputs.study, inputs.outcomes)
    found = cells.join(failed, on="trial", maintain_order="left")
    columns = [HtmlColumn("trial"), *map(HtmlColumn, cells.columns[1:]), HtmlColumn("epochs", "number")]
    rows = [
        (code(trial), *map(_level, levels), escape_html(f"{epochs}"), _reason(reason))
        for trial, *levels, epochs, reason in found.iter_rows()
    ]
    pieces = [
        paragraph(escape_html("A failure is an outcome: these trials are tried again only on request.")),
        bullet_list(escape_html(f"{count} × {reason}") for reason, count in inputs.status.failure_reasons),
        html_table("failed trials", [*columns, HtmlColumn("reason", "words")], rows),
    ]
    return PageSection(name="failures", title="Failures", body=join_html(pieces))


def _level(level: Level | None) -> Html:
    """A level as tables call it; nothing where the cell has no such factor."""
    return escape_html("") if level is None else code(level_name(level))


def _reason(reason: str | None) -> Html:
    """The first line of a reason, what follows it folded away."""
    first, _, rest = (reason or "no reason stored").strip().partition("\n")
    return (
        collapsible(escape_html(one_line(first)), code_block(rest))
        if rest.strip()
        else escape_html(one_line(first))
    )
