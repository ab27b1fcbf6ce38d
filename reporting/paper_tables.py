"""The tables of a paper: its own numbers, and ours beside them where a study reproduces them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from ..diagnostics import nearest_hint
from ..storage import Store
from ..studies.catalog.published import (
    HIGHER_IS_BETTER_BY_UNIT,
    PublishedNumber,
    PublishedTable,
    published_tables,
)
from ..studies.last_run import load_last_run
from ..studies.study import Study
from ..studies.text.document import parse_document
from ..studies.text.errors import StudyError
from .kinds.cells import CellsTable
from .tables.published import PAPER_ONLY_HEADING
from .tables.table import Cell, CellStatus, ColumnKey, Footnotes, Table, TableError, build_table

_SIDES = {True: ", higher is better", False: ", lower is better", None: ""}
_ARROWS = {True: " ↑", False: " ↓", None: ""}


def published_tables_of(paper: str, name: str | None = None) -> tuple[PublishedTable, ...]:
    """Return the tables of a paper in its order, or the one of that name; TableError if there is none."""
    tables = {table.name: table for table in published_tables().values() if table.paper == paper}
    if not tables:
        papers = {known for known, _ in published_tables()}
        raise TableError(f"there are no published numbers of '{paper}'{nearest_hint(paper, papers)}")
    if name is not None and name not in tables:
        raise TableError(f"{paper} has no published table '{name}'{nearest_hint(name, tables)}")
    return tuple(tables.values()) if name is None else (tables[name],)


def studies_of_paper(paper: str, store: Store) -> tuple[Study, ...]:
    """Return the studies of a paper by name: those that come with the package, and those in a store."""
    texts = {
        path.stem: path.read_text(encoding="utf-8")
        for path in (Path(__file__).parents[1] / "studies").glob("*.toml")
    }
    for name in store.trials()["study"].unique():
        if record := store.records.load(name):
            texts[name] = record["text"]
    names = [name for name, text in texts.items() if _paper_of(text) == paper]
    return tuple(load_last_run(name, store) for name in sorted(names))


def paper_tables(
    published: Iterable[PublishedTable],
    studies: Sequence[Study],
    outcomes: pl.DataFrame,
    begun: Collection[str] = (),
) -> tuple[Table, ...]:
    """Return each published table, once for every study of it with a trial in `outcomes`.

    Studies that have the same columns and other rows of it are joined in one table. A table without such a
    study is returned once, with its published numbers alone.
    """
    stored = set(outcomes["trial"])
    ran = [study for study in studies if any(trial.id in stored for trial in study.trials)]
    tables: list[Table] = []
    for theirs in published:
        ours = [
            (study, spec)
            for study in ran
            for spec in study.tables
            if isinstance(spec, CellsTable) and _reproduces(theirs, study, spec)
        ]
        beside: list[Table] = []
        for study, spec in ours:
            table = build_table(study, spec, outcomes, published=True, paper_only=True, begun=begun)
            name = f"{theirs.paper}-{theirs.name}-{study.name}"
            beside.append(replace(table, name=name, provenance=f"study {study.name} · {table.provenance}"))
        tables += _join_tables(theirs, beside) if ours else [published_only_table(theirs)]
    return tuple(tables)


def _join_tables(theirs: PublishedTable, tables: Sequence[Table]) -> list[Table]:
    """Return the tables, with those joined that have the same columns beside other rows of the paper."""
    joined: list[Table] = []
    for table in tables:
        for number, known in enumerate(joined):
            if set(known.keys) == set(table.keys) and not _own_rows(theirs, known) & _own_rows(theirs, table):
                joined[number] = _join(theirs, known, table)
                break
        else:
            joined.append(table)
    return joined


def _own_rows(theirs: PublishedTable, table: Table) -> set[str]:
    """Return the paper's rows for which a table has rows of ours."""
    beside = {id(cell.published) for number in _own_numbers(table) for cell in table.cells[number]}
    return {row for (row, _), number in theirs.cells.items() if id(number) in beside}


def _own_numbers(table: Table) -> list[int]:
    """Return the numbers of the rows that are not the paper's alone."""
    groups = table.groups or ("",) * len(table.rows)
    return [number for number, group in enumerate(groups) if group != PAPER_ONLY_HEADING]


