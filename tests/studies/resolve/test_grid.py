"""Cells of every design, listed cells, and budgets."""

from activemem import load_study
from activemem.grammar import analyse, parse
from activemem.reporting.kinds import build_table
from activemem.reporting.tables.table import CellStatus
from activemem.storage import Store

from ...study_texts import study_text

TEXT = study_text(
    model={"recipe": "2 * ({mixer} >> ff({filter}))", "d_model": 16}, train={"steps_per_epoch": 3}
)

FACTORS = """\
[factors]
mixer = ["sa", "conv(k=3)", "cgru(k=3)"]
seed = [3, 5]
filter = [8, 16, 32]
task = ["sort", "copy", "reverse"]
"""

TWO = """\
[[cells]]
mixer = "sa"
filter = 8
task = "sort"

[[cells]]
mixer = "conv(k=5)"
filter = 64
task = "copy"
"""


def study(factors, *keys):
    """Return the study with these factors and cells, and these keys in [study]."""
    return load_study(TEXT.replace('study"\n', "\n".join(['study"', *keys, ""])) + factors)


def cells(found):
    """Return the levels of every requested cell, with its seed last."""
    return [
        (*(level for name, level in trial.levels.items() if name != "seed"), trial.settings.seed)
        for trial in found.cells
    ]


def test_zip_takes_the_first_levels_together_then_the_second_and_so_on():
    assert cells(study(FACTORS, 'design = "zip"')) == [
        (*levels, seed)
        for levels in (("sa", 8, "sort"), ("conv(k=3)", 16, "copy"), ("cgru(k=3)", 32, "reverse"))
        for seed in (3, 5)
    ]


def test_one_at_a_time_varies_each_factor_by_itself_around_the_baseline():
    found = study(FACTORS.replace("3, 5", "0"), 'design = "one_at_a_time"', "baseline = { filter = 16 }")
    assert cells(found) == [
        ("sa", 16, "sort", 0),
        ("conv(k=3)", 16, "sort", 0),
        ("cgru(k=3)", 16, "sort", 0),
        ("sa", 8, "sort", 0),
        ("sa", 32, "sort", 0),
        ("sa", 16, "copy", 0),
        ("sa", 16, "reverse", 0),
    ]


def test_a_grid_is_the_design_of_a_study_that_names_none():
    assert study(FACTORS, 'design = "grid"').trials == study(FACTORS).trials
    assert len(study(FACTORS).trials) == 3 * 3 * 3 * 2


def test_listed_cells_join_those_of_the_design_and_cross_with_the_seeds():
    found = study(FACTORS + TWO)
    assert cells(found)[54:] == [("conv(k=5)", 64, "copy", 3), ("conv(k=5)", 64, "copy", 5)]
    assert found.factors["mixer"] == ("sa", "conv(k=3)", "cgru(k=3)", "conv(k=5)")
    assert found.factors["filter"] == (8, 16, 32, 64)
    assert [list(trial.levels) for trial in found.cells] == [["mixer", "seed", "filter", "task"]] * 56


def test_listed_cells_take_the_place_of_a_grid_that_has_no_factors():
    found = study(TWO + "\n[factors]\nseed = [3, 5]\n")
    assert cells(found) == [
        ("sa", 8, "sort", 3),
        ("sa", 8, "sort", 5),
        ("conv(k=5)", 64, "copy", 3),
        ("conv(k=5)", 64, "copy", 5),
    ]
    assert list(found.factors) == ["mixer", "filter", "task", "seed"]
    assert list(study(TWO).factors) == ["mixer", "filter", "task", "seed"]


def test_a_listed_cell_has_the_baselines_level_where_it_names_none():
    found = study(TWO.replace("filter = 8\n", ""), "baseline = { filter = 64 }")
    assert cells(found) == [("sa", "sort", 64, 0), ("conv(k=5)", "copy", 64, 0)]


def test_a_listed_cell_is_the_same_trial_as_the_cell_of_a_grid():
    grid = {trial.id for trial in study(FACTORS).trials}
    assert study(TWO + "\n[factors]\nseed = [3, 5]\n").trials[0].id in grid


