"""Tables of aggregates: common scores, methods with missing tasks, and impossible aggregates."""

import random

import polars as pl
import pytest

from activemem import StudyError, load_study
from activemem.reporting.tables import build_table
from activemem.storage import trial_frame

from ....study_texts import study_text
from ...conftest import made_row

FACTORS = {"mixer": ["sa", "conv(k=9)"], "task": ["sort", "reverse", "copy"], "seed": [0, 1, 2]}
TABLE = {
    "name": "overall",
    "kind": "aggregate",
    "rows": "mixer",
    "tasks": "task",
    "value": "max_length",
    "bounds": {"max_length": [0, 10], '"max_length:copy"': [0, 20]},
    "baseline": "sa",
    "target": 1.0,
}


def study(**changes):
    table = {key: value for key, value in (TABLE | changes).items() if value is not None}
    return load_study(study_text(factors=FACTORS, table=[table]))


def made(studied, fails=lambda levels: False):
    """Return the study's table; lengths are at least 4, one more for convolutions, and doubled in copy."""
    draw, frames = random.Random(0), []
    for number, trial in enumerate(studied.trials):
        levels = trial.levels
        length = (4 + (levels["mixer"] != "sa") + draw.random()) * (1 + (levels["task"] == "copy"))
        end = "failed: x" if fails(levels) else {"max_length": length, "loss": 10 - length}
        frames.append(trial_frame(made_row(trial, end, number)))
    return build_table(studied, studied.tables[0], pl.concat(frames).sort("trial"))


def test_each_method_has_its_scores_over_all_tasks():
    table = made(study())
    assert table.columns == ("IQM ↑", "mean ↑", "median ↑", "gap ↓", "better ↑")
    first, second = table.cells
    assert [0.4 < cell.estimate.value < 0.5 for cell in first[:3]] == [True] * 3
    assert all(cell.estimate.low < cell.estimate.value < cell.estimate.high for cell in second[:4])
    assert first[3].estimate.value == pytest.approx(1 - first[1].estimate.value)
    assert first[4].text == ""
    assert (second[4].text, second[4].interval) == ("1.00", "")
    assert "Scores: max_length from 0 to 10 on sort, 0 to 10 on reverse, 0 to 20 on copy as 0 to 1." in (
        table.caption
    )
    assert "9,999 resamples, seed 0" in table.caption[-1]


def test_intervals_of_two_seeds_stay_within_the_possible_scores():
    shares = {**TABLE, "value": "accuracy", "bounds": {"accuracy": [0.5, 1]}, "target": 0.9}
    factors = {"mixer": ["sa", "conv(k=9)"], "task": ["sort", "reverse"], "seed": [0, 1]}
    studied = load_study(study_text(factors=factors, table=[shares]))
    frames = [
        trial_frame(made_row(trial, {"accuracy": 0.99 if trial.seed else 0.55}, number))
        for number, trial in enumerate(studied.trials)
    ]
    (iqm, mean, median, gap, _), _ = build_table(studied, studied.tables[0], pl.concat(frames)).cells
    assert all(cell.estimate.low >= -1 for cell in (iqm, mean, median))  # the score of an accuracy of 0
    assert all(cell.interval.endswith(", 1.000]") for cell in (iqm, mean, median))
    assert gap.interval.startswith("[0.000, ")


def test_without_bounds_a_loss_is_better_where_it_is_less():
    table = made(study(value="loss", bounds=None, target=None))
    assert table.columns[0] == "IQM ↓"
    assert table.cells[1][3].text == "1.00"


def test_a_method_that_lacks_a_task_has_no_number():
    table = made(study(), fails=lambda levels: (levels["mixer"], levels["task"]) == ("conv(k=9)", "sort"))
    assert [cell.text for cell in table.cells[1]] == ["–", "", "", "", ""]
    assert table.footnotes[0].text.endswith(" sort.")
    assert table.caption[-1].endswith(" 18 trials: 3 failed.")


@pytest.mark.parametrize(
    "changes",
    [
        {"value": ["loss", "max_length"], "bounds": None},
        {"value": ["loss", "max_length"]},
        {"bounds": {"max_length": [10, 0]}},
        {"bounds": {"max_length": [10]}},
        {"bounds": {'"max_length:sorted"': [0, 1]}},
        {"bounds": {'"max_length:sort"': [0, 1]}},
        {"value": "gradient_norm", "bounds": None},
        {"tasks": "mixer"},
        {"tasks": "tusk"},
        {"tasks": []},
        {"baseline": "ff"},
    ],
    ids=str,
)
def test_tables_that_cannot_be_aggregated_are_reported(changes, golden):
    with golden.raises(StudyError):
        study(**changes)
