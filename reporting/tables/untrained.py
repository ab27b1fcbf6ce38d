"""Footnotes of cells whose trainings have learnt too little for their other values to mean anything."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

import polars as pl

from ...studies.catalog.metrics import find_metric
from ...studies.resolve.trial import Trial
from .tally import tally_trials

if TYPE_CHECKING:
    from ..kinds.cells import CellsTable


def untrained_remarks(
    spec: CellsTable, study: str, trials: Sequence[Trial], outcomes: pl.DataFrame
) -> dict[tuple[str, str], str]:
    """Return a remark for each row and column that has untrained nets, by the table's key `untrained`."""
    remarks: dict[tuple[str, str], list[str]] = defaultdict(list)
    tallies = tally_trials(
        study, trials, outcomes, rows=spec.rows, columns=spec.columns, metrics=list(spec.untrained)
    )
    for (row, column, name), (tally,) in tallies.items():
        metric, bound = find_metric(name), spec.untrained[name]
        sign, word = (1, "below") if metric.higher_is_better else (-1, "above")
        ends = sorted(value for value in tally.values if sign * value < sign * bound)
        if ends:
            low, high = metric.format(ends[0]), metric.format(ends[-1])
            found = low if low == high else f"{low} to {high}"
            of = f"{len(ends)} of {tally.trials} trainings" if tally.trials > 1 else "the training"
            remark = f"{of} ended untrained: {name} {found}, {word} {metric.format(bound)}"
            remarks[row, column].append(remark)
    return {place: "; ".join(each) for place, each in remarks.items()}
