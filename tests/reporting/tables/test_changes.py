"""Tables of changes: baselines first, other cells by their differences, and tests."""

import random

import pytest

from activemem import StudyError, load_study
from activemem.reporting.kinds import build_table
from activemem.reporting.tables.render import own_format_names, render
from activemem.storage import Store

from ...study_texts import study_text
from ..conftest import made_row

TABLE = {"name": "ablation", "rows": "changes", "value": "loss"}
FACTORS = {
    "norm": ["pre", "post"],
    "p": [0.0, 0.1],
    "mixer": ["sa + conv(k=3)", "sa", "sa + conv(k=9)", "sa + conv(k=3) + ff(8)"],
}


def ablation(*, factors=FACTORS, table=TABLE, task="sort", **study):
    seeds = {"task": [task] if isinstance(task, str) else task, "seed": [0, 1, 2]}
    return load_study(
        study_text(
            study={"design": "one_at_a_time", **study},
            model={"norm": "{norm}", "dropout": "{p}", **({"tied": "{tied}"} if "tied" in factors else {})},
            factors=factors | seeds,
            table=[table],
        )
    )


def made(study, folder, loss):
    """Return the study's table over a store with a loss by levels for each trial."""
    store, draw = Store(folder), random.Random(0)
    noise = {seed: draw.gauss(0, 1) for seed in study.factors["seed"]}
    for number, trial in enumerate(study.trials):
        value = loss(trial.levels) + noise[trial.levels["seed"]] + draw.gauss(0, 0.01)
        store.write(made_row(trial, {"loss": value}, number), [])
    return build_table(study, study.tables[0], store.trials())


def test_rows_say_what_differs_under_the_factor_that_does(tmp_path, golden):
    table = made(ablation(), tmp_path, lambda levels: 1.0 + (levels["norm"] == "post"))
    assert list(zip(table.groups, table.rows, strict=True)) == [
        ("", "baseline"),
        ("norm", "norm = post"),
        ("p", "p = 0.1"),
        ("mixer", "− conv(k=3)"),
        ("mixer", "conv(k=3) → conv(k=9)"),
        ("mixer", "+ ff(8)"),
    ]
    assert [bool(row[0].is_significant) for row in table.cells] == [False, True, False, False, False, False]
    assert table.cells[0][0].difference is None
    assert table.cells[1][0].difference == pytest.approx(1.0, abs=0.03)
    assert table.cells[1][0].difference_text.endswith("*")
    golden(table.sentences)


def test_holes_inside_levels_have_the_values_of_their_cells(tmp_path):
    study = load_study(
        study_text(
            study={"design": "one_at_a_time", "ablate": "parts", "baseline": {"k": 7}},
            model={"recipe": "conv(k={k}) >> ff(8)"},
            factors={"k": [3, 7], "task": ["sort"], "seed": [0, 1, 2]},
            table=[TABLE],
        )
    )
    table = made(study, tmp_path, lambda levels: 1.0)
    assert table.rows == ("baseline", "− conv(k=7)", "− ff(8)", "k = 3")
    assert "baseline (recipe = conv(k=7) >> ff(8), k = 7)" in table.remarks[0]
    assert "{" not in " ".join(table.sentences)


def test_a_design_is_repeated_around_each_level_of_a_factor_with_its_own_baseline(tmp_path):
    factors = {"mixer": ["sa", "conv(k=3)", "gru"], "norm": ["pre", "post"], "p": [0.0, 0.1]}
    study = ablation(factors=factors, around="mixer")
    assert len(study.trials) == 3 * 3 * 3
    table = made(
        study, tmp_path, lambda levels: 1.0 + (levels["mixer"] == "gru" and levels["norm"] == "post")
    )
    assert [heading for heading, _ in table.row_groups()] == [
        "mixer = sa",
        "mixer = conv(k=3)",
        "mixer = gru",
    ]
    assert table.rows == ("baseline", "norm = post", "p = 0.1") * 3
    starred = [number for number, row in enumerate(table.cells) if row[0].is_significant]
    assert starred == [7]
    assert "of each mixer (norm = pre, p = 0.0)" in table.remarks[0]
    for form in own_format_names():
        assert render(table, form)


