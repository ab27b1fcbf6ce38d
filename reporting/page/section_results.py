"""What the study found: its tables and figures, with the published numbers beside ours.

Both are made by what makes them on the command line, so that a page and a paper never differ. Figures are
pictures with their own style; their caption and notes are also the words for those who do not see them.
"""

from __future__ import annotations

from html import escape

from ..curves.build import build_curve
from ..curves.curve import Curve
from ..tables.build import build_table
from ..tables.render import to_html
from .html import Html, PageSection, join_html, svg_image
from .inputs import PageInputs


def tables(inputs: PageInputs) -> PageSection | None:
    """Every table that the study asks for."""
    study = inputs.study
    if not study.tables or study.search is not None:
        return None
    begun = inputs.status.started
    made = [build_table(study, spec, inputs.outcomes, published=True, begun=begun) for spec in study.tables]
    return PageSection(name="tables", title="Tables", body=join_html(Html(to_html(each)) for each in made))


def figures(inputs: PageInputs) -> PageSection | None:
    """Every figure that the study asks for, once there is something to draw."""
    study = inputs.study
    if not study.curves or not len(inputs.own_outcomes):
        return None
    from ..curves.draw import draw  # noqa: PLC0415  loads matplotlib

    metrics = inputs.store.metrics([trial.id for trial in study.trials()])
    made = [build_curve(study, spec, inputs.outcomes, metrics) for spec in study.curves]
    pieces = [_figure(each.name, svg_image(draw(each, "svg"), _alt_text(each))) for each in made]
    return PageSection(name="figures", title="Figures", body=join_html(pieces))


def _figure(name: str, body: Html) -> Html:
    """A picture with the anchor by which it can be pointed to."""
    return Html(f'<figure id="{escape(name)}">\n{body}\n</figure>')


def _alt_text(figure: Curve) -> str:
    """A figure for those who do not see it."""
    return " ".join([f"{figure.caption}.", *figure.notes])
