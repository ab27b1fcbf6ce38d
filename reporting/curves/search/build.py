"""A figure of a search, by its kind, with the sentences around it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from ....studies.catalog.metrics import Metric, find_metric
from ....studies.planning.probe_targets import probe_command
from ....studies.presentation.metric_words import difference_sentence, with_true_title
from ....studies.presentation.search import FrontSpec, IncumbentSpec, SearchCurveSpec
from ....studies.schema.level_names import one_line
from ....studies.searches.best_points import comparison_note
from ....studies.searches.points import SearchPoints, find_points
from ....studies.searches.words import beyond_sentence
from ....studies.study import Study
from ....studies.text.units import plural
from ...outcomes import omitted_trials
from ...provenance import provenance
from ..curve import Axis, Curve, Panel, PointTrace
from .progress import front_panel, trace_panel

_COST = "parameters"


@dataclass(frozen=True, slots=True, kw_only=True)
class _FigureParts:
    """What a kind of figure has of its own."""

    caption: str
    notes: tuple[str, ...]
    x: Axis
    y: Axis
    panels: tuple[Panel, ...]


def search_figure(study: Study, spec: SearchCurveSpec, outcomes: pl.DataFrame) -> Curve:
    """The figure that `spec` describes, over all that the search has tried in `outcomes`."""
    found = find_points(study, outcomes, (*spec.value, _COST))
    settings = [trial.settings for trial in found.trained]
    metrics = [with_true_title(find_metric(name), settings)[0] for name in _metrics(spec, found)]
    if isinstance(spec, IncumbentSpec):
        drawn = _incumbent(study, spec, found, metrics[0])
    else:
        drawn = _front(found, metrics)
    difference = difference_sentence(metrics, settings)
    return Curve(
        name=spec.name,
        caption=one_line(spec.caption or drawn.caption).removesuffix("."),
        notes=(*_notes(study, found, drawn.notes), *([difference] if difference else [])),
        x=drawn.x,
        y=drawn.y,
        panels=drawn.panels,
        provenance=provenance([trial.id for trial in found.trained], outcomes),
    )


def _metrics(spec: SearchCurveSpec, found: SearchPoints) -> tuple[str, ...]:
    """The metrics that are shown: those of the file, or what is optimised."""
    if spec.value:
        return spec.value
    goals = tuple(goal.metric for goal in found.goals)
    return tuple(dict.fromkeys((*goals, _COST)))[:2] if isinstance(spec, FrontSpec) else goals[:1]


def _incumbent(study: Study, spec: IncumbentSpec, found: SearchPoints, metric: Metric) -> _FigureParts:
    """The best value after each point."""
    title, panel = _title(metric), trace_panel(study, found, metric, hours=spec.x == "hours")
    start = panel.content.baseline if isinstance(panel.content, PointTrace) else None
    band = start is not None and start.high is not None
    chance = ("Dashed: the baseline; band: where the best of points that are no better comes by chance.",)
    return _FigureParts(
        caption=f"{title} of the best point so far",
        notes=("Dot: a point; line: the best so far.", *(chance if band else ())),
        x=Axis(title="Points that have ended" if spec.x == "points" else "Hours of training"),
        y=Axis(title=title),
        panels=(panel,),
    )


def _front(found: SearchPoints, metrics: Sequence[Metric]) -> _FigureParts:
    """The points by two numbers, with their front."""
    up, across = metrics
    titles = _title(up), _title(across)
    comma = "," if "," in titles[0] else ""
    return _FigureParts(
        caption=f"{titles[0]}{comma} against {titles[1][:1].lower()}{titles[1][1:]}",
        notes=("Dot: a point; steps: the front that no point passes.",),
        x=Axis(title=titles[1]),
        y=Axis(title=titles[0]),
        panels=(front_panel(found, up, across),),
    )


def _title(metric: Metric) -> str:
    return one_line(metric.axis_title or metric.title)


def _notes(study: Study, found: SearchPoints, own: Sequence[str]) -> Iterator[str]:
    """What marks are, over how many points and seeds, and what is left out."""
    counts = sorted({point.seeds for point in found.complete})
    if not counts:
        yield "Nothing to draw: no point of it is done."
    else:
        yield from own
        seeds = (
            "one seed"
            if counts[-1] == 1
            else f"the mean of {'–'.join(map(str, sorted({counts[0], counts[-1]})))} seeds"
        )
        yield f"{plural(len(found.complete), 'point')}, each {seeds}."
    if note := comparison_note(study):
        yield f"{note[:1].upper()}{note[1:]}."
    yield from beyond_sentence(found)
    yield from omitted_trials(found.gaps, len(found.trained), probe_command(study.name))