def test_equal_cells_are_one_trial_that_has_all_of_them():
    found = study(FACTORS.replace('"cgru(k=3)"', '"conv(3)"'))
    assert len(found.trials) == 2 * 3 * 3 * 2
    assert len(found.cells) == 3 * 3 * 3 * 2
    same = [trial for trial in found.cells if trial.id == found.trials[18].id]
    assert [trial.levels["mixer"] for trial in same] == ["conv(k=3)", "conv(3)"]


def test_cells_over_budget_are_not_run_and_not_forgotten():
    found = study(FACTORS.replace("3, 5", "0"), 'limits.parameters = "<= 9000"')
    assert cells(found) == [
        *(("conv(k=3)", size, task, 0) for size in (8, 16, 32) for task in ("sort", "copy", "reverse")),
        *(("cgru(k=3)", 8, task, 0) for task in ("sort", "copy", "reverse")),
        ("cgru(k=3)", 16, "sort", 0),
        ("cgru(k=3)", 32, "sort", 0),
    ]
    assert len(found.over_budget) == 27 - 14
    whole = analyse(parse("2 * (sa >> ff(8))"), d_model=16, length=40, vocab=20)
    told = f"parameters {whole.parameters:,}, not <= 9,000"
    assert (
        found.budget.describe_excess(found.over_budget[0].settings)
        == told
        == "parameters 66,916, not <= 9,000"
    )


def test_both_bounds_of_a_budget_hold(golden):
    found = study(FACTORS.replace("3, 5", "0"), 'limits = { parameters = "<= 9000", step_flops = "<= 4e6" }')
    assert {trial.levels["mixer"] for trial in found.cells} == {"conv(k=3)"}
    whole = analyse(parse("2 * (sa >> ff(8))"), d_model=16, length=40, vocab=20)
    assert 4 * whole.training_flops == 142_356_480
    golden(found.budget.describe_excess(found.over_budget[0].settings))
    (slow,) = {
        found.budget.describe_excess(trial.settings)
        for trial in found.over_budget
        if trial.levels["mixer"] == "cgru(k=3)"
        and trial.levels["filter"] == 8
        and trial.levels["task"] == "sort"
    }
    golden(slow)


def test_a_search_asks_whether_a_point_is_within_budget():
    text = TEXT.replace("{mixer}", "conv(k={k})").replace("{filter}", "8").replace("{task}", "copy")
    text = text.replace('study"\n', 'study"\nlimits.parameters = "<= 7000"\n') + (
        '[search]\ntrials = 3\nmetric = "loss"\ndirection = "min"\n\n[search.space]\nk = "integer(3, 40)"\n'
    )
    found = load_study(text)
    allowed = [k for k in range(3, 41) if found.budget.allows(found.search.trial_of({"k": k}).settings)]
    assert allowed == [3, 4, 5]
    assert load_study(text.replace('limits.parameters = "<= 7000"\n', "")).budget.allows(
        found.search.trial_of({"k": 40}).settings
    )


TABLE = """
[[table]]
name = "t"
rows = "mixer"
columns = "task"
value = "loss"
select = { filter = 8 }
"""


def statuses(found, tmp_path):
    """Return the status of each cell of the study's table in an empty store, by row."""
    made = build_table(found, found.tables[0], Store(tmp_path).trials())
    return {row: [cell.status for cell in cells] for row, cells in zip(made.rows, made.cells, strict=True)}


def test_a_table_leaves_empty_what_a_design_does_not_ask_for(tmp_path):
    asked, not_asked = CellStatus.MISSING, CellStatus.UNPLANNED
    assert statuses(study(FACTORS + TABLE, 'design = "one_at_a_time"'), tmp_path) == {
        "sa": [asked, asked, asked],
        "conv(k=3)": [asked, not_asked, not_asked],
        "cgru(k=3)": [asked, not_asked, not_asked],
    }
    assert statuses(study(FACTORS + TABLE + TWO.replace("64", "8")), tmp_path)["conv(k=5)"] == [
        not_asked,
        asked,
        not_asked,
    ]


def test_a_table_says_what_is_over_budget_and_shows_a_trial_in_all_of_its_cells(tmp_path):
    found = study(FACTORS.replace('"cgru(k=3)"', '"conv(3)"') + TABLE, 'limits.parameters = "<= 9000"')
    assert statuses(found, tmp_path) == {
        "sa": [CellStatus.REFUSED] * 3,
        "conv(k=3)": [CellStatus.MISSING] * 3,
        "conv(3)": [CellStatus.MISSING] * 3,
    }
