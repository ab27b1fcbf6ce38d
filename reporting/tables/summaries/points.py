"""`kind = "points"`: the best points of a search, with what they measured, their seeds and their values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

import polars as pl

from ....studies.catalog.metrics import ANALYTIC_COSTS, Metric, find_metric
from ....studies.planning.probe_targets import probe_command
from ....studies.planning.trial_values import ValueStatus
from ....studies.presentation.metric_words import difference_sentence, with_true_title
from ....studies.presentation.search import PointsSpec
from ....studies.schema.level_names import level_name, one_line, value_name
from ....studies.schema.settings import Level
from ....studies.searches.best_points import comparison_note
from ....studies.searches.points import FoundPoint, SearchPoints, find_points
from ....studies.searches.words import beyond_sentence
from ....studies.study import Study
from ....studies.text.units import plural
from ...outcomes import omitted_trials
from ...provenance import provenance
from ...search.noise import noise_sentences
from ...search.promotion import RECIPE, outer_names
from ...statistics.estimates import Estimate, estimate
from ..axes import metric_head
from ..captions import joined_titles
from ..table import Cell, CellStatus, ColumnKey, Footnotes, Table
from ..tally import NOT_RUN

SEEDS = "n"
"""The heading of the column with the number of seeds."""

PARAMETERS = "parameters"

_SPREADS = {"sd": "± s.d.", "se": "± s.e.", "ci": "[95 % interval]"}


def points_table(study: Study, spec: PointsSpec, outcomes: pl.DataFrame) -> Table:
    """The table that `spec` describes, over all that the search has tried in `outcomes`."""
    found = find_points(study, outcomes, (*spec.value, PARAMETERS))
    names = spec.value or tuple(dict.fromkeys([*(each.metric for each in found.goals), PARAMETERS]))
    settings = [trial.settings for trial in found.trained]
    metrics = [with_true_title(_as_sought(find_metric(name, spec.digits), found), settings) for name in names]
    shown = found.ranked()[: spec.points]
    told = _told(study, spec, shown)
    best = {metric.name: _best_text(shown, metric) for metric, _ in metrics}
    notes = Footnotes()
    return Table(
        name=spec.name,
        caption=tuple(_sentences(study, spec, found, [metric for metric, _ in metrics])),
        corner="rank",
        rows=tuple(str(number) for number in range(1, len(shown) + 1)),
        columns=(
            *(metric_head(metric, words) for metric, words in metrics),
            SEEDS,
            *map(one_line, told),
        ),
        cells=tuple(
            (
                *(_measured(point, metric, spec, best[metric.name]) for metric, _ in metrics),
                _count(point.seeds),
                *(_value(values[number]) for values in told.values()),
            )
            for number, point in enumerate(shown)
        ),
        footnotes=notes.as_tuple(),
        provenance=provenance([trial.id for trial in found.trained], outcomes),
        keys=tuple(
            ColumnKey(metric=name, level="")
            for name in (*(metric.name for metric, _ in metrics), SEEDS, *told)
        ),
        spread=spec.spread,
    )


def _as_sought(metric: Metric, found: SearchPoints) -> Metric:
    """A metric with the direction in which the search goes, where that is optimised."""
    sought = {goal.metric: goal.sign > 0 for goal in found.goals}
    return replace(metric, higher_is_better=sought.get(metric.name, metric.higher_is_better))


def _told(study: Study, spec: PointsSpec, shown: Sequence[FoundPoint]) -> dict[str, list[Level | None]]:
    """What is told of points, by the heading of its column: values of dimensions, or recipes and others."""
    taken = [name for name in study.dimensions if any(name in point.values for point in shown)]
    recipes: dict[str, list[Level | None]] = {}
    if spec.show == "recipe":
        taken = [name for name in taken if name in outer_names(study)]
        recipes[RECIPE] = [study.trial_for(point.values).settings.model.recipe for point in shown]
    return recipes | {name: [point.values.get(name) for point in shown] for name in taken}


def _measured(point: FoundPoint, metric: Metric, spec: PointsSpec, best: str) -> Cell:
    """The mean of a metric over a point's seeds."""
    values = point.measured.get(metric.name, {})
    if point.mean(metric.name) is None:
        return Cell(status=CellStatus.PARTIAL if values else CellStatus.NO_VALUE, text=NOT_RUN)
    found = estimate(values.values(), spread=spec.spread)
    found = found.within_share() if metric.is_share else found
    told = found.spread is not None and not (metric.name in ANALYTIC_COSTS and not found.spread)
    interval = ""
    if told and spec.spread == "ci" and found.low is not None and found.high is not None:
        interval = f"[{metric.format(found.low)}, {metric.format(found.high)}]"
    text = metric.format(found.value)
    return Cell(
        status=CellStatus.DONE,
        estimate=found,
        text=text,
        spread=metric.format(found.spread) if told and found.spread is not None and not interval else "",
        interval=interval,
        best=text == best,
    )


