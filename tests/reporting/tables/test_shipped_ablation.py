"""The included ablation: one file and one table, with stars at simulated effects."""

import random

import polars as pl
import pytest

from activemem import load_study
from activemem.reporting.kinds import build_table
from activemem.reporting.tables.render import render
from activemem.storage.rows import trial_frame

from ..conftest import made_row

SD = 1.0
PLANTED = {
    ("convolution", "norm", "post"): -9.0,
    ("gated_convolution", "kernel", 7): -10.0,
    ("attention_and_convolution", "position", "none"): -11.0,
}
"""Simulated effects of factor changes on the lengths of one mixer, in standard deviations of a seed."""


@pytest.fixture(scope="module")
def study():
    return load_study("ablation-small")


@pytest.fixture(scope="module")
def rows(study):
    """Return a row of each trial, in the order of the study."""
    made = [trial_frame(made_row(trial, {"max_length": 0.0}, 1)) for trial in study.trials]
    return pl.concat(made)


def simulated(study, rows, seed):
    """Return the study's table over simulated lengths with these effects and noise."""
    draw = random.Random(seed)
    of_seed = {each: draw.gauss(0, SD) for each in study.factors["seed"]}
    values = []
    for trial in study.trials:
        levels = trial.levels
        effects = (
            effect
            for (mixer, factor, level), effect in PLANTED.items()
            if levels["mixer"] == f"{{{mixer}}}" and levels[factor] == level
        )
        mean = 20.0 + 5.0 * (levels["task"] == "addition") + sum(effects)
        values.append([{"name": "max_length", "value": mean + of_seed[levels["seed"]] + draw.gauss(0, SD)}])
    metrics = pl.Series("metrics", values, dtype=rows.schema["metrics"])
    return build_table(study, study.tables[0], rows.with_columns(metrics))


def starred(table):
    """Return the rows with a star, by column."""
    return {
        name: {
            f"{group}: {row}"
            for group, row, cells in zip(table.groups, table.rows, table.cells, strict=True)
            if cells[number].is_significant
        }
        for number, name in enumerate(table.columns)
    }


def test_it_is_one_table_of_changes_around_each_mixer_without_a_select(study, rows):
    assert [spec.rows for spec in study.tables] == ["changes"]
    assert not any(spec.select for spec in study.tables)
    table = simulated(study, rows, 0)
    assert table.row_groups()[0][1] == (0, 1, 2, 3, 4)
    assert table.rows[:5] == ("baseline", "norm = post", "dropout = 0.0", "kernel = 7", "position = none")
    assert len(table.rows) == 15
    assert table.caption == "Longest length with at least 95 % accuracy: mean ± s.d. of 3 seeds."
    assert "(norm = pre, dropout = 0.1, kernel = 15, position = timing)" in table.remarks[0]


def test_stars_are_where_an_effect_was_planted_and_hardly_anywhere_else(study, rows):
    planted = {f"mixer = {mixer}: {factor} = {level}" for mixer, factor, level in PLANTED}
    found, false, columns = 0, 0, 0
    for seed in range(20):
        for stars in starred(simulated(study, rows, seed)).values():
            found += len(stars & planted)
            false += bool(stars - planted)
            columns += 1
    assert found >= 0.6 * columns * len(planted)
    assert false <= 0.05 * columns


def test_its_table_could_be_printed(study, rows):
    text = render(simulated(study, rows, 0), "latex")
    assert "\\begin{table" in text
    assert max(map(len, render(simulated(study, rows, 0), "rich").splitlines())) <= 80