def test_rows_with_equal_names_are_distinguished_by_their_factors(tmp_path):
    mixers = ["sa", "sa + conv(k=3)"]
    study = load_study(
        study_text(
            study={"design": "one_at_a_time", "around": "norm"},
            model={"recipe": "{first} >> {second} >> ff(4)", "norm": "{norm}"},
            task={"name": "sort"},
            factors={"norm": ["pre"], "first": mixers, "second": mixers, "seed": [0, 1]},
            table=[TABLE],
        )
    )
    table = made(study, tmp_path, lambda levels: 1.0)
    assert table.rows == ("baseline", "+ conv(k=3) (first)", "+ conv(k=3) (second)")


def test_several_tasks_are_columns_with_a_family_of_tests_each(tmp_path):
    study = ablation(
        task=["sort", "copy"],
        around=["task"],
        table=TABLE | {"columns": "task"},
        factors={"mixer": ["sa"], "norm": ["pre", "post"], "p": [0.0, 0.1]},
    )
    table = made(study, tmp_path, lambda levels: 1.0 + (levels["task"] == "copy" and levels["p"] == 0.1))
    assert table.columns == ("sort", "copy")
    assert table.rows == ("baseline", "norm = post", "p = 0.1")
    assert [[cell.is_significant for cell in row] for row in table.cells] == [[False] * 2] * 2 + [
        [False, True]
    ]


def test_in_a_grid_cells_that_change_several_factors_come_last(tmp_path):
    study = ablation(design="grid", factors={"mixer": ["sa"], "norm": ["pre", "post"], "p": [0.0, 0.1]})
    table = made(study, tmp_path, lambda _: 1.0)
    assert list(zip(table.groups, table.rows, strict=True)) == [
        ("", "baseline"),
        ("norm", "norm = post"),
        ("p", "p = 0.1"),
        ("several", "norm = post, p = 0.1"),
    ]


def test_another_baseline_can_be_named(tmp_path):
    study = ablation(
        design="grid",
        factors={"mixer": ["sa"], "p": [0.0], "norm": ["pre", "post"]},
        table=TABLE | {"baseline": {"norm": "post"}},
    )
    table = made(study, tmp_path, lambda levels: 1.0 + (levels["norm"] == "post"))
    assert table.rows == ("baseline", "norm = pre")
    assert table.cells[1][0].difference == pytest.approx(-1.0, abs=0.03)


@pytest.mark.parametrize(
    "changes",
    [
        {"table": TABLE | {"baseline": "post"}},
        {"table": TABLE | {"baseline": {"norm": "past"}}},
        {"table": TABLE | {"baseline": {"nor": "post"}}},
        {"table": TABLE | {"rows": "change"}},
        {"table": TABLE | {"select": {"p": 0.1}}},
        {"around": "mixes"},
        {"around": "mixer", "design": "grid"},
    ],
)
def test_settings_that_do_not_fit_are_reported(changes, golden):
    with pytest.raises(StudyError) as caught:
        ablation(**changes)
    golden([fault.message for fault in caught.value.faults])


def test_parts_of_a_recipe_are_taken_away_one_by_one(tmp_path):
    text = study_text(
        study={"ablate": "parts"},
        model={"recipe": "2 * (sa + conv(k=3) >> ff(8))"},
        factors={"task": ["sort"], "seed": [0, 1, 2]},
        table=[TABLE],
    )
    study = load_study(text, ["train.epochs=1"])
    table = made(study, tmp_path, lambda levels: 1.0 + ("conv" not in levels["recipe"]))
    assert table.rows == ("baseline", "− (sa + conv(k=3))", "− sa", "− conv(k=3)", "− ff(8)")
    assert [row[0].is_significant for row in table.cells] == [False, True, False, True, False]


@pytest.mark.parametrize(
    ("recipe", "factors"),
    [
        ("sa", {}),
        ("sa + gru", {"recipe": ["sa"]}),
        ("sa + grue", {}),
    ],
)
def test_recipes_that_cannot_be_broken_down_are_reported(recipe, factors, golden):
    factors = {"task": ["sort"], **factors}
    with pytest.raises(StudyError) as caught:
        load_study(study_text(study={"ablate": "parts"}, model={"recipe": recipe}, factors=factors))
    golden([fault.message for fault in caught.value.faults])
