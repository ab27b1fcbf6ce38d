"""Drawing of a whole figure: caption, panels side by side, notes and provenance.

All sizes are in points. Each kind measures and draws its panels; everything around them is the same for all.
Text sizes come from the font, not from a back end, so that SVG, PNG and PDF agree.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from ..curve import Curve
from ..figure_format import FigureFormat
from .panel import HoverArea, Plot, write
from .style import ACCENT, DIM, INK, SETTINGS, SMALL, TEXT, TICK, TITLE, crop_names, wrap_text

WIDTH = 460.0
"""The width of a figure in points, which is that of an article's text; a single panel may be narrower."""

_EDGE, _GAP, _BETWEEN = 4.0, 12.0, 10.0  # around the figure, between columns and between rows of panels
_HEAD = 13.0  # above a plot, for its title
_DPI = 200
_CENTERED: dict[str, str] = {"ha": "center", "va": "center"}

_PATH, _NUMBER = re.compile(rb' d="[^"]*"'), re.compile(rb"-?[0-9]+\.[0-9]{3,}")

_REPRODUCIBLE_METADATA: dict[FigureFormat, dict[str, Any]] = {
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "png": {"Software": None},
}
"""Metadata without entries that would differ between two files of the same figure."""


def draw(curve: Curve, file_format: FigureFormat) -> bytes:
    """Draw a figure, and return the bytes of its file.

    The file is an SVG with text as paths, a PDF with searchable text, or a PNG at 200 dpi. It has no date,
    and matplotlib's user settings are ignored, so that a figure always gives the same file.
    """
    return draw_with_areas(curve, file_format)[0]


def draw_with_areas(curve: Curve, file_format: FigureFormat) -> tuple[bytes, list[HoverArea]]:
    """Draw a figure. Return the bytes of its file, and the areas of its marks with their values."""
    areas = list[HoverArea]()
    with _own_settings():
        figure = _figure(curve, areas)
        file = io.BytesIO()
        about = _REPRODUCIBLE_METADATA[file_format] | (
            {"Title": curve.caption} if curve.caption and file_format != "png" else {}
        )
        figure.savefig(file, format=file_format, dpi=_DPI if file_format == "png" else 72, metadata=about)
    data = file.getvalue()
    return _PATH.sub(_shorter, data) if file_format == "svg" else data, areas


def measure_width(curve: Curve) -> float:
    """Return the width of a figure's file in points, without writing it."""
    with _own_settings():
        return 72 * _figure(curve, []).get_figwidth()


@contextmanager
def _own_settings() -> Iterator[None]:
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(SETTINGS)  # pyright: ignore[reportCallIssue, reportArgumentType] -- names of settings are texts
        yield


def _shorter(path: re.Match[bytes]) -> bytes:
    return b" " + b" ".join(_NUMBER.sub(lambda number: b"%.2f" % float(number[0]), path[0]).split())


def _figure(curve: Curve, areas: list[HoverArea]) -> Figure:
    contents = [panel.content for panel in curve.panels]
    measure = type(contents[0]).measure
    own = [measure(curve, [content]) for content in contents] if curve.own_scales else []
    need = measure(curve, contents)
    need = replace(need, left=max((each.left for each in own), default=need.left))
    # as few rows of panels as fit the width, with the panels spread evenly over them
    names, count = TEXT + 6.0 if curve.columns else 0.0, len(contents)
    inner = WIDTH - 2 * _EDGE - need.end_margin - need.left - names
    gap = _GAP + (need.left if curve.own_scales else 0.0)
    limit = int((inner + gap) // (need.min_width + need.right + gap)) if count > 1 else 1
    columns = curve.columns or math.ceil(count / math.ceil(count / max(min(limit, count), 1)))
    gaps = (columns - 1) * gap
    plot_width = min((inner - columns * need.right - gaps) / columns, need.width)
    width = names + need.left + columns * (plot_width + need.right) + gaps + need.end_margin + 2 * _EDGE
    width = max(width, 0.6 * WIDTH)
    text = width - 2 * _EDGE
    head = _HEAD if count > 1 else 4.0  # above each plot
    pitch = head + need.height + need.bottom + _BETWEEN
    # the texts above and below the panels, with their sizes
    caption = wrap_text(curve.caption, text, TITLE, bold=True) if curve.caption else []
    below = [(line, TICK) for line in wrap_text(" ".join(curve.notes), text, TICK)]
    below += [(line, SMALL) for line in wrap_text(curve.provenance, text, SMALL)]
    below = below if curve.caption or curve.notes or curve.provenance else []
    is_titled = contents[0].shows_title or curve.y.title.casefold() in curve.caption.casefold()
    subtitle, footer = "" if is_titled else curve.y.title, sum(1.35 * size for _, size in below)
    above = 1.35 * TITLE * len(caption) + (1.5 * TEXT if subtitle else 0) + 3
    height = 2 * _EDGE + above + math.ceil(count / columns) * pitch - _BETWEEN + 6 + footer

    figure = Figure(figsize=(width / 72, height / 72))
    FigureCanvasAgg(figure)
    y, top = height - _EDGE, height - _EDGE - above
    for line in caption:
        write(figure, _EDGE, y, line, size=TITLE, weight="bold", va="top")
        y -= 1.35 * TITLE
    if subtitle:
        write(figure, _EDGE, y - 1, subtitle, size=TEXT, color=DIM, va="top")
    titles = crop_names((panel.title for panel in curve.panels), plot_width + need.right)
    for number, panel in enumerate(curve.panels):
        row, column = divmod(number, columns)
        left = _EDGE + names + need.left + column * (plot_width + need.right + gap)
        bottom = top - row * pitch - head - need.height
        plot = Plot(
            figure=figure,
            axes=figure.add_axes((left / width, bottom / height, plot_width / width, need.height / height)),
            left=left,
            bottom=bottom,
            width=plot_width,
            height=need.height,
            first=column == 0 or curve.own_scales,
            last=number == min(columns, count) - 1,
            layout=replace(need, x=own[number].x, y=own[number].y) if own else need,
            title=" · ".join(filter(None, (panel.row, panel.title))),
            hover_areas=areas,
        )
        panel.content.draw(plot, curve)
        if panel.row and column == 0:
            middle = bottom + need.height / 2
            name = crop_names([panel.row], need.height + head)[panel.row]
            write(figure, _EDGE + TEXT / 2, middle, name, size=TEXT, weight="bold", rotation=90, **_CENTERED)
        if panel.title and (row == 0 or not panel.row):
            color = ACCENT if panel.content.is_accented else INK
            plot.write(0, need.height + 7, titles[panel.title], color=color)
    y = _EDGE + footer
    for line, size in below:
        write(figure, _EDGE, y, line, size=size, color=DIM, va="top")
        y -= 1.35 * size
    return figure
