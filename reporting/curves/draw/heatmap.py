"""Heat maps in greys, darker for higher, with the numbers in the cells or a scale beside them.

All panels share one scale of shades. A cell without a value is white and says why.
"""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.patches import PathPatch
from matplotlib.path import Path
from matplotlib.transforms import Affine2D

from ..curve import Curve, Matrix
from .axis_scale import Scale
from .panel import PanelLayout, Plot
from .row_labels import label_rows, measure_names
from .style import DIM, INK, TICK, text_width

_LIGHT, _DARK = 0.95, 0.15  # the shades of the lowest and the highest value
_STEEP = 55  # degrees of names that are wider than their columns
_MAX_SIDE = 240.0  # of a map without numbers, at most


def measure(curve: Curve, contents: Sequence[Matrix]) -> PanelLayout:
    """What a heat map needs: names at the left and below, room for the widest number in every cell.

    Names of columns that are wider than a cell are steep; a map without numbers has small square cells.
    """
    first = contents[0]
    down, across = max(len(first.rows), 1), max(len(first.columns), 1)
    name_width, pitch = measure_names(first.rows)
    numbers = [text for content in contents for row in content.texts for text in row]
    widest = max((text_width(name, TICK) for name in first.columns), default=0.0)
    if first.is_readable:
        cell = max(map(_wide, numbers), default=0.0) + 8
        cell = max(cell, min(widest + 6, 60.0))
        height = pitch * down
    else:
        cell = min(_MAX_SIDE / max(across, down), 10.0)
        height = cell * down
    width = cell * across
    shades = 20 + max(_wide(text) for _, text in first.ends)
    return PanelLayout(
        left=max(name_width, text_width(curve.y.title, TICK) + 4),
        right=2,
        end_margin=0 if first.is_readable else shades,
        bottom=(12 if widest <= cell else 0.8 * widest + 8) + 12,
        width=width,
        min_width=width,
        height=height,
        x=Scale(low=0, high=across),
        y=Scale(low=-0.5, high=down - 0.5),
    )


def _wide(text: str) -> float:
    """The width of a number in a cell, or beside the scale."""
    return text_width(text, TICK)


def draw(plot: Plot, content: Matrix, curve: Curve) -> None:
    """Draw the cells of a panel, the first row at the top.

    Cells of one shade are one path, for small files. Numbers shrink where they would be wider than cells.
    """
    plot.frame(x=False, y=False)
    low, high = (value for value, _ in content.ends)
    count, cells = len(content.rows), dict[str, list[Path]]()
    widest = max((_wide(text) for row in content.texts for text in row), default=1.0)
    size = min(TICK, TICK * (plot.width / max(len(content.columns), 1) - 2) / widest)
    for number, (values, texts) in enumerate(zip(content.values, content.texts, strict=True)):
        y = count - 1 - number
        for x, (value, text) in enumerate(zip(values, texts, strict=True)):
            share = None if value is None else (value - low) / (high - low) if high > low else 0.5
            shade = "white" if share is None else f"{_LIGHT + share * (_DARK - _LIGHT):.2f}"
            corner = Affine2D().translate(x, y - 0.5)
            cells.setdefault(shade, []).append(Path.unit_rectangle().transformed(corner))
            if content.is_readable:
                color = DIM if share is None else INK if share < 0.6 else "white"
                plot.axes.text(x + 0.5, y, text, size=size, color=color, ha="center", va="center")
    edge = {"edgecolor": "white", "linewidth": 1} if content.is_readable else {"linewidth": 0}
    for shade, places in sorted(cells.items()):
        plot.axes.add_patch(PathPatch(Path.make_compound_path(*places), facecolor=shade, **edge))
    _names(plot, content, curve)
    if plot.last and not content.is_readable:
        _scale(plot, [text for _, text in content.ends])


def _names(plot: Plot, content: Matrix, curve: Curve) -> None:
    """Write the names of columns and rows, every fifth if they are too many, and the titles of the axes."""
    cell = plot.width / max(len(content.columns), 1)
    flat = all(text_width(name, TICK) <= cell for name in content.columns)
    for x in content.pairs:
        plot.stroke([x * cell + 2, (x + 2) * cell - 2], [-2, -2], color=INK, linewidth=1.5)
    step = 1 if cell >= 9 else 5
    for x, name in list(enumerate(content.columns))[::step]:
        look = {"ha": "center"} if flat or step > 1 else {"rotation": _STEEP, "ha": "right"}
        plot.write((x + 0.5) * cell, -4, name, size=TICK, va="top", rotation_mode="anchor", **look)
    if plot.first:
        if step == 1:
            label_rows(plot, [(name, False) for name in content.rows])
        else:
            for y, name in list(enumerate(content.rows))[::step]:
                plot.write(-4, plot.y(len(content.rows) - 1 - y), name, size=TICK, ha="right")
        plot.write(-4, -plot.layout.bottom + 4, curve.y.title, size=TICK, color=DIM, ha="right")
    plot.write(plot.width, -plot.layout.bottom + 4, curve.x.title, size=TICK, color=DIM, ha="right")


def _scale(plot: Plot, ends: Sequence[str]) -> None:
    """Draw the shades beside a map, with the numbers of both ends."""
    steps, height = 24, min(plot.height, 80.0)
    for step in range(steps):
        shade = str(_LIGHT + step / (steps - 1) * (_DARK - _LIGHT))
        plot.stroke(
            [plot.width + 11] * 2,
            [height * step / steps, height * (step + 1.02) / steps],
            color=shade,
            linewidth=6,
            solid_capstyle="butt",
        )
    for text, y in zip(ends, (3.0, height - 3), strict=True):
        plot.write(plot.width + 16, y, text, size=TICK, color=DIM)
