"""A figure of a search, by its kind, with the sentences around it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from ....studies.catalog.metrics import Metric, find_metric
from ....studies.planning.probe_targets import probe_command
from ....studies.presentation.metric_words import difference_sentence, with_true_title
from ....studies.presentation.search import (
    DimensionsSpec,
    FrontSpec,
    IncumbentSpec,
    PlaneSpec,
    SearchCurveSpec,
)
from ....studies.schema.level_names import one_line
from ....studies.searches.best_points import comparison_note
from ....studies.searches.points import SearchPoints, find_points
from ....studies.searches.words import beyond_sentence
from ....studies.study import Study
from ....studies.text.units import plural
from ...outcomes import omitted_trials
from ...provenance import provenance
from ..curve import Axis, Curve, Panel, PointTrace
from .dimensions import parallel_panel, slice_panels
from .planes import contour_planes, rank_planes
from .progress import front_panel, hypervolume_panel, trace_panel

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
    match spec:
        case IncumbentSpec():
            drawn = _incumbent(study, spec, found, metrics[0])
        case FrontSpec():
            drawn = _front(spec, _searches(study, spec, found, outcomes), metrics)
        case DimensionsSpec():
            drawn = _dimensions(study, spec, found, metrics[0])
        case PlaneSpec():
            drawn = _planes(study, spec, found, metrics[0])
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


def _searches(
    study: Study, spec: FrontSpec, found: SearchPoints, outcomes: pl.DataFrame
) -> dict[str, SearchPoints]:
    """The points of this search and of the one that it is held against, by the names of both."""
    if spec.against is None or study.search is None:
        return {study.name: found}
    alone = study.search.model_copy(update={"warm_start": False})
    other = replace(study, name=spec.against, search=alone)
    return {study.name: found, spec.against: find_points(other, outcomes, (*spec.value, _COST))}


def _front(spec: FrontSpec, searches: Mapping[str, SearchPoints], metrics: Sequence[Metric]) -> _FigureParts:
    """The points by two numbers, or how their front grew."""
    up, across = metrics
    found = next(iter(searches.values()))
    titles = _title(up), _title(across)
    pair = f"{titles[0]}{',' if ',' in titles[0] else ''} against {titles[1][:1].lower()}{titles[1][1:]}"
    if spec.kind == "front":
        return _FigureParts(
            caption=pair,
            notes=("Dot: a point; steps: the front that no point passes.",),
            x=Axis(title=titles[1]),
            y=Axis(title=titles[0]),
            panels=(front_panel(found, up, across),),
        )
    of = " of both searches" if len(searches) > 1 else ""
    beside = "".join(
        f" Beside it {name}, a search of the same space, {_point_words(other)}."
        for name, other in searches.items()
        if other is not found
    )
    best = "1 would be a point best in both"
    return _FigureParts(
        caption=f"Hypervolume of the front of {up.name} and {across.name}",
        notes=(f"Of the box between the worst and the best of all points{of}; {best}.{beside}",),
        x=Axis(title="Points that have ended"),
        y=Axis(title="Hypervolume"),
        panels=(hypervolume_panel(searches, up, across),),
    )


def _point_words(found: SearchPoints) -> str:
    """How many points there are of another search."""
    return f"with {plural(len(found.complete), 'point')}" if found.complete else "of which no point is done"


def _dimensions(study: Study, spec: DimensionsSpec, found: SearchPoints, metric: Metric) -> _FigureParts:
    """Every point by its values."""
    title = _title(metric)
    names = spec.dimensions or tuple(study.dimensions)
    taken = [name for name in names if any(name in point.values for point in found.complete)]
    conditional = [name for name in taken if not all(name in point.values for point in found.complete)]
    if spec.kind == "slices":
        notes = ["Dot: a point; in colour: the best that takes the dimension."]
        panels = slice_panels(study, found, metric, taken)
    else:
        notes = ["Line: a point; dark: the best tenth; in colour: the best."]
        panels = (parallel_panel(study, found, metric, taken),)
    if conditional:
        below = "; below an axis: those that do not" if spec.kind == "parallel" else ""
        notes.append(f"Not every point takes {', '.join(map(one_line, conditional))}{below}.")
    return _FigureParts(
        caption=f"{title} by dimension"
        if spec.kind == "slices"
        else f"Points by {title[:1].lower()}{title[1:]}",
        notes=tuple(notes),
        x=Axis(title=""),
        y=Axis(title=title),
        panels=panels,
    )


def _planes(study: Study, spec: PlaneSpec, found: SearchPoints, metric: Metric) -> _FigureParts:
    """Every point by two of its values, and what is to be expected between them."""
    taken = [name for name in study.dimensions if any(name in point.values for point in found.complete)]
    names, title = spec.dimensions or tuple(taken[:2]), _title(metric)
    draw = contour_planes if spec.kind == "contour" else rank_planes
    planes = draw(study, found, metric, names)
    if planes.low is None or planes.high is None:
        notes = ["Dot: a point, darker the better it ranks among those of its panel; in colour: the best."]
    else:
        notes = [
            "Shade: what a forest of regression trees expects, on average over the other dimensions that all"
            f" points of the panel take, from {metric.format(planes.low)}, light, to"
            f" {metric.format(planes.high)}, dark.",
            "Dot: a point; in colour: the best.",
        ]
    if any(not {*names} <= {*point.values} for point in found.complete):
        notes.append("A panel has the points that take both of its dimensions.")
    return _FigureParts(
        caption=f"{title} by {' and '.join(map(one_line, names))}"
        if spec.kind == "contour"
        else f"Points by {' and '.join(map(one_line, names))}, ranked by {title[:1].lower()}{title[1:]}",
        notes=tuple(notes),
        x=Axis(title=""),
        y=Axis(title=title),
        panels=planes.panels,
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
