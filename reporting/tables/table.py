"""A table as plain frozen data for any renderer."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from importlib import import_module
from itertools import groupby

import polars as pl

from ...errors import ActivememError
from ...studies.catalog.published import PublishedNumber
from ...studies.presentation.kinds import Spread
from ...studies.text.units import plural
from ..statistics.estimates import Estimate, Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePart:
    """The place of a table in one over several studies.

    `rows` has the names of the rows of all studies by the texts of their levels. `column` has the names of
    the level of its columns, if they have a single one.
    """

    rows: Mapping[str, str]
    column: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TableExtras:
    """Optional contents of a table, such as the paper's numbers.

    `published` adds the paper's numbers, `paper_only` also rows and columns that only the paper has; `begun`
    are the trials with a checkpoint. A table that is `part` of another one marks each paper, and leaves
    warnings to the whole. Kinds of tables without such contents ignore them.
    """

    published: bool = False
    paper_only: bool = False
    begun: Collection[str] = ()
    part: TablePart | None = None


class TableError(ActivememError):
    """Error for a table whose specification has faults. The message lists all faults."""


NOT_RUN = "–"
"""The text of a cell without a value."""


class CellStatus(StrEnum):
    """The status of a table cell, derived from the statuses of its trials."""

    DONE = "done"  # every trial has a value
    PARTIAL = "partial"  # some trials have one; if none has, the words of `ValueStatus` are used
    INFINITE = "infinite"
    CENSORED = "censored"  # some trials ended before they reached a target
    BEGUN = "begun"
    PENDING = "pending"
    FAILED = "failed"
    DIVERGED = "diverged"
    NO_VALUE = "none"
    PRUNED = "pruned"
    INCOMPLETE = "incomplete"
    MISSING = "missing"
    REFUSED = "refused"  # the trials exceed the study's budget
    UNPLANNED = "unplanned"  # the study has no such trial
    PUBLISHED = "published"  # a published table: the number is the paper's


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedLine:
    """A published number below a cell: the `text` to show, and the marks of its footnotes.

    The text has the number with its spread and, in parentheses, its difference from the baseline; it is "" if
    the cell itself shows the number. Of several papers, each has a mark.
    """

    number: PublishedNumber
    text: str = ""
    marks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A cell of a table: a summary of its trials.

    `text` is the centre, or a word if there is none; `spread` is the number after a ±, and `interval` the
    text of an interval. `difference_text` is the `difference` from the baseline, with half the width of its
    interval and stars or its `p`. This p is corrected for the number of tests. `at_least` is the
    bound of a centre that is not known, since trainings ended before they reached a target. `picked` names
    the levels that were picked, and `metric` the metric shown if it is not the column's.
    `published_lines` has the published number of each paper.
    """

    status: CellStatus
    estimate: Estimate | None = None
    text: str = ""
    spread: str = ""
    interval: str = ""
    difference_text: str = ""
    difference: float | None = None
    difference_half_width: float | None = None
    is_significant: bool = False
    p: float | None = None
    best: bool = False
    tie: bool = False
    marks: tuple[str, ...] = ()  # marks of its footnotes
    at_least: float | None = None
    picked: str = ""
    metric: str = ""
    published_lines: tuple[PublishedLine, ...] = ()

    @property
    def published(self) -> PublishedNumber | None:
        """Return the published number, of the first paper if there are several; None without one."""
        return self.published_lines[0].number if self.published_lines else None

    @property
    def published_text(self) -> str:
        """Return the text of the published number, of the first paper if there are several, or ""."""
        return self.published_lines[0].text if self.published_lines else ""

    @property
    def lines_below(self) -> tuple[PublishedLine, ...]:
        """Return the published numbers that are shown below the cell's own."""
        return tuple(line for line in self.published_lines if line.text)

    @property
    def full_text(self) -> str:
        """Return the cell's value with its spread, its interval and its difference from the baseline."""
        parts = (
            self.text,
            f"± {self.spread}" if self.spread else "",
            self.interval,
            f"({self.difference_text})" if self.difference_text else "",
        )
        return " ".join(part for part in parts if part)

    @property
    def count(self) -> int:
        """Return the number of values that the cell summarises."""
        return self.estimate.n if self.estimate else 0


