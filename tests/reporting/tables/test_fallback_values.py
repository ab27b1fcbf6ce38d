"""Fallback values of tables, for cells without a value of the metric."""

from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from activemem import Study, load_study
from activemem.reporting import Table
from activemem.reporting.kinds import build_table
from activemem.reporting.tables.render import render
from activemem.reporting.tables.table import Cell, CellStatus
from activemem.reporting.tables.tally import Tally, pick_best
from activemem.storage.rows import trial_frame
from activemem.studies.presentation.table_keys import CellsTable

from ...golden import GoldenTexts
from ...study_texts import study_text
from ..conftest import made_row

STUDY = study_text(
    study={"name": "solving", "title": "Who solves it, and when"},
    model={"recipe": "{pool}"},
    task={"name": "recall_addition", "length": "{length}"},
    train={"optimizer": {"name": "adam", "lr": "{lr}"}, "epochs": 9, "curriculum": None},
    factors={
        "pool": ["attention_pool", "mean_pool", "last"],
        "length": [50, 100],
        "lr": [0.01, 0.001],
        "seed": [0, 1, 2],
    },
    table=[
        {
            "name": "solved",
            "rows": "pool",
            "columns": "length",
            "value": "solved_epochs",
            "otherwise": "best_accuracy",
            "over": "lr",
            "pick_by": "solved_epochs",
        }
    ],
)

# By pool, length and lr, for each seed: the epochs it took, or below 1 the accuracy that was reached.
ENDS: dict[tuple[str, int, float], tuple[float | str | None, ...]] = {
    ("attention_pool", 50, 0.01): (1, 0.9, 0.8),
    ("attention_pool", 50, 0.001): (2, 3, 4),
    ("attention_pool", 100, 0.01): (0.5, 0.5, 0.5),
    ("attention_pool", 100, 0.001): (7, 0.25, 0.75),
    ("mean_pool", 50, 0.01): (0.5, 0.5, 0.5),
    ("mean_pool", 50, 0.001): (0.75, 0.875, "failed: disk is full at epoch 2"),
    ("mean_pool", 100, 0.01): ("failed: disk is full at epoch 1",) * 3,
    ("mean_pool", 100, 0.001): (0.25, 0.25, 0.25),
}


@pytest.fixture(scope="module")
def study() -> Study:
    return load_study(STUDY)


@pytest.fixture(scope="module")
def outcomes(study: Study) -> pl.DataFrame:
    frames = []
    for number, trial in enumerate(study.trials):
        pool, length, lr = (trial.levels[name] for name in ("pool", "length", "lr"))
        ends = ENDS.get((str(pool), int(length), float(lr)), (None,) * 3)
        end = ends[int(trial.levels["seed"])]
        if end is None:
            continue
        metrics: dict[str, float] | str = end if isinstance(end, str) else {"best_accuracy": min(end, 1.0)}
        if not isinstance(end, str) and end >= 1 and isinstance(metrics, dict):
            metrics["solved_epochs"] = end
        frames.append(trial_frame(made_row(trial, metrics, number)))
    return pl.concat(frames).sort("trial")


@pytest.fixture(scope="module")
def made(study: Study, outcomes: pl.DataFrame) -> Table:
    return build_table(study, study.tables[0], outcomes)


def spec(study: Study, **changes: Any) -> CellsTable:
    keys = study.tables[0].model_dump(exclude={"published"}, exclude_none=True) | changes
    return CellsTable.model_validate({key: value for key, value in keys.items() if value is not None})


def cell_of(made: Table, row: str, column: str) -> Cell:
    return made.cells[made.rows.index(row)][made.columns.index(column)]


def notes(made: Table, cell: Cell) -> list[str]:
    return [note.text for note in made.footnotes if note.mark in cell.marks]


def test_the_level_that_more_seeds_solve_is_picked_and_then_the_quicker_one(
    made: Table, golden: GoldenTexts
) -> None:
    cell = cell_of(made, "attention_pool", "50")
    assert (cell.full_text, cell.picked, cell.metric) == ("3 ± 1", "lr 0.001", "")
    some = cell_of(made, "attention_pool", "100")
    assert (some.full_text, some.picked, some.status) == ("7", "lr 0.001", CellStatus.PARTIAL)
    golden(notes(made, some))


