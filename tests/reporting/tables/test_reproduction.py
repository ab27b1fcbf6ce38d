"""The measure of reproduction: cells within noise, ratio, order and rank correlation."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest
from scipy import stats

from activemem.reporting.statistics.estimates import estimate
from activemem.reporting.tables.reproduction import reproduction
from activemem.reporting.tables.table import Cell, CellStatus, ColumnKey, PublishedLine, Table
from activemem.studies.catalog.published import PublishedNumber

NOISE = stats.t.ppf(0.975, 2) * 1.0 * math.sqrt(1 / 3 + 1)  # of three runs with s.d. 1 and one in print


def table(*columns, spread="sd", metric="max_length"):
    """Return a table of columns, each a list of (our values, the printed text, its fields)."""
    rows = [
        tuple(
            Cell(
                status=CellStatus.DONE,
                estimate=estimate(values, spread=spread),
                published_lines=(
                    PublishedLine(
                        number=PublishedNumber(value=float(text), text=text, unit="tokens", **fields)
                    ),
                ),
            )
            for values, text, fields in row
        )
        for row in zip(*columns, strict=True)
    ]
    names = tuple(f"task {number}" for number in range(len(columns)))
    return Table(
        name="t",
        caption="",
        corner="",
        rows=tuple(str(number) for number in range(len(rows))),
        columns=names,
        cells=tuple(rows),
        footnotes=(),
        provenance="",
        keys=tuple(ColumnKey(metric=metric, level=name) for name in names),
        spread=spread,
    )


def around(center, sd=1.0):
    """Return three values with this mean and standard deviation."""
    return [center - sd, center, center + sd]


@pytest.mark.parametrize("spread", ["sd", "se", "ci"])
@pytest.mark.parametrize(
    ("values", "text", "fields", "within", "compared"),
    [
        (around(10 + NOISE), "10.0", {}, 1, 1),
        (around(10 + NOISE + 0.04), "10.0", {}, 1, 1),  # half of the last digit
        (around(10 + NOISE + 0.06), "10.0", {}, 0, 1),
        (around(10 + NOISE + 0.4), "10", {}, 1, 1),
        (around(10 - NOISE - 0.06), "10.0", {}, 0, 1),
        (around(10 + NOISE), "10.0", {"n": 3}, 0, 1),  # two means of three are closer
        (around(10 + NOISE * math.sqrt(1 / 2)), "10.0", {"n": 3}, 1, 1),
        (
            around(14, 0.1),
            "10.0",
            {"spread": "9.0", "spread_is": "sd", "n": 3},
            1,
            1,
        ),  # the print's own spread
        (around(14, 0.1), "10.0", {"spread": "9.0", "n": 3}, 0, 1),  # not said of what kind: ours counts
        ([11.9], "10.0", {"spread": "0.50", "spread_is": "se", "n": 4}, 1, 1),  # s.d. 1, t of 3 is 3.18
        ([14.0], "10.0", {"spread": "0.50", "spread_is": "se", "n": 4}, 0, 1),
        ([12.0], "10.0", {"spread": "1.59", "spread_is": "ci", "n": 4}, 1, 1),  # half of the same interval
        ([14.0], "10.0", {"spread": "1.59", "spread_is": "ci", "n": 4}, 0, 1),
        ([12.0], "10.0", {}, 0, 0),
        ([12.0], "10.0", {"spread": "1.00", "spread_is": "sd", "n": 10}, 1, 1),
    ],
)
def test_a_cell_is_within_noise_up_to_the_t_interval_and_half_a_digit(
    spread, values, text, fields, within, compared
):
    found = reproduction(table([(values, text, fields)], spread=spread), small=False)
    assert (found.within, found.compared) == (within, compared)
    assert found.ratio == pytest.approx(sum(values) / len(values) / float(text))


def test_order_and_ranks_agree_with_scipy_and_equal_printed_numbers_have_no_order():
    numbers = random.Random(0)
    for _ in range(50):
        theirs = [numbers.randrange(6) for _ in range(7)]
        ours = [float(numbers.randrange(6)) for _ in range(7)]
        found = reproduction(
            table([([v], str(t), {}) for v, t in zip(ours, theirs, strict=True)]), small=False
        )
        pairs = [(i, j) for i in range(7) for j in range(i) if theirs[i] != theirs[j]]
        agree = sum((ours[i] - ours[j]) * (theirs[i] - theirs[j]) > 0 for i, j in pairs)
        assert (found.ordered, found.pairs) == (agree, len(pairs))
        if len(set(ours)) > 1 and len(set(theirs)) > 1:
            assert found.correlations["task 0"] == pytest.approx(stats.spearmanr(ours, theirs).statistic)


def test_a_small_study_has_an_order_and_no_values():
    column = [(around(value), str(value), {}) for value in (1, 2, 3, 4)]
    found = reproduction(table(column, column), small=True)
    assert found.sentence == "Reproduction: order 12 of 12 · rank correlation task 0 1.00, task 1 1.00."
    assert (found.compared, found.ratio) == (0, None)


def test_costs_and_cells_without_all_seeds_are_not_compared():
    column = [(around(value), str(value), {}) for value in (1, 2)]
    assert reproduction(table(column, metric="parameters"), small=False) is None
    made = table(column)
    partial = tuple(tuple(replace(cell, status=CellStatus.PARTIAL) for cell in row) for row in made.cells)
    assert reproduction(replace(made, cells=partial), small=False) is None
    assert reproduction(table([(around(1), "1", {})]), small=True) is None
