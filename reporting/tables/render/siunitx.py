"""A table as LaTeX whose numbers are aligned at their points by siunitx, bold or not."""

from __future__ import annotations

import re

from ..table import Cell, Table
from .latex import CellForm, escape, marks_of, over, render_float, rest_of, small_published, spans_of, text_of

_NUMBER = re.compile(r"(−?)([\d,]+)(?:\.(\d+))?")


def render(table: Table) -> str:
    """Render the float as `latex` does, with a column `S` for numbers."""
    return render_float(table, _ALIGNED)


def _number(cell: Cell) -> tuple[str, str, str] | None:
    """Sign, whole part and decimals of a cell's number; None if it has none."""
    found = _NUMBER.fullmatch(cell.text)
    return (found[1], found[2].replace(",", ""), found[3] or "") if found else None


def _cells(table: Table, number: int) -> list[Cell]:
    return [row[number] for row in table.cells]


def _columns(table: Table, number: int) -> str:
    """Return a column of numbers with room for the longest of them, and one of text behind it."""
    cells = [cell for cell in _cells(table, number) if _number(cell)]
    parts = [part for cell in cells if (part := _number(cell))]
    behind = r"@{\enspace}l" if spans_of(table, number) > 1 else ""
    if not parts:
        return f"c{behind}"
    sign = "-" if any(minus for minus, _, _ in parts) else ""
    whole, decimals = max(len(whole) for _, whole, _ in parts), max(len(digits) for *_, digits in parts)
    spread = max((len(re.sub(r"\D", "", cell.spread)) for cell in cells), default=0)
    form = f"{sign}{whole}.{decimals}" + (f"({spread})" if spread else "")
    return f"S[table-format={form}]{behind}"


def _heads(table: Table, number: int) -> str:
    name, span = escape(table.columns[number]), spans_of(table, number)
    return over(name, span) if span > 1 else f"{{{name}}}"


def _ours(cell: Cell, span: int) -> str:
    """Return a number for siunitx with its marks, or a text in braces."""
    found = _number(cell)
    if found is None:
        return over(text_of(cell), span) if span > 1 else f"{{{text_of(cell)}}}"
    sign, whole, decimals = found
    number = f"{'-' * bool(sign)}{whole}{f'.{decimals}' if decimals else ''}"
    number += f" +- {cell.spread.replace(',', '')}" if cell.spread else ""
    bold = r"\bfseries " if cell.best else ""
    if span == 1:
        return f"{bold}{number}{marks_of(cell)}"
    return f"{bold}{number} & {escape(rest_of(cell))}{marks_of(cell)}"


def _published(cell: Cell, span: int) -> str:
    text = small_published(cell)
    return over(text, span) if span > 1 else f"{{{text}}}"


_ALIGNED = CellForm(
    packages=r"\usepackage[T1]{fontenc} \usepackage{textcomp,booktabs,graphicx,siunitx} (siunitx 3)",
    setup=(
        r"\sisetup{separate-uncertainty=true, retain-zero-uncertainty=true, group-separator={,},",
        r"  group-minimum-digits=4, mode=text, reset-text-series=false, table-align-text-after=false}",
    ),
    spans=spans_of,
    columns=_columns,
    heads=_heads,
    ours=_ours,
    published=_published,
)
"""Numbers as siunitx reads them."""
