"""A table as LaTeX for the package siunitx.

siunitx aligns numbers at their decimal points, even in bold.
"""

from __future__ import annotations

import re

from ..table import Cell, Table
from .latex import CellForm, escape, marks_of, over, render_float, rest_of, spans_of, text_of

_NUMBER = re.compile(r"(−?)([\d,]+)(?:\.(\d+))?")


def render(table: Table) -> str:
    """Return the same LaTeX float as `latex`, but with columns `S` for numbers."""
    return render_float(table, AlignedForm())


def _number(cell: Cell) -> tuple[str, str, str] | None:
    found = _NUMBER.fullmatch(cell.text)
    return (found[1], found[2].replace(",", ""), found[3] or "") if found else None


class AlignedForm(CellForm):
    """Writer of table cells as LaTeX code for siunitx.

    siunitx aligns numbers at their decimal points.

    Texts that are not numbers are in braces.
    """

    packages = f"{CellForm.packages[:-1]},siunitx}} (siunitx 3)"
    setup = (
        r"\sisetup{separate-uncertainty=true, retain-zero-uncertainty=true, group-separator={,},",
        r"  group-minimum-digits=4, mode=text, reset-text-series=false, table-align-text-after=false}",
    )

    def columns(self, table: Table, number: int) -> str:
        """Return the LaTeX column specification of one table column.

        Text after the numbers is in a column of its own.

        The number column has room for the longest number.
        """
        known = [(row[number], part) for row in table.cells if (part := _number(row[number]))]
        behind = r"@{\enspace}l" if spans_of(table, number) > 1 else ""
        if not known:
            return f"c{behind}"
        sign = "-" if any(minus for _, (minus, _, _) in known) else ""
        whole = max(len(digits) for _, (_, digits, _) in known)
        decimals = max(len(digits) for _, (*_, digits) in known)
        spread = max(len(re.sub(r"\D", "", cell.spread)) for cell, _ in known)
        return f"S[table-format={sign}{whole}.{decimals}{f'({spread})' if spread else ''}]{behind}"

    def head(self, text: str, span: int) -> str:
        """Return a column heading as LaTeX. In a column of numbers, siunitx needs braces around text."""
        return over(text, span) if span > 1 else f"{{{text}}}"

    def ours(self, cell: Cell, span: int) -> str:
        """Return a cell's number for siunitx, with footnote marks. A cell without a number has its text."""
        found = _number(cell)
        if found is None:
            return self.head(text_of(cell), span)
        sign, whole, decimals = found
        number = f"{'-' * bool(sign)}{whole}{f'.{decimals}' if decimals else ''}"
        number += f" +- {cell.spread.replace(',', '')}" if cell.spread else ""
        number = rf"\bfseries {number}" if cell.best else number
        return f"{number}{f' & {escape(rest_of(cell))}' if span > 1 else ''}{marks_of(cell)}"
