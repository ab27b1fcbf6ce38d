"""How well the measured numbers of a table reproduce the published numbers beside them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations

from ...studies.catalog.metrics import ANALYTIC_COSTS, METRICS_AND_COSTS, find_metric
from ...studies.catalog.published import PublishedNumber, PublishedTable
from ..statistics.estimates import LEVEL, Estimate, t_quantile
from .table import CellStatus, Table

_MIN_RANKED = 4  # rows of a column that has a rank correlation
_MAX_COLUMNS = 6  # columns whose rank correlations are listed


@dataclass(frozen=True, slots=True, kw_only=True)
class Reproduction:
    """A comparison of measured cells with published numbers. Costs that need no training are left out.

    `compared` is the number of cells whose noise is known, and `within` how many of them differ from the
    published number by no more than noise. `ratio` is the geometric mean of ours / published, over positive
    numbers. Of `pairs` of rows that differ in print within a column, `ordered` have the same order in ours.
    `correlations` has Spearman's rank correlation of each column with at least four rows.
    A study of a smaller size has only an order: its `compared` is 0 and its `ratio` None.
    """

    within: int = 0
    compared: int = 0
    ratio: float | None = None
    ordered: int = 0
    pairs: int = 0
    correlations: Mapping[str, float] = field(default_factory=dict)

    @property
    def texts(self) -> tuple[str, str, str]:
        """Return the cells within noise, the ratio and the order; "" for what is unknown."""
        return (
            f"{self.within} of {self.compared}" if self.compared else "",
            f"{self.ratio:.3g}" if self.ratio is not None else "",
            f"{self.ordered} of {self.pairs}" if self.pairs else "",
        )

    @property
    def rank_range(self) -> str:
        """Return the lowest and the highest rank correlation, such as `.54 to .99`; "" without one."""
        ends = dict.fromkeys(map(_two_decimals, sorted(self.correlations.values())))
        return " to ".join(dict.fromkeys((*list(ends)[:1], *list(ends)[-1:])))

    @property
    def sentence(self) -> str:
        """Return the remark below a table."""
        return self.sentence_on("")

    def sentence_on(self, title: str) -> str:
        """Return the remark below a table with numbers of several papers, on the table of one of them."""
        within, ratio, order = self.texts
        each = ", ".join(f"{head} {_two_decimals(value)}" for head, value in self.correlations.items())
        ranks = each if len(self.correlations) <= _MAX_COLUMNS else self.rank_range
        parts = (
            f"{within} within noise" if within else "",
            f"ratio {ratio}" if ratio else "",
            f"order {order}" if order else "",
            f"rank correlation {ranks}" if ranks else "",
        )
        return f"Reproduction{title and f' of {title}'}: {' · '.join(filter(None, parts))}."


def _two_decimals(value: float) -> str:
    """Return a correlation as papers print it, such as `−.12`."""
    return f"{value:.2f}".replace("-", "−").replace("0.", ".")


def reproduction(table: Table, theirs: PublishedTable | None = None, *, small: bool) -> Reproduction | None:
    """Compare a table's measured cells with its published numbers: with those of `theirs`, if it is given.

    Return None if there is none to compare. Numbers in another unit than the cell's are left out.

    A cell is within noise if |ours − published| ≤ t · s · √(1/n + 1/m), plus half a unit of the last printed
    digit. Here n and m are the numbers of runs of ours and of the print (1 if unknown), s is the spread that
    is printed or else that of ours, and t Student's quantile at 95 %. Values of a `small` study are not
    compared, but their order is.
    """
    found = list(_measured(table, theirs))
    if not found:
        return None
    noises = [] if small else [(each, noise) for each in found if (noise := _noise(table, each)) is not None]
    ratios = [
        math.log(each.ours.value / each.theirs)
        for each in found
        if not small and each.ours.value > 0 and each.theirs > 0
    ]
    ordered = pairs = 0
    correlations: dict[str, float] = {}
    for place, key in enumerate(table.keys):
        column = [(each.ours.value, each.theirs) for each in found if each.column == place]
        signs = [
            (our > our_other) - (our < our_other) == (their > their_other) - (their < their_other)
            for (our, their), (our_other, their_other) in combinations(column, 2)
            if their != their_other
        ]
        ordered, pairs = ordered + sum(signs), pairs + len(signs)
        if len(column) >= _MIN_RANKED and (value := _rank_correlation(column)) is not None:
            correlations[key.level or key.metric] = value
    if not (noises or ratios or pairs):
        return None
    return Reproduction(
        within=sum(abs(each.ours.value - each.theirs) <= noise for each, noise in noises),
        compared=len(noises),
        ratio=math.exp(math.fsum(ratios) / len(ratios)) if ratios else None,
        ordered=ordered,
        pairs=pairs,
        correlations=correlations,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Measured:
    column: int
    ours: Estimate
    number: PublishedNumber
    theirs: float


def _measured(table: Table, theirs: PublishedTable | None) -> Iterator[_Measured]:
    """Yield the cells with a complete measured value and a published number in the same unit."""
    own = {id(number) for number in theirs.cells.values()} if theirs else None
    for cells in table.cells:
        for place, (cell, key) in enumerate(zip(cells, table.keys, strict=True)):
            numbers = (line.number for line in cell.published_lines)
            number, ours = (
                next((each for each in numbers if own is None or id(each) in own), None),
                cell.estimate,
            )
            if number is None or number.value is None or ours is None or cell.status is not CellStatus.DONE:
                continue
            metric = cell.metric or key.metric
            if metric in METRICS_AND_COSTS and number.unit_note(find_metric(metric)):
                continue
            if key.metric not in ANALYTIC_COSTS and math.isfinite(ours.value):
                yield _Measured(column=place, ours=ours, number=number, theirs=number.value)


def _noise(table: Table, cell: _Measured) -> float | None:
    """Return how far two means of the same trainings may be apart; None if neither has a spread."""
    n, m, number = cell.ours.n, cell.number.n or 1, cell.number
    if number.spread and number.spread_is and m > 1:
        spread, kind, count = float(number.spread), number.spread_is, m
    elif cell.ours.spread is not None and n > 1:
        spread, kind, count = cell.ours.spread, table.spread, n
    else:
        return None
    quantile = t_quantile(LEVEL, count - 1)
    to_sd = {"sd": 1.0, "se": math.sqrt(count), "ci": math.sqrt(count) / quantile}
    return quantile * spread * to_sd[kind] * math.sqrt(1 / n + 1 / m) + number.half_digit


def _rank_correlation(pairs: list[tuple[float, float]]) -> float | None:
    """Return Spearman's rank correlation; None if all numbers of one side are equal."""
    ours, theirs = ([_rank(side, value) for value in side] for side in zip(*pairs, strict=True))
    middle = (len(pairs) + 1) / 2
    shared = math.fsum((one - middle) * (other - middle) for one, other in zip(ours, theirs, strict=True))
    sizes = [math.fsum((rank - middle) ** 2 for rank in side) for side in (ours, theirs)]
    return shared / math.sqrt(sizes[0] * sizes[1]) if all(sizes) else None


def _rank(values: tuple[float, ...], value: float) -> float:
    """Return the rank of a value, from 1 on. Equal values share their mean rank."""
    return 1 + sum(other < value for other in values) + (values.count(value) - 1) / 2
