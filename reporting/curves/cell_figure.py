"""Groups of the values of a figure, and their means."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from ...studies.catalog.metrics import Metric
from ...studies.presentation.kinds import Spread
from ..statistics.estimates import Interval, estimate

if TYPE_CHECKING:
    import polars as pl


def mean_interval(values: Sequence[float], spread: Spread, metric: Metric) -> Interval:
    """Return the mean of a metric's values, and the lower and upper end of its interval.

    Both ends are None for a single value. The result does not depend on the order of the values. The interval
    ends at the bounds of the metric, such as 0 for a loss.
    """
    found = estimate(values, spread=spread).within(metric.bounds)
    return Interval(found.value, found.low, found.high)


def grouped_values(frame: pl.DataFrame, *keys: str, of: tuple[str, ...] = ("value",)) -> Iterator[tuple]:
    """Group the rows of a frame, and yield the keys and values of each group.

    `keys` are the columns by which the rows are grouped. The values come from the column or columns in `of`,
    as a sorted list.
    """
    rows, count = frame.select(*keys, *of).sort(*keys, *of).iter_rows(), len(keys)
    for key, group in groupby(rows, key=lambda row: row[:count]):
        yield (*key, [row[count] if len(of) == 1 else row[count:] for row in group])
