"""Tallies of the outcomes of a cell's trials."""

import pytest

from activemem.reporting.tables.table import CellStatus
from activemem.reporting.tables.tally import Tally


def tally(trials: int = 3, values: tuple[float, ...] = (), **gaps: tuple[str, ...]) -> Tally:
    """Return a tally of these trials; `gaps` has the reasons of trials without a value, by status."""
    return Tally(
        trials=trials,
        values=values,
        gaps=tuple((status, why) for status, whys in gaps.items() for why in whys),
    )


@pytest.mark.parametrize(
    ("cell", "status", "placeholder"),
    [
        (tally(values=(1.0, 2.0, 3.0)), CellStatus.DONE, ""),
        (tally(values=(1.0, 2.0), missing=("m",)), CellStatus.PARTIAL, ""),
        (tally(values=(1.0,), failed=("a",), pruned=("b",)), CellStatus.PARTIAL, ""),
        (tally(begun=("c",), pending=("p",), failed=("a",)), CellStatus.BEGUN, "begun"),
        (tally(pending=("p",), failed=("a",), missing=("m",)), CellStatus.PENDING, "pending"),
        (tally(failed=("a",), pruned=("b",), missing=("m",)), CellStatus.FAILED, "failed"),
        (tally(pruned=("b",), missing=("m", "m")), CellStatus.PRUNED, "pruned"),
        (tally(missing=("m", "m", "m")), CellStatus.MISSING, "–"),
        (tally(missing=("m", "m"), none=("n",)), CellStatus.NO_VALUE, "no value"),
        (tally(failed=("a",), none=("n", "n")), CellStatus.FAILED, "failed"),
        (tally(pruned=("b",), missing=("m",), none=("n",)), CellStatus.NO_VALUE, "no value"),
    ],
)
def test_the_status_says_how_far_the_trials_came(cell: Tally, status: CellStatus, placeholder: str) -> None:
    assert cell.status is status
    assert not placeholder or cell.placeholder == placeholder


def test_the_deviation_is_the_samples() -> None:
    found = tally(values=(7.0, 9.0, 11.0)).estimate()
    assert found is not None
    assert (found.value, found.spread) == (9.0, 2.0)


def test_one_value_has_no_deviation_and_none_has_no_mean() -> None:
    found = tally(values=(7.0,)).estimate()
    assert found is not None
    assert (found.value, found.spread) == (7.0, None)
    assert tally().estimate() is None


def test_every_kind_of_trial_outside_the_mean_is_reported_with_its_reason() -> None:
    cell = tally(
        trials=8,
        values=(1.0,),
        missing=("not run",),
        failed=("failed: x", "failed: y", "failed: x"),
        pruned=("pruned: z",),
        none=("ended without a finite loss",) * 2,
    )
    assert cell.remarks() == [
        "2 of 8 seeds failed: x",
        "1 of 8 seeds failed: y",
        "2 of 8 seeds ended without a finite loss",
        "1 of 8 seeds pruned: z",
        "1 of 8 seeds not run",
    ]


def test_a_single_seed_is_not_counted() -> None:
    assert tally(trials=1, failed=("failed: x",)).remarks() == ["failed: x"]


def test_a_cell_that_has_not_run_needs_no_remark() -> None:
    assert tally(missing=("not run",) * 3).remarks() == []
