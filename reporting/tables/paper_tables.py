"""The tables of a paper: its own numbers, and ours among them where a study has made some of them again."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from ...diagnostics import nearest_hint
from ...storage import Store
from ...studies.catalog.published import (
    HIGHER_IS_BETTER_BY_UNIT,
    PublishedNumber,
    PublishedTable,
    published_tables,
)
from ...studies.lookup import load_last_run
from ...studies.schema.table import TableSpec
from ...studies.study import Study
from .build import build_table
from .table import Cell, CellStatus, ColumnKey, Footnotes, Table, TableError

_SIDES = {True: ", higher is better", False: ", lower is better", None: ""}
_ARROWS = {True: " ↑", False: " ↓", None: ""}


def published_tables_of(paper: str, name: str | None = None) -> tuple[PublishedTable, ...]:
    """The tables of a paper in its order, or the one of that name; TableError if there is none."""
    found = {its: each for (whose, its), each in published_tables().items() if whose == paper}
    if not found:
        papers = {whose for whose, _ in published_tables()}
        raise TableError(f"there are no published numbers of '{paper}'{nearest_hint(paper, papers)}")
    if name is not None and name not in found:
        raise TableError(f"{paper} has no published table '{name}'{nearest_hint(name, found)}")
    return tuple(each for its, each in found.items() if name in (None, its))


def studies_of_paper(paper: str, store: Store) -> tuple[Study, ...]:
    """The studies of a paper by name: those that come with the package, and those that ran into a store."""
    texts = {
        path.stem: path.read_text(encoding="utf-8")
        for path in (Path(__file__).parents[2] / "studies").glob("*.toml")
    }
    for name in store.trials()["study"].unique():
        if record := store.load_study_record(name):
            texts[name] = record["text"]
    own = [name for name, text in texts.items() if _parse_paper(text) == paper]
    return tuple(load_last_run(name, store) for name in sorted(own))


def paper_tables(
    printed: Iterable[PublishedTable],
    studies: Sequence[Study],
    outcomes: pl.DataFrame,
    begun: Collection[str] = (),
) -> tuple[Table, ...]:
    """Each published table beside every study of it that has a trial in `outcomes`, else by itself.

    Beside ours stand also the rows and columns that only the paper has.
    """
    held = set(outcomes["trial"])
    ran = [study for study in studies if any(trial.id in held for trial in study.trials)]
    made: list[Table] = []
    for theirs in printed:
        ours = [(study, spec) for study in ran for spec in study.tables if _reproduces(theirs, study, spec)]
        for study, spec in ours:
            one = build_table(study, spec, outcomes, published=True, paper_only=True, begun=begun)
            name = f"{theirs.paper}-{theirs.name}-{study.name}"
            made.append(replace(one, name=name, provenance=f"study {study.name} · {one.provenance}"))
        made += [] if ours else [published_only_table(theirs)]
    return tuple(made)


def published_only_table(theirs: PublishedTable) -> Table:
    """A published table as the paper has it; what its notes say stands in the caption or in footnotes."""
    known = list(theirs.cells.values())
    remarks, units = {number.remaining_note for number in known}, {number.unit for number in known}
    notes, noted, arrows = Footnotes(), len(remarks) > 1, len(units) > 1
    cells = tuple(
        tuple(_cell(theirs.cells.get((row, column)), notes, noted=noted) for column in theirs.columns)
        for row in theirs.rows
    )
    keys = tuple(map(_key, theirs.columns))
    return Table(
        name=f"{theirs.paper}-{theirs.name}",
        caption=tuple(_caption(theirs, units, remarks)),
        corner="",
        rows=theirs.rows,
        columns=tuple(
            key.level + (_arrow(theirs, column) if arrows else "")
            for key, column in zip(keys, theirs.columns, strict=True)
        ),
        cells=cells,
        footnotes=notes.as_tuple(),
        provenance=f"{len(known)} published numbers · {theirs.paper} {theirs.name}",
        keys=keys,
        column_headings=(tuple(key.metric for key in keys),) if any(key.metric for key in keys) else (),
    )


def _key(column: str) -> ColumnKey:
    """A paper's column as a metric and a level, where its name has both, else as a level."""
    metric, colon, level = column.partition(":")
    return ColumnKey(metric=metric, level=level) if colon else ColumnKey(metric="", level=column)


def _parse_paper(text: str) -> str | None:
    """The paper that a study file names, told without making its trials."""
    study = tomllib.loads(text).get("study", {})
    return study.get("paper") if isinstance(study, dict) else None


def _reproduces(theirs: PublishedTable, study: Study, spec: TableSpec) -> bool:
    """Whether a study's table is the published one, made again."""
    return (study.paper, spec.published_table) == (theirs.paper, theirs.name)


def _caption(theirs: PublishedTable, units: Collection[str], remarks: Collection[str]) -> Iterable[str]:
    """Whose numbers these are, in which unit, and what the paper says of all of them."""
    told = [] if len(units) > 1 else [unit + _SIDES[HIGHER_IS_BETTER_BY_UNIT[unit]] for unit in units]
    yield " ".join([f"Published: {theirs.paper} {theirs.name}", *(f"({each})" for each in told)]) + "."
    if len(remarks) == 1 and any(remarks):
        remark = "".join(remarks)
        yield remark[0].upper() + remark[1:] + "."


def _arrow(theirs: PublishedTable, column: str) -> str:
    """The better side of a column whose unit says it."""
    units = {theirs.cells[row, column].unit for row in theirs.rows if (row, column) in theirs.cells}
    return _ARROWS[HIGHER_IS_BETTER_BY_UNIT[units.pop()]] if len(units) == 1 else ""


def _cell(number: PublishedNumber | None, notes: Footnotes, *, noted: bool) -> Cell:
    """A cell with the paper's number, and a mark for what the paper says of it where that is `noted`."""
    if number is None:
        return Cell(status=CellStatus.UNPLANNED)
    marks = (notes.mark(number.remaining_note),) if noted and number.remaining_note else ()
    return Cell(status=CellStatus.PUBLISHED, text=number.text_with_deviation, marks=marks, published=number)
