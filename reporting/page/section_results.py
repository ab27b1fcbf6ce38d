"""What the study found: its tables and figures, with the published numbers beside ours.

Both are made by what makes them on the command line, so that a page and a paper never differ. Figures are
pictures with their own style; their caption and notes are also the words for those who do not see them.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..curves.build import build_curve
from ..tables.build import build_table
from ..tables.render import html
from .inputs import PageInputs


def table_values(inputs: PageInputs) -> Mapping[str, object] | None:
    """Every table that the study asks for."""
    study = inputs.study
    if not study.tables or study.search is not None:
        return None
    begun = inputs.status.started
    made = [build_table(study, spec, inputs.outcomes, published=True, begun=begun) for spec in study.tables]
    return {"tables": [html.render(each) for each in made]}


def figure_values(inputs: PageInputs) -> Mapping[str, object] | None:
    """Every figure that the study asks for, once there is something to draw."""
    study = inputs.study
    if not study.curves or not len(inputs.own_outcomes):
        return None
    from ..curves.draw import draw  # noqa: PLC0415  loads matplotlib

    metrics = inputs.store.metrics([trial.id for trial in study.trials])
    made = [build_curve(study, spec, inputs.outcomes, metrics) for spec in study.curves]
    return {"figures": [(each, draw(each, "svg").decode()) for each in made]}
