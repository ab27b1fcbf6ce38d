"""[[table]]: what a table shows of a study; each key with its type, its bounds and its default."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, ValidationInfo, field_validator

from ..schema.settings import Name, Names
from ..text.strict_model import StrictModel

Center = Literal["mean", "median", "iqm"]
"""How several values are summarised: by their mean, their median, or the mean of their middle half."""

Spread = Literal["sd", "se", "ci"]
"""What follows a centre: a standard deviation, a standard error, or a confidence interval."""


Significance = Literal["star", "stars", "p", "none"]
"""How the p of a difference is told: by one star, by up to three, by itself, or not."""


class GroupSpec(StrictModel):
    """`groups`: the headings over rows and columns, each with the levels or metrics under it."""

    rows: dict[str, list[Any]] = Field(default={})
    """headings of rows, each with a list of levels"""
    columns: dict[str, list[Any]] = Field(default={})
    """headings of columns, each with a list of levels or metrics"""


class PublishedSpec(StrictModel):
    """`published`: the paper's table, and its names of our rows and columns where they differ."""

    table: str | None = None
    """the paper's table; by default the one of this name"""
    rows: dict[str, str] = Field(default={})
    """the paper's names of rows, by level, where they do not follow from the blocks"""
    columns: dict[str, str] = Field(default={})
    """the paper's names of columns, by level, metric or `"metric:level"`"""
    show: Literal["below", "difference", "columns"] = "below"
    """where the paper's numbers are: below ours, below with our difference from them, or in columns"""


class TableSpec(StrictModel):
    """`[[table]]`: a factor in rows, another or metrics in columns, and what each cell says of its trials."""

    kind: Literal["cells"] = "cells"
    """a table of cells, which these keys describe; `effects` has keys of its own"""
    name: Name
    """what `--table` calls it"""
    rows: str
    """the factor whose levels are rows, or `"changes"`: the baseline, and cells by what differs from it"""
    columns: str | None = None
    """the factor whose levels are columns; without one, the metrics are the columns"""
    value: Names
    """a metric or a cost, or a list of them, shown side by side"""
    caption: str | None = None
    """how the caption begins; by default with the metric's title"""
    published: PublishedSpec = PublishedSpec()
    """the paper's table, as a text, or with these keys"""
    center: Center = "mean"
    """how the values of all seeds are summarised; iqm is the interquartile mean"""
    spread: Spread = "sd"
    """what follows it: standard deviation, standard error, or 95 % confidence interval"""
    best: Literal["shown", "test"] = "shown"
    """which values are bold: all that are printed like the best, or all beside which no other is
    significantly better"""
    baseline: Any = None
    """the row that the differences of all others are shown from; of `changes` levels of factors, where
    they are not the study's baseline"""
    against: Literal["baseline", "previous"] | None = None
    """what the differences of `changes` are from: the baseline, or the row before, as they are where the
    design takes one step after the other"""
    significance: Significance = "star"
    """what follows a difference from the baseline: star where p < 0.05 after correction, stars for 0.05, 0.01
    and 0.001, p itself, or none"""
    smallest_difference: dict[str, Annotated[float, Field(gt=0, allow_inf_nan=False)]] = Field(default={})
    """the smallest difference that matters, by metric, or as a number where there is one: what is shown to be
    smaller has ≈, and `study run --until-decided` adds seeds where neither that nor a difference is shown"""
    groups: GroupSpec = GroupSpec()
    """headings over rows and columns"""
    select: dict[str, Any] = Field(default={})
    """for a factor, the level or the list of levels that is kept"""
    over: Names = ()
    """factors over which a cell is aggregated, besides its seeds"""
    pick: Literal["best"] | None = None
    """each cell shows its best level of `over` by the first metric, instead of the mean over all"""
    otherwise: str | None = None
    """a metric that is shown in parentheses in cells without a `value`"""
    digits: dict[str, Annotated[int, Field(ge=0, le=12)]] = Field(default={})
    """decimals by metric, where they are not the metric's own"""

    @field_validator("value")
    @classmethod
    def check_not_empty(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        """At least one metric."""
        if not names:
            raise ValueError("expected a metric, got an empty list")
        return names

    @field_validator("published", mode="before")
    @classmethod
    def expand_table_name(cls, table: object) -> object:
        """A table's name, given instead of a table of keys."""
        return {"table": table} if isinstance(table, str) else table

    def margin(self, metric: str) -> float | None:
        """The smallest difference in a metric that matters; None if the table does not say."""
        return self.smallest_difference.get(metric)

    @field_validator("smallest_difference", mode="before")
    @classmethod
    def expand_number(cls, found: object, info: ValidationInfo) -> object:
        """A number, given instead of a table with the one metric that is shown."""
        metrics = info.data.get("value", ())
        if not isinstance(found, float | int) or isinstance(found, bool):
            return found
        if len(metrics) != 1:
            own = ", ".join(f"{name} = {found:g}" for name in metrics)
            raise ValueError(f"expected one for each metric, as in {{ {own} }}, got {found:g} for all")
        return {metrics[0]: float(found)}

    @property
    def published_table(self) -> str:
        """The name of the paper's table."""
        return self.published.table or self.name
