"""The style of figures: one font, thin lines, and few colours.

Lines are grey with one accent colour, or each has its own colour.

Matplotlib's user settings are ignored. Colour is never the only distinction: the accent is also wider or
bold, and lines differ in shade and dashes, so grey prints lose nothing. Text is measured in the font itself,
in points.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ....errors import replace_unprintable
from ....studies.text.units import abbreviate_all

if TYPE_CHECKING:
    from cycler import Cycler

    from ..curve import Line

ACCENT = "#d55e00"
"""Vermilion, alone beside greys: every kind of colour vision tells it from grey (Okabe and Ito 2008)."""

INK, DIM, FAINT, PALE = "#1a1a1a", "#6b6b6b", "#a8a8a8", "#cfcfcf"
"""Greys for text and marks, for explanations, for axes and other lines without data, and for backgrounds."""

LIGHT = "#a0a0a0"
"""The grey of lines, distinct from black and, in grey print, from the accent; too light for letters."""

Dash = str | tuple[float, tuple[float, ...]]

Stroke = tuple[str, Dash, float]
"""Colour, dashes and width of a line."""

_GREY_STROKES: tuple[Stroke, ...] = (
    ("#1a1a1a", "-", 1.5),
    (LIGHT, "-", 1.5),
    ("#1a1a1a", (0, (4, 1.5)), 1.3),
    (LIGHT, (0, (4, 1.5)), 1.3),
    ("#4d4d4d", (0, (1, 1)), 1.5),
    (LIGHT, (0, (6, 1.5, 1, 1.5)), 1.3),
)
"""The strokes of lines beside an accented one, distinguishable without colour."""

_COLORED_STROKES: tuple[Stroke, ...] = (
    ("#1a1a1a", "-", 1.5),
    ("#0072b2", "-", 1.5),
    ("#d55e00", (0, (4, 1.5)), 1.5),
    ("#00805d", (0, (4, 1.5)), 1.5),
    ("#b8558e", (0, (1, 1)), 1.5),
    (LIGHT, (0, (6, 1.5, 1, 1.5)), 1.5),
)
"""The strokes of lines without an accented one: colours after Okabe and Ito, for every kind of colour vision.

Each colour is dark enough for letters. Lines of similar shade differ in dashes, for grey print.
"""

_ACCENTED: Stroke = (ACCENT, "-", 2.2)
"""The accented line is the widest, so that it is visible in grey print, too."""


def line_strokes(lines: Sequence[Line]) -> dict[str, Stroke]:
    """Return the stroke (colour, dashes and width) of each line of a panel, by the line's name.

    It depends on the number of the line's level among the levels without an accent.
    """
    accent = next((line.number for line in lines if line.accent), None)
    strokes = _COLORED_STROKES if accent is None else _GREY_STROKES
    alone = (INK, "-", 1.5) if len(lines) == 1 else None
    return {
        line.name: _ACCENTED
        if line.accent
        else alone or strokes[(line.number - (accent is not None and accent < line.number)) % len(strokes)]
        for line in lines
    }


def line_cycle() -> Cycler:
    """Return the strokes of lines without an accented one, for matplotlib axes that lines are drawn into."""
    from matplotlib.rcsetup import cycler  # noqa: PLC0415 -- slow to load, and data do without it

    colors, dashes, widths = zip(*_COLORED_STROKES, strict=True)
    return cycler(color=colors, linestyle=dashes, linewidth=widths)


TITLE, TEXT, TICK, SMALL = 8.5, 8.0, 7.0, 5.5
"""Font sizes in points: caption, names, ticks and notes, provenance."""

MAX_NAME_WIDTH = 150.0
"""The maximum width of a name, or of each of its lines, in points."""

FONT = "DejaVu Sans"  # comes with matplotlib, so it is the same everywhere

SETTINGS: dict[str, Any] = {
    "font.family": [FONT],
    "text.parse_math": False,  # a dollar in a name is a dollar
    "svg.fonttype": "path",  # looks the same without the font installed
    "svg.hashsalt": "activemem",  # without it, the ids in an SVG are random
    "pdf.fonttype": 42,  # searchable text
    "path.simplify": True,
    "axes.linewidth": 0.6,
    "axes.edgecolor": FAINT,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelcolor": DIM,
    "ytick.labelcolor": DIM,
    "xtick.labelsize": TICK,
    "ytick.labelsize": TICK,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.pad": 2.5,
    "ytick.major.pad": 2.5,
    "figure.facecolor": "white",
    "axes.facecolor": "none",
}
"""The settings that differ from matplotlib's defaults."""


@lru_cache(maxsize=4096)
def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """Return the width of a text in points."""
    from matplotlib.font_manager import FontProperties  # noqa: PLC0415 -- slow to load, and data do without it
    from matplotlib.textpath import text_to_path  # noqa: PLC0415 -- as above

    font = FontProperties(family=FONT, size=size, weight="bold" if bold else "normal")
    return text_to_path.get_text_width_height_descent(replace_missing_glyphs(text), font, ismath=False)[0]


def wrap_text(text: str, width: float, size: float, *, bold: bool = False) -> list[str]:
    """Split a text at spaces into lines of at most this width. A word that is too long gets its own line."""
    lines: list[str] = []
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and text_width(longer, size, bold=bold) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines or [""]


def crop_names(names: Iterable[str], width: float = MAX_NAME_WIDTH) -> dict[str, str]:
    """Map each name to its text, cut with an ellipsis if it is too wide. All texts stay different."""
    full = tuple(dict.fromkeys(names))
    short, length = list(full), max(map(len, full), default=0)
    while length and any(text_width(name, TEXT, bold=True) > width for name in short):
        length -= 1
        short = abbreviate_all(full, length)
    return dict(zip(full, short, strict=True))


def replace_missing_glyphs(text: str) -> str:
    """Replace each character that the font cannot show by �. The font lacks it, or it is unprintable."""
    from matplotlib.font_manager import FontProperties, findfont, get_font  # noqa: PLC0415 -- as above

    known = get_font(findfont(FontProperties(family=FONT)))
    return "".join(
        sign if known.get_char_index(ord(sign)) else "\N{REPLACEMENT CHARACTER}"
        for sign in replace_unprintable(text)
    )
