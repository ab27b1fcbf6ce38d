"""Scaling: cells by their cost and result, with a power law through those of each series."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import polars as pl

from ...studies.catalog.metrics import find_metric
from ...studies.planning.probe_targets import probe_command
from ...studies.presentation.metric_words import difference_sentence, with_true_title
from ...studies.presentation.scaling import ScalingSpec
from ...studies.presentation.selection import describe_levels, fixed_levels, selected_levels
from ...studies.schema.design import level_key
from ...studies.schema.factors import SEED
from ...studies.schema.level_names import one_line, short_level_names
from ...studies.schema.settings import Level
from ...studies.study import Study
from ..observations import selected_trials
from ..outcomes import omitted_trials
from ..provenance import provenance
from ..scaling_cells import FittedLaw, LawCell, LawCells, fit_law, law_cells
from ..statistics.power_law import OffsetLaw
from .curve import Axis, Curve, Law, Panel, Point, Scaling, ScalingSeries

_STEPS = 24  # of the line of a law


def scaling_figure(study: Study, spec: ScalingSpec, outcomes: pl.DataFrame) -> Curve:
    """The figure that `spec` describes, over the study's trials in `outcomes`."""
    trials = selected_trials(study, spec.select)
    settings = [trial.settings for trial in trials]
    y, x = (with_true_title(find_metric(name), settings)[0] for name in (spec.value, spec.x))
    found = law_cells(study, spec, outcomes)
    observations = found.observations
    series = tuple(_series(spec, selected_levels(spec.select, study.factors), found))
    fixed = fixed_levels([trial.levels for trial in trials], (SEED, spec.series or ""), study.design)
    titles = [one_line(each.axis_title or each.title) for each in (y, x)]
    caption = f"{titles[0]}{',' if ',' in titles[0] else ''} against {titles[1][:1].lower()}{titles[1][1:]}"
    difference = difference_sentence([y, x], settings)
    return Curve(
        name=spec.name,
        caption=one_line(
            spec.caption or caption + (f"; {describe_levels(fixed)}" if fixed else "")
        ).removesuffix("."),
        notes=(
            *((f"At {describe_levels(fixed)}.",) if spec.caption and fixed else ()),
            *([difference] if difference else []),
            *_notes(spec, series, found.unfit),
            *omitted_trials(
                observations.gaps,
                len(observations.values) + observations.gaps.total(),
                probe_command(study.name),
            ),
        ),
        x=Axis(title=titles[1], log=True),
        y=Axis(title=titles[0], log=True),
        panels=(Panel(title="", content=Scaling(series=series)),),
        provenance=provenance(observations.trials, outcomes),
    )


def _series(
    spec: ScalingSpec, levels: Mapping[str, tuple[Level, ...]], found: LawCells
) -> Iterator[ScalingSeries]:
    """The cells of each series, from the cheapest on, with their law."""
    own = levels[spec.series] if spec.series else ()
    names = short_level_names(own)
    if not all(isinstance(level, str) for level in own):
        names = tuple(f"{one_line(spec.series or '')} {name}" for name in names)
    keys = [level_key(level) for level in own] if spec.series else [""]
    accented = None if spec.accent is None else keys.index(level_key(spec.accent))
    for number, key in enumerate(keys):
        cells = found.of(key)
        points = [_point(cell) for cell in cells]
        if points:
            law = fit_law(spec, cells)
            yield ScalingSeries(
                name=names[number] if names else "",
                number=number - (accented is not None and accented < number),
                points=tuple(points),
                law=_law(law, points[0].x, points[-1].x) if law else None,
                accent=number == accented,
            )


def _point(cell: LawCell) -> Point:
    """A cell at the geometric means of its seeds, from the lowest to the highest."""
    many = len(cell.results) > 1
    return Point(
        x=cell.cost,
        y=cell.result,
        low=cell.results[0] if many else None,
        high=cell.results[-1] if many else None,
        n=len(cell.results),
    )


def _law(law: FittedLaw, first: float, last: float) -> Law:
    """A law between two costs."""
    xs = [first * (last / first) ** (step / _STEPS) for step in range(_STEPS + 1)]
    line = tuple(Point(x=x, y=y, low=low, high=high, n=law.n) for x in xs for y, low, high in (law.at(x),))
    return Law(
        coefficient=law.coefficient,
        exponent=law.exponent,
        half_width=law.half_width,
        line=line,
        offset=law.offset if isinstance(law, OffsetLaw) else 0.0,
    )


def _notes(spec: ScalingSpec, series: tuple[ScalingSeries, ...], unfit: int) -> Iterator[str]:
    """What points, lines and the numbers at their names are."""
    if not series:
        yield "Nothing to draw: no trial has both numbers, above 0."
        return
    counts = sorted({point.n for each in series for point in each.points})
    if counts[-1] == 1:
        yield "Point: one seed."
    else:
        low, high = counts[0], counts[-1]
        seeds = f"{high}" if low == high else f"{low} to {high}"
        yield f"Point: geometric mean of {seeds} seeds; whisker: lowest to highest."
    laws = [each.law for each in series if each.law]
    if laws:
        numbers = 3 if any(law.offset for law in laws) else 2
        what = "a power law and what no size falls below" if numbers > 2 else "a power law"
        yield f"Line: {what}, by least squares on the logarithms of the points" + (
            "; band: 95 % interval of the line; beside it: its exponent ± half of its 95 % interval"
            f" (t, degrees of freedom: points less {numbers})."
            if any(law.half_width is not None for law in laws)
            else "; beside it: its exponent, whose interval these points do not tell."
        )
    if spec.held_out:
        last = "point" if spec.held_out == 1 else f"{spec.held_out} points"
        yield f"Not fitted: the last {last} of each series."
    if spec.over:
        yield f"Of {' and '.join(spec.over)} the best level of each point, by the mean of its seeds."
    if unfit:
        yield f"Without a logarithm: {unfit} trials with a number of 0 or less, or without a cost."
