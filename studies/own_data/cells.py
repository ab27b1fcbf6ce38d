"""What columns of a file have, row by row, and where each row stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..catalog.datasets import CorpusError

MOST_FAULTS = 5
"""So many faults of a file are told; of more, how many there are."""


class RowsError(CorpusError):
    """What is wrong with the rows of a file: `faults` has the first of them, and how many more there are."""

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


def missing_column(wanted: str, found: Sequence[str]) -> str:
    """What is wrong with a file that lacks a column."""
    return f"expected a column '{wanted}', got {', '.join(found) or 'none'}"