def _join(theirs: PublishedTable, first: Table, second: Table) -> Table:
    """Return one table with the rows of both, in the first one's columns; its notes are marked afresh."""
    notes = Footnotes()
    order = [second.keys.index(key) for key in first.keys]
    parts = ((first, _own_numbers(first), range(len(order))), (second, _own_numbers(second), order))
    left = [
        number
        for number in range(len(first.rows))
        if number not in parts[0][1] and first.rows[number] not in _own_rows(theirs, second)
    ]
    places = [*((part, number, columns) for part, own, columns in parts for number in own)]
    places += [(first, number, parts[0][2]) for number in left]

    def marked(table: Table, cell: Cell) -> Cell:
        texts = {note.mark: note.text for note in table.footnotes}
        return replace(cell, marks=tuple(notes.mark(texts[mark]) for mark in cell.marks))

    cells = tuple(
        tuple(marked(table, table.cells[number][column]) for column in columns)
        for table, number, columns in places
    )
    groups = tuple(table.groups[number] if table.groups else "" for table, number, _ in places)
    return replace(
        first,
        name=f"{theirs.paper}-{theirs.name}",
        caption=tuple(dict.fromkeys((*first.caption, *second.caption))),
        corner=" / ".join(dict.fromkeys((first.corner, second.corner))),
        rows=tuple(table.rows[number] for table, number, _ in places),
        cells=cells,
        footnotes=notes.as_tuple(),
        groups=groups if any(groups) else (),
        provenance=f"{first.provenance}; {second.provenance}",
    )


def published_only_table(theirs: PublishedTable) -> Table:
    """Return a published table without results of ours; its notes become the caption or footnotes."""
    numbers = list(theirs.cells.values())
    remarks, units = {number.remaining_note for number in numbers}, {number.unit for number in numbers}
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
        provenance=f"{len(numbers)} published numbers · {theirs.paper} {theirs.name}",
        keys=keys,
        column_headings=(tuple(key.metric for key in keys),) if any(key.metric for key in keys) else (),
    )


def _key(column: str) -> ColumnKey:
    """Return a paper's column as a metric and a level if its name has both, else as a level."""
    metric, colon, level = column.partition(":")
    return ColumnKey(metric=metric, level=level) if colon else ColumnKey(metric="", level=column)


def _paper_of(text: str) -> str | None:
    """Return the paper that a study file names, read without making its trials."""
    try:
        study = parse_document("", text).data.get("study", {})
    except StudyError:  # a study file that cannot be read names no paper
        return None
    return study.get("paper") if isinstance(study, dict) else None


def _reproduces(theirs: PublishedTable, study: Study, spec: CellsTable) -> bool:
    return (study.paper, spec.published_table) == (theirs.paper, theirs.name)


def _caption(theirs: PublishedTable, units: Collection[str], remarks: Collection[str]) -> Iterable[str]:
    shown = [f" ({unit}{_SIDES[HIGHER_IS_BETTER_BY_UNIT[unit]]})" for unit in units]
    yield f"Published: {theirs.paper} {theirs.name}{''.join(shown) if len(shown) == 1 else ''}."
    if len(remarks) == 1 and any(remarks):
        remark = "".join(remarks)
        yield remark[0].upper() + remark[1:] + "."


def _arrow(theirs: PublishedTable, column: str) -> str:
    units = {theirs.cells[row, column].unit for row in theirs.rows if (row, column) in theirs.cells}
    return _ARROWS[HIGHER_IS_BETTER_BY_UNIT[units.pop()]] if len(units) == 1 else ""


def _cell(number: PublishedNumber | None, notes: Footnotes, *, noted: bool) -> Cell:
    """Return a cell with the paper's number, and a mark for its note if notes are in footnotes (`noted`)."""
    if number is None:
        return Cell(status=CellStatus.UNPLANNED)
    marks = (notes.mark(number.remaining_note),) if noted and number.remaining_note else ()
    return Cell(status=CellStatus.PUBLISHED, text=number.text_with_deviation, marks=marks, published=number)
