"""Further options of tables: other centres, tests, differences, groups, picked levels."""

import re
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

from activemem import Study, load_study
from activemem.reporting import Table
from activemem.reporting.kinds import build_table
from activemem.reporting.statistics.estimates import estimate
from activemem.reporting.tables.table import Cell, CellStatus, ColumnKey
from activemem.studies.presentation.table_keys import CellsTable

from ...golden import GoldenTexts

Forms = tuple[Study, pl.DataFrame, frozenset[str]]
Make = Callable[..., Table]
KEYS = {"name": "table4", "rows": "mixer", "columns": "task", "value": "max_length", "select": {"lr": 1e-3}}


def spec(**changes: Any) -> CellsTable:
    return CellsTable.model_validate(
        {key: value for key, value in (KEYS | changes).items() if value is not None}
    )


@pytest.fixture
def make(forms: Forms) -> Make:
    study, outcomes, begun = forms

    def made(*, beside: bool = False, rest: bool = False, **changes: Any) -> Table:
        return build_table(study, spec(**changes), outcomes, published=beside, paper_only=rest, begun=begun)

    return made


def cell_of(made: Table, row: str, column: str) -> Cell:
    return made.cells[made.rows.index(row)][made.columns.index(column)]


def values_of(forms: Forms, **levels: Any) -> dict[int, float]:
    study, outcomes, _ = forms
    rows = {row["trial"]: row for row in outcomes.iter_rows(named=True)}
    found = {}
    for trial in study.trials:
        if all(trial.levels[name] == level for name, level in levels.items()) and trial.id in rows:
            metrics = {each["name"]: each["value"] for each in rows[trial.id]["metrics"]}
            found[int(trial.levels["seed"])] = metrics["max_length"]
    return found


@pytest.mark.parametrize("spread", ["sd", "se", "ci"])
def test_a_cell_has_the_mean_and_the_spread_that_are_asked_for(make: Make, forms: Forms, spread: Any) -> None:
    cell = cell_of(make(spread=spread), "sa", "sort")
    values = values_of(forms, mixer="sa", task="sort", lr=1e-3)
    assert cell.estimate == estimate(values.values(), spread=spread)
    assert (cell.spread == "") is (spread == "ci") is (cell.interval != "")


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"spread": "ci"},
        {"spread": "se"},
        {"over": "lr", "select": None},
        {"over": "lr", "pick_by": "max_length", "select": None},
        {"select": {"lr": 1e-3, "seed": 3}},
        {"select": {"seed": 3}, "over": "lr"},
    ],
    ids=str,
)
def test_the_caption_says_what_a_number_is_and_over_how_many(
    make: Make, changes: dict[str, Any], golden: GoldenTexts
) -> None:
    golden(make(**changes).caption)


def test_an_interval_is_in_brackets_and_only_shown_if_the_seeds_allow_it(make: Make) -> None:
    few = {"lr": 1e-3, "seed": [0, 1, 2]}
    assert cell_of(make(spread="ci", select=few), "sa", "sort").full_text == "30.2 [27.4, 33.1]"


def test_only_the_best_is_bold_and_what_cannot_be_told_from_it_is_a_tie(make: Make) -> None:
    made = make()
    assert [(row[0].best, row[0].tie) for row in made.cells] == [
        (False, True),
        (True, False),
        (False, False),
        (False, False),
    ]
    assert made.cells[0][0].marks[0] == made.footnotes[-1].mark == "≈"
    assert made.frame().filter("tie")["row"].to_list() == ["sa"] * 2
    assert re.match("≈: p ≥ 0.05 by .*; Holm over 2 to 3 pairs", made.notes[0])


def test_three_seeds_distinguish_what_is_far_apart_and_a_remark_says_how_far(make: Make) -> None:
    made = make(select={"lr": 1e-3, "seed": [0, 1, 2]})
    assert [row[0].best for row in made.cells] == [False, True, False, False]
    assert "6 degrees of" in made.notes[0]
    assert any(re.search("can show: max_length .* to .* or more", line) for line in made.remarks)


def test_one_seed_does_not_rank(make: Make) -> None:
    made = make(select={"lr": 1e-3, "seed": 0})
    assert not any(cell.best or cell.tie for row in made.cells for cell in row)
    assert "Without bold: one seed does not rank." in made.remarks


