"""What the study found: its tables and figures, with the published numbers beside ours.

Both are made by what makes them on the command line, so that a page and a paper never differ. Figures are
pictures with their own style; their caption and notes are also the words for those who do not see them.
"""

from __future__ import annotations

from html import escape

from ..curve import Curve
from ..curves import curve
from ..render import to_html
from ..tables import table
from .markup import Html, Section, joined, picture
from .material import Material


def tables(material: Material) -> Section | None:
    """Every table that the study asks for."""
    study = material.study
    if not study.tables or study.search is not None:
        return None
    begun = material.standing.begun
    made = [table(study, spec, material.outcomes, published=True, begun=begun) for spec in study.tables]
    return Section(name="tables", title="Tables", body=joined(Html(to_html(each)) for each in made))


def figures(material: Material) -> Section | None:
    """Every figure that the study asks for, once there is something to draw."""
    study = material.study
    if not study.curves or not len(material.own):
        return None
    from ..figures import draw  # noqa: PLC0415  loads matplotlib

    metrics = material.store.metrics([trial.id for trial in study.trials()])
    made = [curve(study, spec, material.outcomes, metrics) for spec in study.curves]
    pieces = [_figure(each.name, picture(draw(each, "svg"), _words(each))) for each in made]
    return Section(name="figures", title="Figures", body=joined(pieces))


def _figure(name: str, body: Html) -> Html:
    """A picture with the anchor by which it can be pointed to."""
    return Html(f'<figure id="{escape(name)}">\n{body}\n</figure>')


def _words(figure: Curve) -> str:
    """A figure for those who do not see it."""
    return " ".join([f"{figure.caption}.", *figure.notes])
