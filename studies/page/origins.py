"""Where the numbers come from: versions, commits, devices, dates.

The names of the machines are not told: a page is for others.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from ..labels import one_line
from ..quantities import duration, plural
from .markup import Column, Html, Section, code, grid, joined, paragraph, plain
from .material import Material

_KINDS = ("version", "commit", "device")


def section(material: Material) -> Section | None:
    """A row for each program and device that trained, then what was trained for other studies."""
    if not len(material.own):
        return None
    columns = [
        Column("activemem"),
        Column("commit"),
        Column("device"),
        Column("trials", "number"),
        Column("training", "number"),
        Column("from"),
        Column("to"),
    ]
    body = [grid("programs and devices that trained", columns, _rows(material)), *_borrowed(material)]
    return Section(name="provenance", title="Provenance", body=joined(body))


def _rows(material: Material) -> Iterator[tuple[Html, ...]]:
    """By the order in which they were in use."""
    groups = material.own.group_by(_KINDS).agg(
        pl.len().alias("trials"),
        pl.col("seconds").sort().sum(),
        pl.col("started").min().alias("first"),
        pl.col("finished").max().alias("last"),
    )
    for row in groups.sort("first", "last", *_KINDS).iter_rows(named=True):
        yield (
            plain(one_line(row["version"])),
            code(row["commit"][:7]) if row["commit"] else plain("–"),
            plain(one_line(row["device"])),
            plain(f"{row['trials']:,}"),
            plain(duration(row["seconds"])),
            *(plain(f"{row[end]:%Y-%m-%d %H:%M} UTC") for end in ("first", "last")),
        )


def _borrowed(material: Material) -> Iterator[Html]:
    """Trials that another study has trained, which this one asks for, too."""
    others = material.own.filter(pl.col("study") != material.study.name)
    counts = others.group_by("study").len().sort("study").iter_rows()
    for study, count in counts:
        yield paragraph(plain(f"{plural(count, 'trial')} trained for the study {study}."))
