"""A table as a paper prints it, from a study's trials, their stored outcomes and the published numbers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import polars as pl

from .cells import NOT_RUN, fill
from .fitting import misfits
from .footnotes import Footnotes
from .labels import level_text, one_line
from .metrics import METRICS
from .published import Published, PublishedTable, match, published_tables
from .settings import TableSpec
from .study import Study
from .table import Cell, Status, Table, TableError
from .tally import Place, Tally, gather


def table(study: Study, spec: TableSpec, outcomes: pl.DataFrame, *, published: bool = False) -> Table:
    """The table that `spec` describes, over the study's trials in `outcomes`, the store's latest attempts.

    `published` puts the paper's numbers beside ours. TableError if the specification does not fit the study.
    """
    if wrong := misfits(spec, study.factors, study.paper):
        raise TableError("\n".join(f"table {spec.name}: {key}: {message}" for key, message in wrong))
    trials, metric, notes = study.trials(), METRICS[spec.value], Footnotes()
    rows, columns = (tuple(map(level_text, study.factors[factor])) for factor in (spec.rows, spec.columns))
    paper = published_tables().get((study.paper or "", spec.published or spec.name)) if published else None
    tallies = gather(trials, outcomes, rows=spec.rows, columns=spec.columns, metric=metric.name)
    places = [[(row, column) for column in columns] for row in rows]
    cells = fill(places, tallies, _beside(paper, rows, columns), metric=metric, notes=notes)
    flat = [cell for row in cells for cell in row]
    what = one_line(spec.caption or metric.title).removesuffix(".")
    return Table(
        name=spec.name,
        caption=(f"{what}{_average(tallies.values())}.", *_legend(flat, paper, higher=metric.higher is True)),
        corner=one_line(spec.rows),
        rows=rows,
        columns=columns,
        cells=cells,
        footnotes=notes.all(),
        provenance=provenance([trial.id for trial in trials], outcomes),
    )


def provenance(trials: Collection[str], outcomes: pl.DataFrame) -> str:
    """Where the numbers come from, told by the rows of these trials alone: how many, what made them, when."""
    known = outcomes.filter(pl.col("trial").is_in(trials)).select("version", "commit", "device", "finished")
    count = f"{len(known)}" if len(known) == len(trials) else f"{len(known)} of {len(trials)}"
    parts = [f"{count} trial{'' if len(trials) == 1 else 's'}"]
    for version in known["version"].unique().sort():
        commits = known.filter(pl.col("version") == version)["commit"].drop_nulls()
        short = ", ".join(commits.str.head(7).unique().sort())
        parts.append(f"activemem {version}" + (f" ({short})" if short else ""))
    if len(known):
        parts.append(", ".join(known["device"].unique().sort()))
        parts.extend(known.select(pl.col("finished").max().dt.strftime("%Y-%m-%d")).to_series())
    return one_line(" · ".join(parts))


def _beside(
    paper: PublishedTable | None, rows: Sequence[str], columns: Sequence[str]
) -> dict[Place, Published]:
    """The published number of each of our places that has one."""
    if paper is None:
        return {}
    row_keys, column_keys = match(rows, paper.rows), match(columns, paper.columns)
    keys = {(row, column): (row_keys[row], column_keys[column]) for row in row_keys for column in column_keys}
    return {place: paper.cells[key] for place, key in keys.items() if key in paper.cells}


def _average(tallies: Iterable[Tally]) -> str:
    """What each number is over its seeds, as planned; nothing where the study has none of these trials."""
    seeds = sorted({tally.trials for tally in tallies})
    if not seeds:
        return ""
    if seeds[-1] == 1:
        return ": one seed"
    low, high = seeds[0], seeds[-1]
    return f": mean ± s.d. of {high if low == high else f'{low} to {high}'} seeds"


def _legend(cells: Sequence[Cell], paper: PublishedTable | None, *, higher: bool) -> list[str]:
    """What bold, small and a dash mean, where they occur."""
    legend = []
    if any(cell.best for cell in cells):
        side = "highest" if higher else "lowest"
        legend.append(f"Bold: {side} in its column, with all that tie at the digits shown.")
    if paper and any(cell.published for cell in cells):
        legend.append(f"Small: published, {paper.paper} {paper.name}.")
    if any(cell.status is Status.MISSING for cell in cells):
        legend.append(f"{NOT_RUN}: not run.")
    return legend
