"""Numbers published in a paper, shown in the table of a study.

Rows and columns of the study are matched with those of the paper. Those that only the paper has are added.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from functools import cache
from logging import getLogger
from typing import TYPE_CHECKING

from ...errors import nearest
from ...studies.catalog.metrics import with_sign
from ...studies.catalog.published import (
    PublishedMatch,
    PublishedNumber,
    PublishedNumbers,
    match_published,
    match_published_keys,
)
from ...studies.schema.factors import level_name, level_text
from ...studies.text.units import listed
from .table import Cell, CellStatus, ColumnKey, PublishedLine, Table

if TYPE_CHECKING:
    from ...studies.presentation.table_keys import CellsTable
    from ...studies.schema.settings import Level
    from .cells import TableColumn, TableRow

_log = getLogger(__name__)

PAPER_ONLY_HEADING = "published only"
"""The heading of rows and columns that only the paper has."""


def match_tables(
    spec: CellsTable,
    published: PublishedNumbers,
    rows: Sequence[TableRow],
    columns: Sequence[TableColumn],
    fixed: Iterable[Level],
    *,
    warns: bool,
) -> tuple[PublishedMatch, ...]:
    """Match a table's rows and columns with those of each paper's table that it shows.

    If its columns are metrics, and none of them is a column of the paper, a level that is `fixed` in all of
    its cells may be one. If it `warns`, names of the paper that match nothing are logged.
    """
    metrics = list(dict.fromkeys(column.metric.name for column in columns))
    levels = {column.level: column.head for column in columns if column.level}
    row_heads = {row.level: row.head for row in rows}
    matches: list[PublishedMatch] = []
    for names, theirs in spec.published_tables(published):
        given = {"row_names": names.rows, "column_names": names.columns}
        found = match_published(theirs, row_heads, metrics, levels, **given)
        if not levels and not found.columns and len(metrics) == 1:
            named = {level_text(level): level_name(level) for level in fixed}
            keys = list(match_published_keys(named, theirs.columns).values())
            found = replace(found, columns={(metrics[0], ""): keys[0]} if keys else {})
        for sentence in unmatched_sentences(found, list(row_heads), list(levels) or metrics) if warns else ():
            _warn(sentence)
        matches.append(found)
    return tuple(matches)


def warn_of_unmatched(
    matches: Sequence[Sequence[PublishedMatch]], rows: Sequence[str], columns: Sequence[str]
) -> None:
    """Log a warning for names of papers that match nothing in a table of several studies.

    `matches` has those of each study, one for each paper's table.
    """
    for of_paper in zip(*matches, strict=True):
        joined = replace(
            of_paper[0],
            rows={name: key for match in of_paper for name, key in match.rows.items()},
            columns={("", key): key for match in of_paper for key in match.columns.values()},
        )
        for sentence in unmatched_sentences(joined, rows, columns):
            _warn(sentence)


def unmatched_sentences(match: PublishedMatch, rows: Sequence[str], columns: Sequence[str]) -> list[str]:
    """Return sentences on the names of a paper's table that match none of these rows and columns.

    Of numbers that come with the package, a study often repeats only a part: they are reported if none of
    them matches. Each name in a file of the user's own is expected to match.
    """
    theirs = match.paper
    if not match.numbers:
        count = len(theirs.cells)
        what = f"none of its {count} numbers matches" if count > 1 else "its number does not match"
        sides = (("rows", theirs.rows, rows), ("columns", theirs.columns, columns))
        lists = (f"its {side} are {_some(keys)}, and ours {_some(ours)}" for side, keys, ours in sides)
        return [f"{theirs.title}: {what} a row and a column here: {'; '.join(lists)}{_ADVICE}"]
    sentences: list[str] = []
    own = [place for place, number in theirs.cells.items() if number.line is not None]
    for side, keys, found, ours in (
        ("row", [row for row, _ in own], match.rows.values(), rows),
        ("column", [column for _, column in own], match.columns.values(), columns),
    ):
        if left := [key for key in dict.fromkeys(keys) if key not in found]:
            matches = "match" if len(left) > 1 else "matches"
            found_near = nearest(left[0], ours) if len(left) == 1 else None
            near = f"; nearest: {found_near}" if found_near else ""
            names = f"{side}{'s' * (len(left) > 1)} {_some(left)}"
            sentences.append(
                f"{theirs.title}: {names} {matches} no {side} here{near}; ours are {_some(ours)}{_ADVICE}"
            )
    return sentences


_ADVICE = "; other names: published = { table = …, rows = { OURS = THEIRS } }"
_MOST_NAMES = 12


def _some(names: Sequence[str]) -> str:
    quoted = [f"'{name}'" for name in names]
    if len(quoted) > _MOST_NAMES:
        quoted = [*quoted[:_MOST_NAMES], f"{len(quoted) - _MOST_NAMES} more"]
    return listed(quoted)


@cache  # a page that is served is made again and again
def _warn(sentence: str) -> None:
    _log.warning("%s", sentence)


def paper_words(match: PublishedMatch) -> str:
    """Return the paper whose numbers a table shows, with what is after its ±, and where its numbers are from.

    Return "" if it shows none of them.
    """
    if not match.numbers:
        return ""
    shown = match.paper.cells.values()
    spreads = {number.spread_words for number in shown if number.spread}
    sources = {number.source for number in shown if number.source}
    told = "; ".join(each.pop() for each in (spreads, sources) if len(each) == 1)
    return f"{match.paper.title} ({told})" if told else match.paper.title


def published_line(
    number: PublishedNumber, baseline: PublishedNumber | None, marks: Iterable[str], *, comparable: bool
) -> PublishedLine:
    """Return a published number as a line below a cell, with its difference from the baseline's number.

    A number that is not `comparable` with the cell, because its unit is another one, has no difference.
    """
    extra = difference_from_baseline(number, baseline) if comparable else ""
    text = f"{number.text_with_deviation}{f' ({extra})' if extra else ''}"
    return PublishedLine(number=number, text=text, marks=tuple(marks))


def difference_from_baseline(number: PublishedNumber, baseline: PublishedNumber | None) -> str:
    """Return the difference of two printed numbers in one unit, with their decimals, or "".

    Parameters, printed in millions, have no difference.
    """
    if baseline is None or number is baseline or number.value is None or baseline.value is None:
        return ""
    if number.unit != baseline.unit:
        return ""
    try:
        # decimal arithmetic keeps the printed digits, as in 0.30 − 0.10 = 0.20
        return with_sign(str(_decimal(number) - _decimal(baseline)))
    except InvalidOperation:  # as in 39M
        return ""


def _decimal(number: PublishedNumber) -> Decimal:
    return Decimal(number.text.replace("−", "-"))


def add_paper_only(
    table: Table, match: PublishedMatch, rows: Sequence[TableRow], columns: Sequence[TableColumn]
) -> Table:
    """Add the paper's additional rows and columns to a table.

    They follow the study's own rows and columns, under a heading. These rows and columns keep the paper's
    names and order; their cells are UNPLANNED.
    """
    cells = match.paper.cells
    paper_rows = tuple(row for row in match.paper.rows if row not in match.rows.values())
    new_columns = tuple(column for column in match.paper.columns if column not in match.columns.values())
    column_keys = [match.columns.get((column.metric.name, column.level), "") for column in columns]
    row_keys = [match.rows.get(row.level, "") for row in rows]
    widened = [
        (*row, *(_paper_only_cell(cells.get((key, column))) for column in new_columns))
        for key, row in zip(row_keys, table.cells, strict=True)
    ]
    new_rows = [
        tuple(_paper_only_cell(cells.get((row, key))) for key in (*column_keys, *new_columns))
        for row in paper_rows
    ]
    first, *others = table.column_headings or (("",) * len(columns),)
    headings = [(*first, *(PAPER_ONLY_HEADING,) * len(new_columns))]
    headings += [(*line, *("",) * len(new_columns)) for line in others]
    return replace(
        table,
        rows=(*table.rows, *paper_rows),
        columns=(*table.columns, *new_columns),
        cells=(*widened, *new_rows),
        groups=(*(table.groups or ("",) * len(rows)), *(PAPER_ONLY_HEADING,) * len(new_rows))
        if new_rows
        else table.groups,
        column_headings=tuple(headings) if new_columns else table.column_headings,
        keys=(*table.keys, *(ColumnKey(metric="", level=key) for key in new_columns)),
    )


def _paper_only_cell(number: PublishedNumber | None) -> Cell:
    lines = (PublishedLine(number=number, text=number.text_with_deviation),) if number else ()
    return Cell(status=CellStatus.UNPLANNED, published_lines=lines)
