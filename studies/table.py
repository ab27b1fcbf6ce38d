"""What a table is: plain frozen data with every number, word and footnote in place, for any renderer."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ..errors import ActivememError
from .published import Published


class TableError(ActivememError):
    """A table cannot be made as it is specified; the message has every fault."""


class Status(StrEnum):
    """How far a cell's trials came."""

    DONE = "done"  # every trial has a value
    PARTIAL = "partial"  # some have
    FAILED = "failed"  # none has, at least one failed
    PRUNED = "pruned"  # none has, none failed, at least one was stopped early
    MISSING = "missing"  # nothing is in the store
    UNPLANNED = "unplanned"  # the study has no such trial


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One combination of a row and a column, over all its trials.

    `shown` is the mean's text, or a word in its place; `spread` the deviation's text, empty below two values.
    `deviation` is the sample standard deviation, divided by count - 1.
    """

    status: Status
    mean: float | None = None
    deviation: float | None = None
    count: int = 0
    shown: str = ""
    spread: str = ""
    best: bool = False
    marks: tuple[str, ...] = ()  # of its footnotes
    published: Published | None = None

    @property
    def text(self) -> str:
        """Mean and deviation as one text."""
        return f"{self.shown} ± {self.spread}" if self.spread else self.shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Footnote:
    """What a mark beside a cell means."""

    mark: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows by columns of cells, with the sentences around them; `corner` names what the rows are."""

    name: str
    caption: tuple[str, ...]
    corner: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: tuple[tuple[Cell, ...], ...]  # by row, then column
    footnotes: tuple[Footnote, ...]
    provenance: str
