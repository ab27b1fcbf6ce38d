"""[[table]]: what a table shows of a study; each key with its type, its bounds and its default."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from .settings import Name, Section
from .statistics import Center, Spread, Test
from .wording import shown

Names = Annotated[tuple[str, ...], Field(strict=False)]
"""One name or several, as a text or a list of them."""


class GroupSpec(Section):
    """`groups`: the headings over rows and columns, each with the levels or metrics that stand under it."""

    rows: dict[str, list[Any]] = Field(default_factory=dict)
    columns: dict[str, list[Any]] = Field(default_factory=dict)


class PublishedSpec(Section):
    """`published`: the paper's table, and its names of our rows and columns where they differ.

    `columns` names levels or metrics; where a table has both, a metric and a level with a colon between.
    `show` puts the paper's numbers below ours, there with what ours are above them, or in columns.
    """

    table: str | None = None
    rows: dict[str, str] = Field(default_factory=dict)
    columns: dict[str, str] = Field(default_factory=dict)
    show: Literal["below", "difference", "columns"] = "below"


class TableSpec(Section):
    """`[[table]]`: a factor in rows, another or metrics in columns, and what each cell says of its trials.

    `value` is a metric, or several that stand side by side. `select` has a level, or a list of them, for
    factors that are not shown whole. `over` names factors that a cell averages over like seeds, or picks its
    best level of: by its first metric. `best` makes bold the best of a column with all that print like it, or
    all that `test` cannot tell apart from it. `baseline` is the row that the others' differences are from.
    """

    name: Name
    rows: str
    columns: str | None = None
    value: Names
    caption: str | None = None
    published: PublishedSpec = PublishedSpec()
    center: Center = "mean"
    spread: Spread = "sd"
    best: Literal["shown", "test"] = "shown"
    test: Test = "permutation"
    baseline: Any = None
    groups: GroupSpec = GroupSpec()
    select: dict[str, Any] = Field(default_factory=dict)
    over: Names = ()
    pick: Literal["best"] | None = None
    digits: dict[str, Annotated[int, Field(ge=0, le=12)]] = Field(default_factory=dict)

    @field_validator("value", "over", mode="before")
    @classmethod
    def listed(cls, names: object) -> object:
        """A name by itself as a list of one."""
        if isinstance(names, str):
            return (names,)
        if not isinstance(names, list | tuple):
            raise ValueError(f"expected a text or a list of texts, got {shown(names)}")
        return names

    @field_validator("value")
    @classmethod
    def some(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        """At least one metric."""
        if not names:
            raise ValueError("expected a metric, got an empty list")
        return names

    @field_validator("published", mode="before")
    @classmethod
    def named(cls, table: object) -> object:
        """A table's name by itself as all that is said of it."""
        return {"table": table} if isinstance(table, str) else table

    @property
    def printed(self) -> str:
        """The name of the paper's table."""
        return self.published.table or self.name
