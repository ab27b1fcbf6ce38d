"""Tables of effects: estimates, tests, and effects that are not estimable."""

import random
import re

import polars as pl
import pytest

from activemem import StudyError, load_study
from activemem.reporting.tables import build_table
from activemem.storage import trial_frame

from ....study_texts import study_text
from ...conftest import made_row

FACTORS = {
    "norm": ["pre", "post"],
    "dropout": [0.0, 0.1],
    "mixer": ["sa", "conv(k=9)", "sa + conv(k=9)"],
    "task": ["sort"],
    "seed": [0, 1, 2],
}
TABLE = {"name": "effects", "kind": "effects", "value": "loss"}


def study(factors=FACTORS, table=TABLE, **header):
    model = {"norm": "{norm}", "dropout": "{dropout}"}
    return load_study(study_text(study=header, model=model, factors=factors, table=[table]))


def made(studied, loss, fails=()):
    """Return the study's table of trials with a loss by their levels, with some trials failed."""
    draw, frames = random.Random(0), []
    noise = {seed: draw.gauss(0, 1) for seed in studied.factors["seed"]}
    for number, trial in enumerate(studied.trials):
        value = loss(trial.levels) + noise[trial.levels["seed"]] + draw.gauss(0, 0.01)
        end = "failed: disk is full" if number in fails else {"loss": value}
        frames.append(trial_frame(made_row(trial, end, number)))
    return build_table(studied, studied.tables[0], pl.concat(frames).sort("trial"))


def loss(levels):
    return 2 + 0.3 * (levels["norm"] == "post") + 0.2 * (levels["norm"] == "post") * (levels["mixer"] == "sa")


def text(table):
    return {
        row: tuple(cell.full_text for cell in cells)
        for row, cells in zip(table.rows, table.cells, strict=True)
    }


def test_a_grid_has_the_effects_of_its_factors_and_interactions(golden):
    table = made(study(), loss)
    assert table.groups == ("factors",) * 6 + ("interactions",) * 3 + ("besides",) * 3
    rows = text(table)
    assert rows["norm: pre → post"] == ("+0.3687 [0.3607, 0.3768]", "< .001", "3.4 %")
    assert rows["mixer"][:2] == ("", "< .001")
    assert rows["mixer: sa"][0].startswith("+0.06")
    assert rows["norm × dropout"][1] == "1"
    assert rows["norm × mixer"][:2] == ("", "< .001")
    golden(table.caption[0])
    assert re.match("p: F test .* 22 .*; Holm over 6 .*; loss 0.01", table.caption[4])
    shares = table.frame().filter(pl.col("column") == "share")["value"]
    assert shares.sum() == pytest.approx(1)


def test_trials_without_a_value_are_reported_and_shares_do_not_add_up():
    table = made(study(), loss, fails={3, 17})
    assert any(line.endswith(" 36 trials: 2 failed.") for line in table.caption)
    assert any("not add up" in sentence for sentence in table.caption)
    assert text(table)["norm: pre → post"][0].startswith("+0.3")


def test_one_factor_at_a_time_takes_interactions_to_be_nothing_and_says_so():
    table = made(study(design="one_at_a_time"), loss)
    assert "interactions" not in table.groups
    assert any(re.match("Not estimable .* 3 interactions", line) for line in table.caption)


def test_effects_that_a_missing_level_hides_have_no_number(golden):
    lost = [at for at, trial in enumerate(study().trials) if trial.levels["dropout"] == 0.1]
    table = made(study(), loss, fails=lost)
    rows, notes = text(table), {note.mark: note.text for note in table.footnotes}
    assert rows["dropout: 0.0 → 0.1"] == ("–", "", "")
    (mark,) = next(
        cells[0].marks for row, cells in zip(table.rows, table.cells, strict=True) if "dropout:" in row
    )
    golden(notes[mark])
    assert rows["norm: pre → post"][0].startswith("+0.3")


def test_a_factor_of_many_levels_with_values_at_only_one_has_no_number():
    lost = [at for at, trial in enumerate(study().trials) if trial.levels["mixer"] != "sa"]
    rows = text(made(study(), loss, fails=lost))
    assert rows["mixer"] == ("–", "", "")
    assert rows["norm: pre → post"][0].startswith("+0.5")


def test_a_study_without_any_value_has_an_empty_table():
    table = made(study(), loss, fails=range(36))
    assert text(table)["norm: pre → post"] == ("–", "", "")
    assert table.footnotes == ()


@pytest.mark.parametrize(
    "table",
    [
        {"value": "los"},
        {"rows": "norm"},
        {"kind": "effect"},
        {"select": {"norm": "pre", "dropout": 0.0, "mixer": "sa"}},
    ],
    ids=str,
)
def test_settings_that_do_not_fit_are_reported(table, golden):
    with golden.raises(StudyError):
        study(table=TABLE | table)


def test_a_factor_that_some_cells_lack_is_reported(golden):
    factors = {"mixer": ["sa", "conv(k={k})"], "k": [3, 9], "dropout": [0.0, 0.1], "task": ["sort"]}
    when = {"k": {"mixer": "conv(k={k})"}}

    def loaded(**keys):
        table = [TABLE | keys]
        load_study(study_text(model={"dropout": "{dropout}"}, factors=factors, when=when, table=table))

    with golden.raises(StudyError):
        loaded()
    loaded(select={"mixer": "conv(k={k})"})


def test_a_model_of_too_many_columns_is_reported():
    mixers, rates = [f"conv(k={k})" for k in range(1, 33)], [each / 100 for each in range(33)]
    factors = {"mixer": mixers, "dropout": rates, "task": ["sort"]}
    text = study_text(model={"dropout": "{dropout}"}, factors=factors, table=[TABLE])
    with pytest.raises(StudyError, match="1,000 columns, got 1,055 "):
        load_study(text)
