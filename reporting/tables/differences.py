"""The differences of a table's rows from their baselines, column by column, and which are significant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ...studies.catalog.metrics import Metric
from ...studies.presentation.table import Center, Significance
from ...studies.text.units import number_range
from ..claims.terminal import format_p
from ..statistics.pooled_differences import Difference, corrected, differences_between
from ..statistics.power import detectable
from .axes import TableColumn
from .bold import SIGNIFICANCE_LEVEL
from .tally import CellKey, Tally


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnDifferences:
    """The differences of a column by their row, and the rows of those that are significant.

    `p_values` are corrected for how many they are. `degrees` are the degrees of freedom of each pooled
    variance, of which there are `families`; `tests` says for how many tests p is corrected, and `detectable`
    is the difference that is found with a chance of 80 %; None if unknown. `choices` is of how many
    differences one was kept, at most.
    """

    metric: Metric
    by_row: Mapping[str, Difference]
    significant: frozenset[str] = frozenset()
    p_values: Mapping[str, float] = field(default_factory=dict[str, float])
    degrees: tuple[int, ...] = ()
    families: int = 0
    tests: int = 0
    choices: int = 1
    detectable: float | None = None


_STAR_LEVELS: Mapping[Significance, tuple[float, ...]] = {
    "star": (SIGNIFICANCE_LEVEL,),
    "stars": (SIGNIFICANCE_LEVEL, 0.01, 0.001),
}
"""Below how many of these p is, so many stars there are."""


def column_differences(
    column: TableColumn,
    baselines: Mapping[str, str],
    tallies: Mapping[CellKey, Tally],
    center: Center,
    choices: Mapping[str, int],
) -> ColumnDifferences:
    """The differences in a column of each row from its baseline, or the row before, which `baselines` has.

    Where a row was kept as the best of several, `choices` has how many of these differences there were: p is
    multiplied by it, as every one of them could have been the one that is tested.
    Of centres that are no means the difference is that of the centres, and nothing is known of its error.
    """
    values = {
        row: tally.values_by_unit
        for (row, level, name), tally in tallies.items()
        if (level, name) == (column.level, column.metric.name) and tally.values
    }
    if center != "mean":
        return ColumnDifferences(metric=column.metric, by_row=_of_centers(column, baselines, tallies, center))
    by_row: dict[str, Difference] = {}
    degrees, errors = list[int](), list[tuple[float, int]]()
    for family in _families(baselines):
        rows = [row for row in family if row in values and baselines[row] in values]
        cells = list(dict.fromkeys(each for row in rows for each in (baselines[row], row)))
        if not rows:
            continue
        pairs = [(cells.index(row), cells.index(baselines[row])) for row in rows]
        found = differences_between([values[row] for row in cells], pairs)
        by_row |= {row: each for row, each in zip(rows, found.each, strict=True) if each is not None}
        if found.degrees is not None and found.error is not None:
            degrees.append(found.degrees)
            errors.append((found.error, found.degrees))
    chosen = [_of_several(each, choices.get(row, 1)) for row, each in by_row.items()]
    found_p = zip(by_row, corrected(chosen), strict=True)
    p_values = {row: p for row, p in found_p if p is not None}
    tests = len(p_values)
    most = max((choices.get(row, 1) for row in by_row), default=1)
    limits = [detectable(error, count, SIGNIFICANCE_LEVEL / tests / most) for error, count in errors]
    return ColumnDifferences(
        metric=column.metric,
        by_row=by_row,
        significant=frozenset(row for row, p in p_values.items() if p < SIGNIFICANCE_LEVEL),
        p_values=p_values,
        degrees=tuple(sorted(set(degrees))),
        families=len(degrees),
        tests=tests,
        choices=most,
        detectable=max(limits, default=None),
    )


def _of_several(difference: Difference, choices: int) -> Difference:
    """A difference that was kept of several, as all of them are tested at once (Bonferroni)."""
    return difference if difference.p is None else replace(difference, p=min(1.0, difference.p * choices))


def _families(baselines: Mapping[str, str]) -> list[list[str]]:
    """The rows that differ, at last, from the same one: those whose variance is pooled."""
    families: dict[str, list[str]] = {}
    for row in baselines:
        first = baselines[row]
        while first in baselines:  # the row before, until one that differs from none
            first = baselines[first]
        families.setdefault(first, []).append(row)
    return list(families.values())


def _of_centers(
    column: TableColumn, baselines: Mapping[str, str], tallies: Mapping[CellKey, Tally], center: Center
) -> dict[str, Difference]:
    """The differences of centres, without what is known of them."""
    found: dict[str, Difference] = {}
    for row, baseline in baselines.items():
        ends = [tallies.get((each, column.level, column.metric.name)) for each in (row, baseline)]
        own, base = (tally.estimate(center) if tally else None for tally in ends)
        if own and base:
            found[row] = Difference(mean=own.value - base.value, n=own.n)
    return found


def significance_text(p: float | None, significance: Significance) -> str:
    """What follows a difference with this p: stars, or p itself behind a comma."""
    if p is None or significance == "none":
        return ""
    if significance == "p":
        return f", {format_p(p)}"
    return "*" * sum(p < level for level in _STAR_LEVELS[significance])


def differences_sentences(
    columns: Sequence[ColumnDifferences], baseline: str, significance: Significance
) -> list[str]:
    """What the parentheses behind numbers are, how they were found, and what they could have shown."""
    shown = [column for column in columns if column.by_row]
    if not shown:
        return []
    tested = [column for column in shown if column.tests]
    if not tested:
        return [f"In parentheses: difference from {baseline}."]
    sentences = [f"In parentheses: difference from {baseline}, paired by seed, ± half of its 95 % interval."]
    if significance == "none":
        return sentences
    counts = sorted({column.tests for column in tested})
    family = f"{number_range(counts)} test{'' if counts == [1] else 's'} of the column"
    degrees = sorted({each for column in tested for each in column.degrees})
    over = "the cells around each baseline" if any(column.families > 1 for column in tested) else "the column"
    how = pooled_words(degrees, over) if degrees else "paired permutation test"
    limits = detectable_words([(column.metric, column.detectable) for column in tested])
    rule = f"{how}; Holm over the {family}{limits}"
    levels = _STAR_LEVELS.get(significance, ())
    stars = ", ".join(f"{'*' * count}: p < {level}" for count, level in enumerate(levels, start=1))
    sentences.append(f"{stars} ({rule})." if stars else f"p: {rule}.")
    if any(column.choices > 1 for column in tested):
        sentences.append(
            "Rows were kept by these seeds as the best of their rounds: p is multiplied by how many "
            "differences there were to choose from, and differences are optimistic."
        )
    return sentences


def detectable_words(found: Sequence[tuple[Metric, float | None]], between: str = "") -> str:
    """What the tests of columns could have shown, the largest of each metric; empty if it is not known."""
    limits: dict[str, tuple[Metric, float]] = {}
    for metric, limit in found:
        if limit is not None:
            limits[metric.name] = metric, max(limit, limits.get(metric.name, (metric, 0.0))[1])
    told = ", ".join(f"{name} {metric.format(limit)}" for name, (metric, limit) in limits.items())
    return f"; {told} or more{between} is found with a chance of 80 %" if told else ""


def pooled_words(degrees: Sequence[int], over: str = "the column") -> str:
    """The t test with a pooled variance, as a caption names it; its degrees of freedom are in order."""
    return f"t with the variance pooled over {over}, {number_range(degrees)} degrees of freedom"