@pytest.mark.parametrize(
    ("seed", "bold"), [(0, [False] * 4), (1, [True, False, False, False])], ids=["it leads", "another leads"]
)
def test_a_cell_of_one_seed_is_not_bold_in_a_half_finished_table(
    forms: Forms, seed: int, bold: list[bool]
) -> None:
    study, outcomes, begun = forms
    second = study.factors["mixer"][1]
    rest = [
        each.id for each in study.trials if each.levels["mixer"] == second and each.levels["seed"] != seed
    ]
    done = outcomes.filter(~pl.col("trial").is_in(rest))
    made = build_table(study, spec(), done, published=False, begun=begun)
    assert [row[0].count for row in made.cells] == [8, 1, 8, 8]
    assert [row[0].best for row in made.cells] == bold


def test_published_differences_have_the_digits_of_the_paper(make: Make) -> None:
    made = make(baseline="sa", beside=True)
    assert cell_of(made, "conv(k=20)", "addition").published_text == "41.0 (+34.0)"
    assert cell_of(made, "sa", "addition").published_text == "7.0"


def test_several_metrics_are_side_by_side_with_their_directions_and_digits(
    make: Make, golden: GoldenTexts
) -> None:
    made = make(value=["max_length", "loss", "parameters"], columns=None, select={"lr": 1e-3, "task": "sort"})
    assert made.columns == ("max_length ↑", "loss ↓", "parameters")
    assert made.cells[0][2].full_text == "1"
    assert [cell.full_text for cell in made.cells[2]] == ["20.6 ± 1.4", "0.0487 ± 0.0033", "1"]
    assert [[cell.best for cell in row] for row in made.cells[:2]] == [
        [False, False, False],
        [True, True, False],
    ]
    golden(made.sentences)


def test_digits_can_be_asked_for(make: Make) -> None:
    assert cell_of(make(digits={"max_length": 3}), "sa", "sort").full_text == "30.125 ± 1.389"


def test_metrics_are_headings_over_the_levels_of_a_factor(make: Make) -> None:
    made = make(value=["max_length", "loss"])
    assert made.columns == ("sort", "addition", "sort", "addition")
    assert made.heading_spans() == (
        (("max_length ↑", 2), ("loss ↓", 2)),
        (("task", 2), ("task", 2)),
    )
    assert made.keys[3] == ColumnKey(metric="loss", level="addition")


def test_a_cell_picks_its_best_level_and_says_which(make: Make, golden: GoldenTexts) -> None:
    made = make(over="lr", pick_by="max_length", select=None)
    notes = {note.mark: note.text for note in made.footnotes}
    picked = {
        (row, column): [notes[mark] for mark in cell_of(made, row, column).marks]
        for row in made.rows
        for column in made.columns
    }
    assert picked["sa", "sort"] == ["not separable from the best", "lr 0.003"]
    tied = "2 of 2 levels of lr tie: the first of the file was taken"
    assert picked["sa", "addition"] == ["not separable from the best", "lr 0.001", tied]
    golden(picked["conv(k=20)", "sort"])
    assert cell_of(made, "sa", "sort").picked == "lr 0.003"
    assert cell_of(made, "sa", "sort").count == 8


def test_a_level_is_picked_once_all_have_run_and_not_if_it_lost_a_seed(forms: Forms) -> None:
    study, outcomes, begun = forms
    levels = {"mixer": "sa", "task": "sort", "lr": 3e-3, "seed": 0}
    (lost,) = (trial.id for trial in study.trials if trial.levels.items() >= levels.items())
    few = spec(over="lr", pick_by="max_length", select=None)
    made = build_table(study, few, outcomes.filter(pl.col("trial") != lost), begun=begun)
    notes = {note.mark: note.text for note in made.footnotes}
    marks = cell_of(made, "sa", "sort").marks
    assert [notes[mark] for mark in marks] == ["1 of 16 trials not run"]
    rose = pl.when(pl.col("trial") == lost).then(pl.lit("rose from 1 to 2")).alias("diverged")
    made = build_table(study, few, outcomes.with_columns(rose), begun=begun)
    notes = {note.mark: note.text for note in made.footnotes}
    marks = cell_of(made, "sa", "sort").marks
    assert [notes[mark] for mark in marks] == ["lr 0.001", "1 of 2 levels of lr has diverged seeds"]


