"""Tables and figures for notebooks and files."""

from __future__ import annotations

from dataclasses import dataclass, fields
from html import escape
from typing import TYPE_CHECKING, get_args

from ..diagnostics import hint, replace_unprintable
from ..errors import describe_value
from ..studies.planning.plan import Plan
from ..studies.study import Study
from .curves import FigureFormat
from .curves.curve import Curve, CurveError
from .plan_text import MachineNotes, format_plan
from .tables.render import render
from .tables.table import Table
from .tables.tidy import tidy_frame

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, slots=True)
class TableDisplay:
    """A table that shows itself: `table` has its cells."""

    table: Table

    def frame(self) -> pl.DataFrame:
        """Return one row a cell with all its digits: row, column, value, spread, n and what else is known."""
        return tidy_frame(self.table)

    def render(self, form: str = "rich") -> str:
        """Return the table in a format of `reporting.tables.render`: rich is plain columns for a terminal."""
        return render(self.table, form)

    def __repr__(self) -> str:
        return repr(self.table)

    def __str__(self) -> str:
        return self.render()

    def _repr_html_(self) -> str:
        return self.render("html")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PlanDisplay(Plan):
    """A plan that shows itself as `activemem study plan` prints it."""

    study: Study

    @classmethod
    def of(cls, study: Study, plan: Plan) -> PlanDisplay:
        """Return the plan of a study."""
        return cls(study=study, **{field.name: getattr(plan, field.name) for field in fields(plan)})

    def __str__(self) -> str:
        return format_plan(self.study, self, MachineNotes.of_plan(self))

    def _repr_html_(self) -> str:
        return f"<pre>{escape(replace_unprintable(str(self)))}</pre>"


@dataclass(frozen=True, slots=True)
class CurveDisplay:
    """A figure that shows itself: `curve` has its points."""

    curve: Curve

    def render(self, form: FigureFormat = "svg") -> bytes:
        """Return the figure as svg, png or pdf."""
        if form not in (known := get_args(FigureFormat)):
            raise CurveError(
                f"form: expected {', '.join(known)}, got {describe_value(form)}{hint(str(form), known)}"
            )
        from .curves.draw.figure import draw  # noqa: PLC0415 -- loads matplotlib, which data does without

        return draw(self.curve, form)

    def __repr__(self) -> str:
        return repr(self.curve)

    def _repr_svg_(self) -> str:
        return self.render("svg").decode()
