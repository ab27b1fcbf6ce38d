"""Where the numbers come from: versions, commits, devices, dates.

The names of the machines are not told: a page is for others.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from ...studies.schema.level_names import one_line
from ...studies.text.units import format_duration, plural
from .html import Html, HtmlColumn, PageSection, code, escape_html, html_table, join_html, paragraph
from .inputs import PageInputs

_KINDS = ("version", "commit", "device")


def section(inputs: PageInputs) -> PageSection | None:
    """A row for each program and device that trained, then what was trained for other studies."""
    if not len(inputs.own_outcomes):
        return None
    columns = [
        HtmlColumn("activemem"),
        HtmlColumn("commit"),
        HtmlColumn("device"),
        HtmlColumn("trials", "number"),
        HtmlColumn("training", "number"),
        HtmlColumn("from"),
        HtmlColumn("to"),
    ]
    body = [html_table("programs and devices that trained", columns, _rows(inputs)), *_reused_trials(inputs)]
    return PageSection(name="provenance", title="Provenance", body=join_html(body))


def _rows(inputs: PageInputs) -> Iterator[tuple[Html, ...]]:
    """By the order in which they were in use."""
    groups = inputs.own_outcomes.group_by(_KINDS).agg(
        pl.len().alias("trials"),
        pl.col("seconds").sort().sum(),
        pl.col("started").min().alias("first"),
        pl.col("finished").max().alias("last"),
    )
    for row in groups.sort("first", "last", *_KINDS).iter_rows(named=True):
        yield (
            escape_html(one_line(row["version"])),
            code(row["commit"][:7]) if row["commit"] else escape_html("–"),
            escape_html(one_line(row["device"])),
            escape_html(f"{row['trials']:,}"),
            escape_html(format_duration(row["seconds"])),
            *(escape_html(f"{row[end]:%Y-%m-%d %H:%M} UTC") for end in ("first", "last")),
        )


def _reused_trials(inputs: PageInputs) -> Iterator[Html]:
    """Trials that another study has trained, which this one asks for, too."""
    others = inputs.own_outcomes.filter(pl.col("study") != inputs.study.name)
    counts = others.group_by("study").len().sort("study").iter_rows()
    for study, count in counts:
        yield paragraph(escape_html(f"{plural(count, 'trial')} trained for the study {study}."))
