"""The result of a query as text.

For people it is in columns, which are shortened: long texts are cropped, numbers have six digits. Markdown
and CSV have all digits.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import polars as pl

from ...reporting.sql import QueryError
from ...reporting.tables.render.markdown import escape
from ...studies.schema.factors import one_line
from ...studies.text.units import plural, side_by_side, truncate
from ..output import output_width

MAX_SHOWN = 1000
"""The maximum number of rows in aligned columns."""

_MAX_TEXT_WIDTH = 48
"""The width to which texts are cropped in columns."""


def format_answer(answer: pl.DataFrame, text_format: Literal["rich", "markdown", "csv"]) -> str:
    """Return the result of a query as text. The format `rich` has aligned columns for people."""
    if text_format == "csv":
        try:
            return answer.write_csv()
        except pl.exceptions.ComputeError as error:
            raise QueryError(f"CSV: {error}") from error
    if text_format == "rich":  # columns that do not fit the width follow below
        first = answer.head(MAX_SHOWN)
        blocks = side_by_side([_column(each) for each in first], width=output_width())
        shown = ["\n".join(block) + "\n" for block in blocks]
        more = f"; the first {MAX_SHOWN:,} are shown, --format csv prints all" * (
            first.height < answer.height
        )
        return "\n".join([*shown, f"({plural(answer.height, 'row')}{more})", ""])
    sides = ["--:" if series.dtype.is_numeric() else ":--" for series in answer]
    names = map(escape, answer.columns)
    rows = [names, sides, *((escape(_text(value)) for value in row) for row in answer.iter_rows())]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _column(series: pl.Series) -> list[str]:
    texts = [truncate(_text(value), _MAX_TEXT_WIDTH) for value in series]
    width = max(map(len, (series.name, *texts)))
    side = ">" if series.dtype.is_numeric() else "<"
    return [f"{text:{side}{width}}" for text in (series.name, *texts)]


def _text(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case float():
            return f"{value:.6g}"
        case datetime():
            return value.isoformat(sep=" ", timespec="seconds")
        case _:
            return one_line(str(value))
