"""The result of a query as text.

For people it is in columns, which are shortened: long texts are cropped, numbers have six digits. Markdown
and CSV have all digits.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import polars as pl

from ...reporting.sql import QueryError
from ...studies.schema.factors import one_line
from ...studies.text.units import plural, side_by_side, truncate
from ..output import output_width

_MAX_TEXT_WIDTH = 48
"""The width to which texts are cropped in columns."""


def format_answer(answer: pl.DataFrame, text_format: Literal["rich", "markdown", "csv"]) -> str:
    """Return the result of a query as text. The format `rich` has aligned columns for people."""
    match text_format:
        case "rich":
            return format_columns(answer, output_width())
        case "markdown":
            return format_markdown(answer)
        case "csv":
            return _csv(answer)


def format_columns(answer: pl.DataFrame, width: int) -> str:
    """Format a query's result in aligned columns. Columns that do not fit the width follow below."""
    blocks = [
        "\n".join(block) + "\n" for block in side_by_side([_column(each) for each in answer], width=width)
    ]
    return "\n".join([*blocks, f"({plural(answer.height, 'row')})", ""])


def format_markdown(answer: pl.DataFrame) -> str:
    """Return a Markdown table, with numbers on the right and escaped pipes."""
    sides = ["--:" if series.dtype.is_numeric() else ":--" for series in answer]
    rows = [answer.columns, sides, *([_text(value) for value in row] for row in answer.iter_rows())]
    return "\n".join(
        [
            "| " + " | ".join(cell.replace("\\", "\\\\").replace("|", "\\|") for cell in row) + " |"
            for row in rows
        ]
        + [""]
    )


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


def _csv(answer: pl.DataFrame) -> str:
    try:
        return answer.write_csv()
    except pl.exceptions.ComputeError as error:
        raise QueryError(f"CSV: {error}") from error
