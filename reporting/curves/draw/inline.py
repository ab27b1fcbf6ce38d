"""A figure as an element of an HTML page, whose marks show their values.

The element has no attribute `style`, which strict pages forbid, and no name that another figure has.
"""

from __future__ import annotations

import math
import re
from html import escape
from itertools import islice

from ....errors import replace_unprintable
from ..curve import Curve
from .figure import draw_with_areas

MAX_HOVER_AREAS = 1000
"""The maximum number of marks of a figure that show their values, since each takes about 150 bytes."""

_UNUSED = re.compile(
    r"^.*?(?=<svg )|<title>.*?</title>|<metadata>.*?</metadata>|<defs>\s*<style.*?</style>\s*</defs>"
    r"|<!--.*?-->|(?<=<g) id=\"[^\"]*\"| xmlns(:xlink)?=\"[^\"]*\"| version=\"[^\"]*\"|\n\s*",
    re.DOTALL,
)
_STYLE = re.compile(r' style="([^"]*)"')
_NAME = re.compile(r'(?<= id=")|(?<=href="#)|(?<=url\(#)')


def draw_inline(curve: Curve) -> str:
    """Return a figure as an SVG element for a page, with a `<title>` over each mark.

    A browser shows the title while the pointer is on the mark, without a script. If there are more than
    MAX_HOVER_AREAS marks, only every second, third, … of them has a title.
    """
    data, areas = draw_with_areas(curve, "svg")
    height = float(re.findall(rb'viewBox="0 0 \S+ (\S+)"', data)[0])
    svg = _UNUSED.sub(lambda found: " " if found[0].startswith("\n") else "", data.decode())
    svg = _STYLE.sub(lambda style: _attributes(style[1]), svg)
    svg = _NAME.sub(f"{escape(curve.name)}.", svg).replace("> <", "><")
    words = escape(replace_unprintable(" ".join((f"{curve.caption}.", *curve.notes))))
    # what matplotlib's own style sheet says of all elements
    svg = svg.replace(
        "<svg ", f'<svg role="img" aria-label="{words}" stroke-linejoin="round" stroke-linecap="butt" ', 1
    )
    step = max(math.ceil(len(areas) / MAX_HOVER_AREAS), 1)
    titles = "".join(
        f'<rect x="{area.left:.1f}" y="{height - area.bottom - area.height:.1f}"'
        f' width="{area.width:.1f}" height="{area.height:.1f}">'
        f"<title>{escape(replace_unprintable(area.words))}</title></rect>"
        for area in islice(areas, 0, None, step)
    )
    marks = f'<g fill="none" pointer-events="all">{titles}</g>' if titles else ""
    return f"{svg.rstrip().removesuffix('</svg>')}{marks}</svg>"


def _attributes(style: str) -> str:
    parts = (part.partition(":") for part in style.split(";") if part.strip())
    return "".join(f' {name.strip()}="{value.strip()}"' for name, _, value in parts)
