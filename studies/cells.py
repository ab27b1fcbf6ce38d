"""The cells of a table, from tallies to what is printed: numbers, words, bold and marks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .footnotes import Footnotes
from .metrics import Metric
from .published import Published
from .table import Cell, Status
from .tally import Place, Tally

NOT_RUN = "–"
"""What stands in a cell of which nothing is stored."""


def fill(
    places: Sequence[Sequence[Place]],
    tallies: Mapping[Place, Tally],
    beside: Mapping[Place, Published],
    *,
    metric: Metric,
    notes: Footnotes,
) -> tuple[tuple[Cell, ...], ...]:
    """The cell of every place, by row; in reading order, so that footnotes are lettered as they are met."""
    wins = {place for column in zip(*places, strict=True) for place in best(column, tallies, metric)}
    return tuple(
        tuple(
            _cell(tallies.get(place), beside.get(place), best=place in wins, metric=metric, notes=notes)
            for place in row
        )
        for row in places
    )


def best(column: Sequence[Place], tallies: Mapping[Place, Tally], metric: Metric) -> list[Place]:
    """The places with the best mean, all that print like it; none where there is nothing to beat."""
    means = {place: tallies[place].mean for place in column if place in tallies}
    known = {place: mean for place, mean in means.items() if mean is not None}
    if len(known) < 2 or metric.higher is None:
        return []
    shown = metric.show(max(known.values()) if metric.higher else min(known.values()))
    return [place for place, mean in known.items() if metric.show(mean) == shown]


def _cell(
    tally: Tally | None, published: Published | None, *, best: bool, metric: Metric, notes: Footnotes
) -> Cell:
    """One cell; no tally where the study has no such trial."""
    remarks = tally.remarks(metric.name) if tally else []
    if published and not published.text:
        remarks.append(f"published: {published.note}")
    marks = tuple(map(notes.mark, remarks))
    if tally is None:
        return Cell(status=Status.UNPLANNED, marks=marks, published=published)
    mean, deviation = tally.mean, tally.deviation
    word = NOT_RUN if tally.status is Status.MISSING else tally.status.value
    return Cell(
        status=tally.status,
        mean=mean,
        deviation=deviation,
        count=len(tally.values),
        shown=word if mean is None else metric.show(mean),
        spread="" if deviation is None else metric.show(deviation),
        best=best,
        marks=marks,
        published=published,
    )