def _best_text(points: Sequence[FoundPoint], metric: Metric) -> str:
    """How the best value of a column is printed; empty where neither direction is better."""
    means = [value for point in points if (value := point.mean(metric.name)) is not None]
    if not means or metric.higher_is_better is None:
        return ""
    return metric.format(max(means) if metric.higher_is_better else min(means))


def _count(count: int) -> Cell:
    return Cell(status=CellStatus.DONE, estimate=_exact(count), text=str(count))


def _value(value: Level | None) -> Cell:
    """The value of a dimension; a dash for a point that does not take it."""
    if value is None:
        return Cell(status=CellStatus.UNPLANNED, text=NOT_RUN)
    if isinstance(value, bool | str):
        return Cell(status=CellStatus.DONE, text=value_name(value), picked=level_name(value))
    return Cell(status=CellStatus.DONE, estimate=_exact(value), text=value_name(value))


def _exact(value: float) -> Estimate:
    return Estimate(value=value, low=None, high=None, spread=None, n=1)


def _sentences(
    study: Study, spec: PointsSpec, found: SearchPoints, metrics: Sequence[Metric]
) -> Iterator[str]:
    """Every sentence of the caption."""
    settings = [trial.settings for trial in found.trained]
    subject = one_line(spec.caption or joined_titles([metric.title for metric in metrics])).removesuffix(".")
    complete, first = found.complete, found.goals[0]
    shown = min(spec.points, len(complete))
    counts = sorted({point.seeds for point in complete})
    over = "one seed" if counts[-1:] == [1] else f"mean {_SPREADS[spec.spread]} of n seeds"
    if not complete:
        yield f"{subject}: no point that counts is done yet."
    else:
        goals = [f"the {'highest' if goal.sign > 0 else 'lowest'} {goal.metric}" for goal in found.goals]
        which = f"those with {goals[0]}"
        if len(goals) > 1:
            which = f"first those that none surpasses in all of {', '.join(goals)}"
        yield f"{subject}: {shown} of {plural(len(complete), 'point')}, {which}; {over}."
        yield "Bold: best in its column."
        yield "The best of many is better here than it would be once more: activemem study promote."
    yield from noise_sentences(study, found, find_metric(first.metric, spec.digits))
    if difference := difference_sentence(metrics, settings):
        yield difference
    if note := comparison_note(study):
        yield f"{note[:1].upper()}{note[1:]}."
    partial = Counter(point.status for point in found.points if point.status != ValueStatus.DONE)
    if lacking := partial[ValueStatus.MISSING]:
        yield f"{plural(lacking, 'point')} still {'lacks' if lacking == 1 else 'lack'} seeds."
    below = partial[ValueStatus.PRUNED]
    if study.fidelity is not None and below:
        yield f"{plural(below, 'point')} came to lower rungs of {study.fidelity.name} alone."
    yield from beyond_sentence(found)
    yield from omitted_trials(found.gaps, len(found.trained), probe_command(study.name))
