"""What the study found: its tables, with the published numbers beside ours."""

from __future__ import annotations

from ..render import to_html
from ..tables import table
from .markup import Html, Section, joined
from .material import Material


def tables(material: Material) -> Section | None:
    """Every table that the study asks for."""
    study = material.study
    if not study.tables or study.search is not None:
        return None
    made = [
        table(study, spec, material.outcomes, published=True, begun=material.standing.begun)
        for spec in study.tables
    ]
    return Section(name="tables", title="Tables", body=joined(Html(to_html(each)) for each in made))
