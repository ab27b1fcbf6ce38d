"""Scores over tasks: statistics by hand, their intervals, profiles, and methods that lack a task."""

import itertools
import random

import numpy as np
import polars as pl
import pytest

from activemem import StudyError, load_study
from activemem.reporting.curves.draw.figure import draw
from activemem.reporting.kinds import build_curve, build_table
from activemem.storage.rows import trial_frame

from ..reporting.conftest import made_row
from ..study_texts import study_text

FACTORS = {"mixer": ["sa", "conv(k=9)"], "task": ["sort", "reverse", "copy"], "seed": [0, 1, 2]}
TABLE = {
    **{"name": "it", "kind": "aggregate", "rows": "mixer", "tasks": "task"},
    **{"value": "accuracy", "baseline": "sa"},
}
PROFILE = {"name": "it", "kind": "profile", "series": "mixer", "tasks": "task", "value": "accuracy"}


def study(factors=FACTORS, **parts):
    return load_study(study_text(study={"plugins": ["aggregate"]}, factors=factors, **parts))


def accuracies(studied):
    """Return an accuracy for each trial, higher for convolutions."""
    generator = random.Random(0)
    return [
        0.4 + 0.3 * (trial.levels["mixer"] != "sa") + 0.2 * generator.random() for trial in studied.trials
    ]


def outcomes(studied, fails=lambda levels: False):
    frames = []
    for number, (trial, value) in enumerate(zip(studied.trials, accuracies(studied), strict=True)):
        end = "failed: x" if fails(trial.levels) else {"accuracy": value, "loss": 1 - value}
        frames.append(trial_frame(made_row(trial, end, number)))
    return pl.concat(frames).sort("trial")


def made(studied, **keys):
    return build_table(studied, studied.tables[0], outcomes(studied, **keys))


def test_each_method_has_its_statistics_over_all_tasks(golden):
    studied = study(table=[TABLE])
    table, found = made(studied), accuracies(studied)
    assert table.columns == ("IQM", "mean", "median", "better")
    for row, mixer in zip(table.cells, FACTORS["mixer"], strict=True):
        runs = [
            [
                value
                for trial, value in zip(studied.trials, found, strict=True)
                if (trial.levels["mixer"], trial.levels["task"]) == (mixer, task)
            ]
            for task in FACTORS["task"]
        ]
        means = [np.mean(task) for task in runs]
        middle = np.mean(sorted(itertools.chain(*runs))[2:-2])
        assert [cell.estimate.value for cell in row[:3]] == pytest.approx(
            [middle, np.mean(means), np.median(means)], abs=1e-12
        )
        assert all(cell.estimate.low < cell.estimate.value < cell.estimate.high for cell in row[:3])
    first, second = table.cells
    assert first[3].text == ""
    assert (second[3].estimate.value, second[3].interval) == (1.0, "")
    golden("\n".join(table.sentences))


def test_the_interval_of_a_mean_has_the_error_of_independent_seeds():
    studied = study(table=[TABLE])
    mean = made(studied).cells[0][1].estimate
    found = zip(studied.trials, accuracies(studied), strict=True)
    own = [value for trial, value in found if trial.levels["mixer"] == "sa"]
    variances = [np.var(own[at : at + 3], ddof=1) for at in (0, 3, 6)]
    error = np.sqrt(np.mean(variances) / 9)
    assert (mean.high - mean.low) / 2 == pytest.approx(2.447 * error, rel=0.03)  # t of 6 degrees of freedom


def test_intervals_stay_within_the_possible_values():
    factors = {**FACTORS, "seed": [0, 1]}
    studied = study(factors, table=[TABLE])
    frames = [
        trial_frame(made_row(trial, {"accuracy": 0.99 if trial.seed else 0.55}, number))
        for number, trial in enumerate(studied.trials)
    ]
    (iqm, mean, median, _), _ = build_table(studied, studied.tables[0], pl.concat(frames)).cells
    assert all(cell.estimate.high == 1 for cell in (iqm, mean, median))


def test_ties_count_half_and_a_lower_loss_is_better():
    studied = study(table=[TABLE | {"value": "loss"}])
    assert made(studied).cells[1][3].estimate.value == 1.0
    frames = [
        trial_frame(made_row(trial, {"loss": float(trial.seed)}, number))
        for number, trial in enumerate(studied.trials)
    ]
    better = build_table(studied, studied.tables[0], pl.concat(frames)).cells[1][3].estimate
    assert better.value == pytest.approx(0.5)


def test_a_method_that_lacks_a_task_has_no_number():
    fails = lambda levels: (levels["mixer"], levels["task"]) == ("conv(k=9)", "sort")  # noqa: E731
    table = made(study(table=[TABLE]), fails=fails)
    assert [cell.text for cell in table.cells[1]] == ["–", "", "", ""]
    assert table.footnotes[0].text == "No value for sort."
    assert table.remarks[-1].endswith(" 18 trials: 3 failed.")


def test_one_seed_has_no_interval():
    table = made(study({**FACTORS, "seed": [0]}, table=[TABLE]))
    assert [cell.interval for cell in table.cells[1]] == [""] * 4


def test_a_profile_has_the_share_of_runs_above_each_value():
    studied = study(curve=[PROFILE])
    curve = build_curve(studied, studied.curves[0], outcomes(studied))
    draw(curve, "svg")
    rows = [row for row in curve.panels[0].content.data if row["method"] == "sa"]
    own = [
        value
        for trial, value in zip(studied.trials, accuracies(studied), strict=True)
        if trial.levels["mixer"] == "sa"
    ]
    for row in rows:
        assert row["share"] == pytest.approx(np.mean([value > row["score"] for value in own]))
        assert row["low"] is None or row["low"] <= row["share"] <= row["high"]
    assert rows[-1]["low"] is None  # all runs are below


def test_a_profile_names_methods_that_lack_a_task():
    studied = study(curve=[PROFILE])
    found = outcomes(studied, fails=lambda levels: (levels["mixer"], levels["task"]) == ("sa", "sort"))
    curve = build_curve(studied, studied.curves[0], found)
    draw(curve, "svg")
    assert {row["method"] for row in curve.panels[0].content.data} == {"conv(k=9)"}
    assert "Without a value for some task: sa." in curve.notes


def test_a_profile_without_results_is_empty():
    studied = study(curve=[PROFILE])
    draw(build_curve(studied, studied.curves[0], outcomes(studied, fails=lambda _levels: True)), "svg")


@pytest.mark.parametrize(
    "keys",
    [{"tasks": "mixer"}, {"tasks": "tusk"}, {"baseline": "ff"}, {"select": {"task": "sort"}}],
    ids=str,
)
def test_tables_that_cannot_be_aggregated_are_reported(keys, golden):
    with golden.raises(StudyError):
        study(table=[TABLE | keys])


def test_cells_that_mix_another_factor_are_reported(golden):
    factors = {**FACTORS, "dropout": [0.0, 0.1]}
    with golden.raises(StudyError):
        study(factors, model={"dropout": "{dropout}"}, table=[TABLE])
    study(factors, model={"dropout": "{dropout}"}, table=[TABLE | {"select": {"dropout": 0.1}}])