def test_if_no_level_is_solved_the_other_metric_is_in_parentheses_and_decides(
    made: Table, golden: GoldenTexts
) -> None:
    cell = cell_of(made, "mean_pool", "50")
    assert (cell.full_text, cell.picked, cell.metric) == ("(0.500 ± 0.000)", "lr 0.01", "best_accuracy")
    assert (cell.status, cell.best) == (CellStatus.DONE, False)
    golden(notes(made, cell))


def test_a_level_without_either_metric_is_reported(made: Table, golden: GoldenTexts) -> None:
    cell = cell_of(made, "mean_pool", "100")
    assert cell.full_text == "(0.250 ± 0.000)"
    golden(notes(made, cell))


def test_cells_that_have_not_run_say_so(made: Table) -> None:
    assert cell_of(made, "last", "50").full_text == "–"


def test_the_caption_says_what_the_parentheses_are(made: Table, golden: GoldenTexts) -> None:
    golden(made.sentences)


def test_a_single_level_is_not_picked_and_not_mentioned(golden: GoldenTexts) -> None:
    one = load_study(STUDY, ["factors.lr=[0.001]", "factors.seed=[0]"])
    rows = [trial_frame(made_row(trial, {"solved_epochs": 2.0}, n)) for n, trial in enumerate(one.trials)]
    golden(build_table(one, one.tables[0], pl.concat(rows)).caption)


def test_a_trial_that_is_done_without_the_metric_did_not_fail(
    study: Study, outcomes: pl.DataFrame, golden: GoldenTexts
) -> None:
    changes = {"otherwise": None, "over": None, "pick_by": None, "select": {"lr": 0.01}}
    alone = build_table(study, spec(study, **changes), outcomes)
    cell = cell_of(alone, "mean_pool", "50")
    assert (cell.full_text, cell.status) == ("no value", CellStatus.NO_VALUE)
    golden(notes(alone, cell))


def test_the_long_form_says_which_metric_a_number_is(made: Table) -> None:
    frame = made.frame().filter(pl.col("column") == "50").select("row", "metric", "value")
    assert frame.rows() == [
        ("attention_pool", "solved_epochs", 3.0),
        ("mean_pool", "best_accuracy", 0.5),
        ("last", "solved_epochs", None),
    ]
    assert "(0.500 ± 0.000)" in render(made, "markdown")


def test_without_picking_all_trials_of_a_cell_are_together(study: Study, outcomes: pl.DataFrame) -> None:
    one = build_table(study, spec(study, over=None, pick_by=None, select={"lr": 0.01}), outcomes)
    assert cell_of(one, "attention_pool", "50").full_text == "1"
    assert cell_of(one, "attention_pool", "100").full_text == "(0.500 ± 0.000)"
    assert cell_of(one, "mean_pool", "100").full_text == "failed"


@pytest.mark.parametrize(
    "changes",
    [
        {"otherwise": "best_acuracy"},
        {"otherwise": "flops"},
        {"value": "best_accuracy"},
        {"value": ["solved_epochs", "loss"]},
        {"baseline": "last"},
        {"digits": {"loss": 2}},
    ],
    ids=str,
)
def test_an_unsuitable_fallback_metric_is_a_fault(
    study: Study, changes: dict[str, Any], golden: GoldenTexts
) -> None:
    ((path, message),) = spec(study, **changes).faults(study.design, None)
    golden(f"{'.'.join(path)}: {message}")


def test_digits_of_the_fallback_metric_are_no_fault(study: Study) -> None:
    assert spec(study, digits={"best_accuracy": 2}).faults(study.design, None) == []


def test_a_level_is_picked_beside_failed_ones_once_all_have_run() -> None:
    spec = load_study(STUDY).tables[0]
    done = Tally(trials=1, values=(3.0,), label="lr 0.001", ends=(("done", 3.0),))
    failed, open_ = (
        replace(done, values=(), gaps=((each, "x"),), ends=((each, None),)) for each in ("failed", "missing")
    )
    place = ("mean_pool", "50", spec.value[0])
    for others, told in (
        ((failed, failed), ("lr 0.001", "2 of 3 levels of lr failed")),
        ((failed, open_), ("", "")),
    ):
        levels = (done, *(replace(each, label=f"lr {number}") for number, each in enumerate(others, 1)))
        found = {place: levels, (*place[:2], spec.otherwise): levels}
        picked = pick_best(spec, found)[place]
        assert (picked.label, picked.pick_remark) == told
