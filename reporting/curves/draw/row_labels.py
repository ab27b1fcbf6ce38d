"""Names at the left of rows, from top to bottom, long ones on two lines."""

from __future__ import annotations

from collections.abc import Sequence

from .panel import Plot
from .style import ACCENT, INK, MAX_NAME_WIDTH, TEXT, text_width, wrap_text

_GAP = 5.0


def measure_names(names: Sequence[str]) -> tuple[float, float]:
    """The width that the names need with the gap to the plot, and the height of a row."""
    lines = [wrap_text(name, MAX_NAME_WIDTH, TEXT, bold=True) for name in names]
    width = max((text_width(line, TEXT, bold=True) for each in lines for line in each), default=0.0)
    max_lines = max((len(each) for each in lines), default=1)
    return width + _GAP, 6.0 + 9.5 * max_lines


def row_positions(count: int) -> list[float]:
    """Where each row stands along the side."""
    return [float(count - 1 - number) for number in range(count)]


def label_rows(plot: Plot, names: Sequence[tuple[str, bool]]) -> None:
    """Write the name of every row, the accented one in colour and bold."""
    for (name, accent), row in zip(names, row_positions(len(names)), strict=True):
        plot.write(
            -_GAP,
            plot.y(row),
            "\n".join(wrap_text(name, MAX_NAME_WIDTH, TEXT, bold=True)),
            ha="right",
            multialignment="right",
            linespacing=1.1,
            color=ACCENT if accent else INK,
            weight="bold" if accent else "normal",
        )
