"""Conformance checks that built-in and plug-in table formats must pass.

A check takes the name of a format, and raises AssertionError if the format breaks its contract. So a test of
a plug-in is:

    @pytest.mark.parametrize("check", CHECKS)
    def test_my_format_conforms(check):
        check("my_format")

The tables cover groups, headings, footnotes, published numbers, and plain cells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from ...studies.catalog.published import PublishedNumber
from .render import render
from .table import Cell, CellStatus, ColumnKey, Footnote, PublishedLine, Table, number_cell


def every_table_becomes_text(name: str) -> None:
    """Check that a format renders each example table, twice to the same text."""
    for table in _tables():
        assert render(table, name) == render(table, name), "the text differs on a second rendering"


def nothing_is_left_out(name: str) -> None:
    """Check that a rendered table has all rows and columns, and all numbers after their rows."""
    table = next(_tables())
    text = render(table, name)
    for word in (*table.rows, *table.columns):
        assert word in text, f"'{word}' is missing"
    for row, cells in zip(table.rows, table.cells, strict=True):
        for cell in cells:
            assert not cell.estimate or cell.text in text[text.index(row) :], (
                f"a number of '{row}' is missing"
            )


def a_row_of_more_is_more(name: str) -> None:
    """Check that a table with fewer rows has a different text."""
    table = next(_tables())
    fewer = replace(table, rows=table.rows[:1], cells=table.cells[:1], groups=table.groups[:1])
    assert render(fewer, name) != render(table, name), "a row has no effect"


CHECKS: tuple[Callable[[str], None], ...] = (
    every_table_becomes_text,
    nothing_is_left_out,
    a_row_of_more_is_more,
)
"""Every check; each is called as `check(name)`."""


def _tables() -> Iterator[Table]:
    def cell(text: str, **changes: Any) -> Cell:  # noqa: ANN401 -- fields of a cell
        published = PublishedLine(number=PublishedNumber(value=float(text), text=text), text=text)
        shown = {"spread": "0.125", "published_lines": (published,)}
        return replace(number_cell(float(text), text, 2), **shown, **changes)

    full = Table(
        name="sample",
        caption="Accuracy on the test split: mean of 2 seeds.",
        remarks=("Bold: best in its column.",),
        notes=("Intervals are at 95 %.",),
        corner="mixer",
        rows=("attention", "convolution"),
        columns=("reverse", "sort"),
        cells=(
            (cell("0.875", best=True, marks=("a",)), cell("0.25")),
            (cell("0.5"), Cell(status=CellStatus.PENDING, text="not run")),
        ),
        footnotes=(Footnote(mark="a", text="one seed"),),
        provenance="activemem, a sample",
        keys=(ColumnKey(metric="accuracy", level="reverse"), ColumnKey(metric="accuracy", level="sort")),
        column_headings=(("Algorithms", "Algorithms"),),
        groups=("Transformers", "Others"),
    )
    yield full
    yield replace(full, column_headings=(), groups=(), caption="", remarks=(), notes=())
    yield replace(full, rows=("x_1 & 50% | <y>",) * 2, corner="é ± #")