def test_all_metrics_of_a_cell_are_of_the_levels_that_the_first_picked(make: Make, forms: Forms) -> None:
    made = make(over="lr", pick_by="max_length", select=None, value=["max_length", "loss"], columns="task")
    values = values_of(forms, mixer="sa", task="sort", lr=3e-3).values()
    assert made.cells[0][2].estimate == estimate([1 / value for value in values])


@pytest.mark.parametrize("spread", ["sd", "ci"])
def test_a_cell_over_several_levels_has_a_mean_for_each_seed(
    make: Make, forms: Forms, golden: GoldenTexts, spread: Any
) -> None:
    made = make(over=["lr"], select=None, spread=spread)
    cell = cell_of(made, "sa", "sort")
    low, high = (values_of(forms, mixer="sa", task="sort", lr=lr) for lr in (1e-3, 3e-3))
    assert cell.count == 8
    assert cell.estimate == estimate([(low[seed] + high[seed]) / 2 for seed in low], spread=spread)
    golden([note.text for note in made.footnotes])


def test_a_cell_whose_trials_run_is_neither_missing_nor_failed(make: Make, golden: GoldenTexts) -> None:
    made = make()
    cell = cell_of(made, "conv(k=3) + conv(k=5)", "addition")
    assert (cell.status, cell.full_text, cell.marks) == (CellStatus.BEGUN, "begun", ("a", "b"))
    golden([note.text for note in made.footnotes])
    golden(made.remarks)


def test_trials_over_the_budget_are_refused_not_missing(forms: Forms, golden: GoldenTexts) -> None:
    study, outcomes, _ = forms
    small = load_study(study.document.text, overrides=('study.limits.parameters="<= 6000"',))
    made = build_table(small, spec(), outcomes)
    assert [row[0].status for row in made.cells] == [
        CellStatus.REFUSED,
        CellStatus.DONE,
        CellStatus.DONE,
        CellStatus.DONE,
    ]
    assert made.cells[0][0].full_text == "refused"
    golden(made.sentences)


def test_rows_and_columns_that_only_the_paper_has_come_last(make: Make) -> None:
    made = make(beside=True, rest=True)
    assert made.rows[4:] == (
        "cgru",
        "persistent_conv",
        "sa+conv",
        "sa+persistent_conv",
        "sa+highway_conv",
    )
    assert made.columns == ("sort", "addition", "reverse", "multiply", "not", "remember")
    assert [cell.published_text for cell in made.cells[4]] == ["5.7", "16.3", "7.7", "9.0", "104.0", "9.0"]
    assert cell_of(made, "sa", "remember").published_text == "57.0"
    assert cell_of(made, "sa", "remember").status is CellStatus.UNPLANNED


def test_the_papers_names_can_be_given(make: Make) -> None:
    names = {
        "table": "table1",
        "rows": {"conv(k=3) + conv(k=5)": "cgru"},
        "columns": {"loss": "loss_per_token"},
    }
    made = make(value="loss", columns=None, select={"lr": 1e-3, "task": "sort"}, published=names, beside=True)
    assert [row[0].published_text for row in made.cells] == ["1.5189", "1.5327", "1.5358", "1.6834"]


def test_a_frame_has_a_row_for_each_cell_and_every_number(make: Make) -> None:
    made = make(over="lr", pick_by="max_length", select=None, spread="ci", baseline="sa", beside=True)
    frame = made.frame()
    assert frame.shape == (8, 23)
    assert frame.columns[:4] == ["row", "column", "value", "spread"]  # Polars prints these in any case
    first, *_ = frame.filter(pl.col("row") == "conv(k=20)").iter_rows(named=True)
    own = cell_of(made, "conv(k=20)", "sort")
    assert own.estimate is not None
    assert first == {
        "table": "table4",
        "group": None,
        "row": "conv(k=20)",
        "column": "sort",
        "metric": "max_length",
        "status": "done",
        "value": own.estimate.value,
        "spread_is": "ci",
        "spread": own.estimate.spread,
        "low": own.estimate.low,
        "high": own.estimate.high,
        "n": 8,
        "difference": own.difference,
        "difference_half_width": own.difference_half_width,
        "is_significant": True,
        "p": own.p,
        "best": False,
        "tie": False,
        "picked": "lr 0.001",
        "published": 20.7,
        "unit": "tokens",
        "note": "lr 0.001; 1 of 2 levels of lr failed",
        "origin": made.provenance,
    }
