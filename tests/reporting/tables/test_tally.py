"""A tally tells how far a cell's trials came."""

import pytest

from activemem.reporting.tables.table import CellStatus
from activemem.reporting.tables.tally import Tally


def tally(
    trials: int = 3,
    values: tuple[float, ...] = (),
    failed: tuple[str, ...] = (),
    pruned: tuple[str, ...] = (),
    missing: int = 0,
) -> Tally:
    return Tally(trials=trials, values=values, failed=failed, pruned=pruned, missing=missing)


@pytest.mark.parametrize(
    ("cell", "status"),
    [
        (tally(values=(1.0, 2.0, 3.0)), CellStatus.DONE),
        (tally(values=(1.0, 2.0), missing=1), CellStatus.PARTIAL),
        (tally(values=(1.0,), failed=("a",), pruned=("b",)), CellStatus.PARTIAL),
        (tally(failed=("a",), pruned=("b",), missing=1), CellStatus.FAILED),
        (tally(pruned=("b",), missing=2), CellStatus.PRUNED),
        (tally(missing=3), CellStatus.MISSING),
        (tally(missing=2), CellStatus.NO_VALUE),  # one is done without a finite value
        (tally(failed=("a",)), CellStatus.FAILED),  # as are two beside one that failed
        (tally(pruned=("b",), missing=1), CellStatus.NO_VALUE),
    ],
)
def test_the_status_says_how_far_the_trials_came(cell: Tally, status: CellStatus) -> None:
    assert cell.status is status


def test_the_deviation_is_the_samples() -> None:
    found = tally(values=(7.0, 9.0, 11.0)).estimate()
    assert found is not None
    assert (found.value, found.spread) == (9.0, 2.0)


def test_one_value_has_no_deviation_and_none_has_no_mean() -> None:
    found = tally(values=(7.0,)).estimate()
    assert found is not None
    assert (found.value, found.spread) == (7.0, None)
    assert tally().estimate() is None


def test_every_kind_of_trial_outside_the_mean_is_told_with_its_reasons() -> None:
    cell = tally(trials=8, values=(1.0,), failed=("x", "y", "x"), pruned=("z",), missing=1)
    assert cell.remarks("loss") == [
        "3 of 8 seeds failed: x, y",
        "1 of 8 seeds pruned: z",
        "2 of 8 seeds ended without a finite loss",
        "1 of 8 seeds not run",
    ]


def test_a_single_seed_is_not_counted() -> None:
    assert tally(trials=1, failed=("x",)).remarks("loss") == ["failed: x"]


def test_a_cell_that_has_not_run_needs_no_remark() -> None:
    assert tally(missing=3).remarks("loss") == []
