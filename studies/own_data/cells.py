"""Cells of a file's columns, row by row, and their places."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ...diagnostics import MAX_QUOTE_LENGTH, hint, printable
from ..catalog.datasets import CorpusError
from ..text.units import plural

MOST_FAULTS = 5
"""The number of a file's faults that are reported; of more there is a count."""

_MAX_NAMED = 12


class RowsError(CorpusError):
    """Faults of a file's rows: `faults` has the first of them and how many more there are."""

    def __init__(self, faults: Sequence[str]) -> None:
        more = len(faults) - MOST_FAULTS
        self.faults = (*faults[:MOST_FAULTS], *([f"… and {more:,} more like these"] if more > 0 else []))
        super().__init__("\n".join(self.faults))


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """The values of some columns, of each as many as there are rows.

    `numbers` says where the rows stand, as lines of a text or as rows of a table, from 1.
    """

    unit: str
    numbers: Sequence[int]
    columns: Sequence[Sequence[Any]]


class ColumnFaults:
    """The faults of the rows of a file: of each kind in a column the first, and how many rows have it."""

    def __init__(self, cells: Cells) -> None:
        self._cells = cells
        self._first: dict[tuple[str, str], str] = {}
        self._counts = Counter[tuple[str, str]]()

    def __bool__(self) -> bool:
        return bool(self._first)

    def add(self, index: int, column: str, message: str, kind: str = "") -> None:
        """Report a fault of a row; messages with the same words before `, got` are of one kind."""
        key = column, kind or message.partition(", got")[0]
        place = f"{self._cells.unit} {self._cells.numbers[index]:,}, column {column}"
        self._first.setdefault(key, f"{place}: {message}")
        self._counts[key] += 1

    def __iter__(self) -> Iterator[str]:
        for key, fault in self._first.items():
            more = self._counts[key] - 1
            yield f"{fault} ({plural(more, f'more {self._cells.unit}')} like this)" if more else fault


def missing_column(wanted: str, found: Sequence[str], more: int = 0) -> str:
    """Say that a file lacks a column, with the names that it has; `more` are not among those given."""
    names = ", ".join(quoted(name) for name in found[:_MAX_NAMED])
    more += max(0, len(found) - _MAX_NAMED)
    names += f" and {more:,} more" if more else ""
    near = hint(wanted, found) if len(found) > _MAX_NAMED else ""
    return f"expected a column '{wanted}', got {names or 'none'}{near}"


def quoted(text: str) -> str:
    """Return the beginning of a file's text in one line, with stand-ins for what cannot be printed."""
    shown = printable(text[: MAX_QUOTE_LENGTH + 1])
    return shown if len(text) <= MAX_QUOTE_LENGTH else f"{shown[: MAX_QUOTE_LENGTH - 1]}…"