def number_cell(value: float, text: str, count: int = 1) -> Cell:
    """Return a cell with a number and no interval."""
    estimate = Estimate(value=value, low=None, high=None, spread=None, n=count)
    return Cell(status=CellStatus.DONE, estimate=estimate, text=text)


def interval_cell(
    found: Interval,
    form: Callable[[float], str],
    count: int,
    *,
    text: str = "",
    marks: tuple[str, ...] = (),
) -> Cell:
    """Return a cell with a number and its interval, if any. `form` formats the number and both ends."""
    value, low, high = found
    half = None if low is None or high is None else (high - low) / 2
    return Cell(
        status=CellStatus.DONE,
        estimate=Estimate(value=value, low=low, high=high, spread=half, n=count),
        text=text or form(value),
        interval="" if low is None or high is None else f"[{form(low)}, {form(high)}]",
        marks=marks,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Footnote:
    """A footnote: its mark and its sentence."""

    mark: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnKey:
    """The metric and the level of a column. The level is "" if the columns are metrics."""

    metric: str
    level: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table as data: its rows and columns of cells, its caption and its notes.

    The `caption` is one sentence. `remarks` are needed to read the cells: they explain symbols, and name what
    is left out. `notes` say how the numbers were computed and tested.

    `corner` is the name of the factor whose levels are the rows. `column_headings` are lines above the
    columns, the outermost first; equal neighbours are one heading. `factor_line` is the number of the line
    that names the factor of the levels below. `groups` has the heading of each row ("" for none).
    """

    name: str
    caption: str
    corner: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: tuple[tuple[Cell, ...], ...]  # by row, then column
    footnotes: tuple[Footnote, ...]
    provenance: str
    keys: tuple[ColumnKey, ...]
    column_headings: tuple[tuple[str, ...], ...] = ()
    factor_line: int | None = None
    groups: tuple[str, ...] = ()
    spread: Spread = "sd"
    remarks: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def sentences(self) -> tuple[str, ...]:
        """Return the caption, the remarks and the notes."""
        return tuple(filter(None, (self.caption, *self.remarks, *self.notes)))

    def frame(self) -> pl.DataFrame:
        """Return a data frame with a line for each cell, and the same columns for every table.

        `value` is the unrounded mean of `n` values. `spread` has the kind `spread_is`; for an interval it is
        half of its width, before `low` and `high` are cut at the range of the metric. A censored cell has
        only `low`, below its unknown value. `p` is the corrected p of the difference. `picked` is null unless
        the cell is the best of several levels. A `tie` is not separable from the best of its
        column. `published` has the paper's number in `unit`, `note` the footnotes, and `origin` the code
        behind the values.
        """
        schema = {
            **dict.fromkeys(("row", "column"), pl.String),
            # among the first four, which Polars always prints
            **dict.fromkeys(("value", "spread"), pl.Float64),
            "n": pl.Int64,
            **dict.fromkeys(("low", "high"), pl.Float64),
            **dict.fromkeys(("table", "group", "metric", "status", "spread_is"), pl.String),
            "difference": pl.Float64,
            "difference_half_width": pl.Float64,
            "is_significant": pl.Boolean,
            "p": pl.Float64,
            "best": pl.Boolean,
            "tie": pl.Boolean,
            "picked": pl.String,
            "published": pl.Float64,
            "unit": pl.String,
            "note": pl.String,
            "origin": pl.String,
        }
        records = [{name: record[name] for name in schema} for record in iter_records(self)]
        return pl.DataFrame(records, schema=schema, orient="row")

    def render(self, form: str = "rich") -> str:
        """Return the table as text in a named format, such as `latex`, or `rich` for a terminal."""
        formats = import_module(".render", __package__)  # formats import tables, not the reverse
        return formats.render(self, form)

    def __str__(self) -> str:
        return self.render()

    def _repr_html_(self) -> str:
        return self.render("html")

    def __repr__(self) -> str:
        return f"<Table {self.name}: {plural(len(self.rows), 'row')}, {plural(len(self.columns), 'column')}>"

    def row_groups(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """Return the headings of groups of rows, each with the indices of its rows."""
        headings = self.groups or ("",) * len(self.rows)
        runs = groupby(range(len(self.rows)), headings.__getitem__)
        return tuple((heading, tuple(numbers)) for heading, numbers in runs)

    def heading_spans(self) -> tuple[tuple[tuple[str, int], ...], ...]:
        """Return the lines of headings above the columns, each with the number of columns below it."""
        paths = list(zip(*self.column_headings, strict=True))
        return tuple(tuple(heading_runs(paths, depth)) for depth in range(len(self.column_headings)))


def heading_runs(paths: Sequence[tuple[str, ...]], depth: int) -> Iterator[tuple[str, int]]:
    """Yield the headings of one line above the columns, each with its number of columns.

    The line is `depth`. `paths` has all headings of each column, the outermost first. A heading ends where a
    heading above it ends, and an empty heading has a single column.
    """
    places = range(len(paths))
    # an empty heading is grouped by its index, so that it does not join an empty neighbour
    for (path, _), run in groupby(places, lambda at: (paths[at][: depth + 1], not paths[at][depth] and at)):
        yield path[-1], len(list(run))


class Footnotes:
    """The footnotes of one table, collected while its cells are filled. Equal sentences share a mark."""

    def __init__(self, known: Sequence[Footnote] = ()) -> None:
        self._marks = {note.text: note.mark for note in known}

    def mark(self, sentence: str) -> str:
        """Add a footnote if it is new, and return its mark. Marks are a to z, then aa, ab and so on."""
        number, letters = 1 + sum(mark.isalpha() for mark in self._marks.values()), ""
        # letters have no zero: z is followed by aa
        while number:
            number, letter = divmod(number - 1, 26)
            letters = chr(ord("a") + letter) + letters
        return self._marks.setdefault(sentence, letters)

    def renewed(self, cell: Cell, known: Sequence[Footnote]) -> Cell:
        """Return a cell of another table, whose footnotes are `known`, with marks of these footnotes."""
        texts = {note.mark: note.text for note in known}

        def marks(old: Sequence[str]) -> tuple[str, ...]:
            return tuple(self.mark(texts[mark]) for mark in old)

        lines = tuple(replace(line, marks=marks(line.marks)) for line in cell.published_lines)
        return replace(cell, marks=marks(cell.marks), published_lines=lines)

    def as_tuple(self) -> tuple[Footnote, ...]:
        """Return every footnote, in the order of the marks."""
        return tuple(Footnote(mark=mark, text=sentence) for sentence, mark in self._marks.items())


def _paper_notes(cell: Cell, notes: Mapping[str, str]) -> Iterator[str]:
    """Yield the footnotes of each published number of a cell, after the number."""
    for line in cell.published_lines:
        if line.text and line.marks:
            yield f"{line.text}: {' '.join(notes[mark] for mark in line.marks)}"


def iter_records(table: Table) -> Iterator[dict[str, object]]:
    """Yield a record for every cell in reading order.

    Missing entries are None. `metric` is the metric of the cell, `column` the level of its column, or the
    metric if metrics are the columns.
    """
    notes = {note.mark: note.text for note in table.footnotes}
    groups = table.groups or ("",) * len(table.rows)
    for row, group, cells in zip(table.rows, groups, table.cells, strict=True):
        for key, cell in zip(table.keys, cells, strict=True):
            estimate, published = cell.estimate, cell.published
            yield {
                "table": table.name,
                "group": group or None,
                "row": row,
                "column": key.level or key.metric,
                "metric": cell.metric or key.metric,
                "status": cell.status.value,
                "value": estimate.value if estimate else None,
                "spread_is": table.spread,
                "spread": estimate.spread if estimate else None,
                "low": estimate.low if estimate else cell.at_least,
                "high": estimate.high if estimate else None,
                "n": cell.count,
                "difference": cell.difference,
                "difference_half_width": cell.difference_half_width,
                "is_significant": None if cell.difference_half_width is None else cell.is_significant,
                "p": cell.p,
                "best": cell.best,
                "tie": cell.tie,
                "picked": cell.picked or None,
                "published": published.value if published else None,
                "published_text": published.text if published else None,
                "unit": published.unit if published else None,
                "note": "; ".join([*(notes[mark] for mark in cell.marks), *_paper_notes(cell, notes)])
                or None,
                "origin": table.provenance,
            }
