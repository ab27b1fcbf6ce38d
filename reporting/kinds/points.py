"""`points`: the best points of a search, with their metrics.

The table also has their values and numbers of seeds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from ...studies.catalog.metrics import Metric, find_metric
from ...studies.planning.final_values import ValueStatus
from ...studies.presentation.kinds import KeyFault, Spread, TableExtras, TableKind, metric_faults
from ...studies.presentation.metric_words import difference_sentence, with_true_title
from ...studies.schema.design import Design
from ...studies.schema.factors import level_name, one_line, value_name
from ...studies.schema.settings import Level, Names
from ...studies.searches.points import FoundPoint, SearchPoints, comparison_note, find_points
from ...studies.searches.words import over_limit_sentence
from ...studies.text.units import plural
from ..outcomes import omitted_trials, provenance
from ..statistics.estimates import estimate
from ..tables.table import NOT_RUN, Cell, CellStatus, ColumnKey, Table, number_cell

if TYPE_CHECKING:
    import polars as pl

    from ...studies.study import Study


SEEDS = "n"
"""The heading of the column with the number of seeds."""

PARAMETERS = "parameters"


class PointsTable(TableKind):
    """`[[table]] kind = "points"`: the best points of a search, the best first."""

    kind: Literal["points"]
    value: Names = ()
    """metrics and costs (default: the objectives, and parameters)"""
    points: int = Field(default=10, ge=1, le=1000)
    """the number of points in the table"""
    spread: Spread = "sd"
    """the spread after a mean over seeds: standard deviation, standard error, or 95 % confidence interval"""
    show: Literal["values", "recipe"] = "values"
    """how a point is described: by the values of its dimensions, or by its recipe"""

    of_search: ClassVar = True

    def faults(self, design: Design, paper: str | None) -> Iterator[KeyFault]:
        yield from metric_faults(self.value)

    def table(self, study: Study, outcomes: pl.DataFrame, extras: TableExtras) -> Table:
        from ..tables.cells import metric_head  # noqa: PLC0415 -- the keys are checked without it
        from ..tables.differences import note_unsolved  # noqa: PLC0415 -- as above

        found = find_points(study, outcomes, (*self.value, PARAMETERS))
        names = self.value or tuple(dict.fromkeys([*(each.name for each in found.goals), PARAMETERS]))
        settings = [trial.settings for trial in found.trained]
        named = [with_true_title(_as_sought(find_metric(name), found), settings) for name in names]
        metrics, shown = [metric for metric, _ in named], found.ranked()[: self.points]
        described = _described(study, self, shown)
        best = {metric.name: _best_text(shown, metric) for metric in metrics}
        columns = (*(metric.name for metric in metrics), SEEDS, *described)
        table = Table(
            name=self.name,
            caption=tuple(_sentences(study, self, found, metrics)),
            corner="rank",
            rows=tuple(str(number) for number in range(1, len(shown) + 1)),
            columns=(*(metric_head(*each) for each in named), SEEDS, *map(one_line, described)),
            cells=tuple(
                (
                    *(_measured(point, metric, self, best[metric.name]) for metric in metrics),
                    number_cell(point.seeds, str(point.seeds)),
                    *(_value(values[number]) for values in described.values()),
                )
                for number, point in enumerate(shown)
            ),
            footnotes=(),
            provenance=provenance([trial.id for trial in found.trained], outcomes),
            keys=tuple(ColumnKey(metric=name, level="") for name in columns),
            spread=self.spread,
        )
        return note_unsolved(table, settings)


def _as_sought(metric: Metric, found: SearchPoints) -> Metric:
    """Return a metric with the direction (lower or higher) that the search optimises.

    A metric that the search does not optimise is unchanged.
    """
    sought = {goal.name: goal.sign > 0 for goal in found.goals}
    return replace(metric, higher_is_better=sought.get(metric.name, metric.higher_is_better))


def _described(study: Study, spec: PointsTable, shown: Sequence[FoundPoint]) -> dict[str, list[Level | None]]:
    from ..search.promotion import RECIPE, outer_names  # noqa: PLC0415 -- loads NumPy

    taken = [name for name in study.dimensions if any(name in point.values for point in shown)]
    recipes: dict[str, list[Level | None]] = {}
    if spec.show == "recipe":
        taken = [name for name in taken if name in outer_names(study)]
        recipes[RECIPE] = [study.trial_for(point.values).settings.model.recipe for point in shown]
    return recipes | {name: [point.values.get(name) for point in shown] for name in taken}


def _measured(point: FoundPoint, metric: Metric, spec: PointsTable, best: str) -> Cell:
    from ..tables.cells import spread_texts  # noqa: PLC0415 -- as above

    values = point.measured.get(metric.name, {})
    if point.mean(metric.name) is None:
        return Cell(status=CellStatus.PARTIAL if values else CellStatus.NO_VALUE, text=NOT_RUN)
    found = estimate(values.values(), spread=spec.spread).within(metric.bounds)
    spread, interval = spread_texts(found, metric, spec.spread)
    text = metric.format(found.value)
    return Cell(
        status=CellStatus.DONE, estimate=found, text=text, spread=spread, interval=interval, best=text == best
    )


def _best_text(points: Sequence[FoundPoint], metric: Metric) -> str:
    means = [value for point in points if (value := point.mean(metric.name)) is not None]
    if not means or metric.higher_is_better is None:
        return ""
    return metric.format(max(means) if metric.higher_is_better else min(means))


def _value(value: Level | None) -> Cell:
    if value is None:
        return Cell(status=CellStatus.UNPLANNED, text=NOT_RUN)
    if isinstance(value, bool | str):
        return Cell(status=CellStatus.DONE, text=value_name(value), picked=level_name(value))
    return number_cell(value, value_name(value))


def _sentences(
    study: Study, spec: PointsTable, found: SearchPoints, metrics: Sequence[Metric]
) -> Iterator[str]:
    from ..search.noise import noise_sentences  # noqa: PLC0415 -- loads NumPy
    from ..tables.differences import SPREADS, caption_start  # noqa: PLC0415 -- as above

    settings = [trial.settings for trial in found.trained]
    subject = caption_start(spec.caption, metrics)
    complete, first = found.complete, found.goals[0]
    shown = min(spec.points, len(complete))
    counts = sorted({point.seeds for point in complete})
    over = "one seed" if counts[-1:] == [1] else f"mean {SPREADS[spec.spread]} of n seeds"
    if not complete:
        yield f"{subject}: no complete point yet."
    else:
        goals = [f"the {'highest' if goal.sign > 0 else 'lowest'} {goal.name}" for goal in found.goals]
        which = f"those with {goals[0]}"
        if len(goals) > 1:
            which = f"first those not dominated in {', '.join(goals)}"
        yield f"{subject}: {shown} of {plural(len(complete), 'point')}, {which}; {over}."
        yield "Bold: best in its column."
        yield "The best of many points is biased upwards; confirm it with activemem study promote."
    yield from noise_sentences(study, found, find_metric(first.name))
    if difference := difference_sentence(metrics, settings):
        yield difference
    if note := comparison_note(study):
        yield f"{note[:1].upper()}{note[1:]}."
    partial = Counter(point.status for point in found.points if point.status != ValueStatus.DONE)
    if lacking := partial[ValueStatus.MISSING]:
        yield f"{plural(lacking, 'point')} still {'has' if lacking == 1 else 'have'} missing seeds."
    below = partial[ValueStatus.PRUNED]
    if study.fidelity.rungs and below:
        yield f"{plural(below, 'point')} reached only lower rungs of {study.fidelity.name}."
    yield from over_limit_sentence(found)
    yield from omitted_trials(found.gaps, len(found.trained), study.name)


TABLE = PointsTable
