"""The trials that failed, and why.

Nothing is left out of it: a table marks how many of a cell's seeds are missing, here is which and for what.
"""

from __future__ import annotations

import polars as pl

from ..frames import study_levels
from ..labels import level_name, one_line
from ..settings import Level
from .markup import Column, Html, Section, block, code, folded, grid, joined, listed, paragraph, plain
from .material import Material


def section(material: Material) -> Section | None:
    """How often each reason came, then every trial that failed with its levels; whole messages on demand."""
    failed = material.own.filter(pl.col("status") == "failed").select("trial", "epochs", "reason")
    if not len(failed):
        return None
    cells = study_levels(material.study, material.outcomes)
    found = cells.join(failed, on="trial", maintain_order="left")
    columns = [Column("trial"), *map(Column, cells.columns[1:]), Column("epochs", "number")]
    rows = [
        (code(trial), *map(_level, levels), plain(f"{epochs}"), _reason(reason))
        for trial, *levels, epochs, reason in found.iter_rows()
    ]
    pieces = [
        paragraph(plain("A failure is an outcome: these trials are tried again only on request.")),
        listed(plain(f"{count} × {reason}") for reason, count in material.standing.reasons),
        grid("failed trials", [*columns, Column("reason", "words")], rows),
    ]
    return Section(name="failures", title="Failures", body=joined(pieces))


def _level(level: Level | None) -> Html:
    """A level as tables call it; nothing where the cell has no such factor."""
    return plain("") if level is None else code(level_name(level))


def _reason(reason: str | None) -> Html:
    """The first line of a reason, what follows it folded away."""
    first, _, rest = (reason or "no reason stored").strip().partition("\n")
    return folded(plain(one_line(first)), block(rest)) if rest.strip() else plain(one_line(first))
