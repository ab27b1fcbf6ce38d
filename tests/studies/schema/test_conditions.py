"""[when]: conditional factors in cells, tables, figures and claims."""

import pytest

from activemem import StudyError, load_study
from activemem.reporting.claims.check import check_claims
from activemem.reporting.kinds import build_curve, build_table
from activemem.reporting.subject import study_levels
from activemem.storage import Store
from activemem.studies.designs.grid import Grid
from activemem.studies.schema.design import MAX_TRIALS
from activemem.studies.text.strict_model import PartSettings

from ...reporting.conftest import made_row
from ...study_texts import study_text

CONV, GATED = "conv(k={k})", "conv(k={k}, act={act})"
FACTORS = {"k": [3, 5], "act": ["relu", "gelu"], "mixer": ["sa", CONV, GATED], "task": ["sort"]}
WHEN = {"k": {"mixer": [CONV, GATED]}, "act": {"mixer": GATED}}


def study(*overrides, when=WHEN, factors=FACTORS, arrays=None, **keys):
    return load_study(study_text(study=keys, factors=factors, when=when, **(arrays or {})), overrides)


def cells(found):
    return [tuple(str(trial.levels[name]) for name in ("mixer", "k", "act")) for trial in found.cells]


def faults(*overrides, **keys):
    with pytest.raises(StudyError) as caught:
        study(*overrides, **keys)
    return [fault.message for fault in caught.value.faults]


def test_a_grid_has_each_cell_once_and_no_level_where_a_factor_is_absent(golden):
    found = study()
    assert cells(found) == [
        ("sa", "–", "–"),
        (CONV, "3", "–"),
        (CONV, "5", "–"),
        *((GATED, k, act) for k in ("3", "5") for act in ("relu", "gelu")),
    ]
    assert found.factors["k"] == (3, 5)
    golden(found.design.explain())
    assert list(found.trials[0].levels) == ["k", "act", "mixer", "task", "seed"]
    plain = load_study(study_text(factors=FACTORS))
    assert {trial.id for trial in found.trials} == {trial.id for trial in plain.trials}


def test_a_plan_counts_the_levels_of_a_condition_that_has_many():
    wide = [f"{CONV} >> ff({size})" for size in range(8, 16)]
    factors = {"k": [3, 5], "mixer": ["sa", *wide], "task": ["sort"]}
    found = study(factors=factors, when={"k": {"mixer": wide}})
    assert found.design.explain().endswith("8 levels")


def test_a_nested_grid_is_counted_without_absent_factors():
    design = Grid(
        settings=PartSettings(name="grid"),
        combined_factors={"k": tuple(range(60_000)), "mixer": ("sa", "gru", "conv"), "seed": (0,)},
        listed_cells={},
        baseline={},
        conditions={"k": {"mixer": ("conv",)}},
    )
    assert design.count() == 60_002 < MAX_TRIALS


def test_one_at_a_time_changes_factors_that_are_present():
    assert cells(study(design="one_at_a_time")) == [
        ("sa", "–", "–"),
        (CONV, "3", "–"),
        (GATED, "3", "relu"),
    ]
    around = study(design="one_at_a_time", around="mixer")
    assert cells(around) == [
        ("sa", "–", "–"),
        *((CONV, "3", "–"), (CONV, "5", "–")),
        *((GATED, "3", "relu"), (GATED, "5", "relu"), (GATED, "3", "gelu")),
    ]

    absent = study(design="one_at_a_time", around="k")
    assert cells(absent) == [
        ("sa", "–", "–"),
        (CONV, "3", "–"),
        (GATED, "3", "relu"),
        (CONV, "5", "–"),
        (GATED, "5", "relu"),
    ]


def test_each_size_of_a_ladder_has_a_conditional_factor_where_its_condition_holds():
    found = load_study(
        study_text(
            model={"recipe": "{depth} * ({mixer} >> ff(16))", "d_model": 16},
            task={"name": "sort"},
            train={"steps_per_epoch": None},
            factors={"mixer": ["sa", CONV], "k": [3, 5], "seed": [0]},
            when={"k": {"mixer": CONV}},
        )
        + "\n[ladder]\nsizes = { depth = [1, 2] }\ntokens_per_parameter = 0.1\n"
    )
    assert [(trial.levels["depth"], trial.levels["mixer"], trial.levels["k"]) for trial in found.cells] == [
        *((depth, "sa", "–") for depth in (1, 2)),
        *((depth, CONV, k) for k in (3, 5) for depth in (1, 2)),
    ]


def test_a_random_sample_has_as_many_different_cells_as_are_asked_for():
    found = study(design={"name": "random", "cells": 6}, plugins=["sampled_designs"])
    assert len(set(cells(found))) == 6
    assert set(cells(found)) < set(cells(study()))


def test_listed_cells_need_no_level_of_absent_factors():
    listed = [{"mixer": "sa"}, {"mixer": CONV, "k": 9}]
    factors = {"task": ["sort"], "mixer": ["sa", CONV], "k": [3]}
    found = study(
        factors=factors,
        when={"k": {"mixer": CONV}},
        arrays={"cells": [{"task": "sort"} | each for each in listed]},
    )
    assert [(trial.levels["mixer"], trial.levels["k"]) for trial in found.cells] == [
        *(("sa", "–"), (CONV, 3), (CONV, 9)),
    ]


def test_tables_figures_and_claims_are_empty_where_a_factor_is_absent(tmp_path):
    found = study(
        arrays={
            "table": [
                {"name": "k", "rows": "mixer", "columns": "k", "value": "loss", "over": "act"},
                {"name": "changes", "rows": "changes", "value": "loss"},
                {"name": "best", "rows": "mixer", "value": "loss", "over": ["k", "act"], "pick_by": "loss"},
                {"name": "means", "rows": "task", "value": "loss", "over": ["k", "act", "mixer"]},
            ],
            "curve": [
                {"name": "k", "kind": "line", "value": "loss", "x": "k", "series": "mixer"}
                | {"select": {"mixer": ["sa", CONV]}},
                {"name": "mixers", "kind": "bar", "value": "loss", "x": "mixer"}
                | {"select": {"mixer": ["sa", CONV], "k": 3}},
            ],
            "claim": [
                {"name": "k", "holds": f"loss[mixer={CONV}, k=5] > loss[mixer=sa]"},
                {"name": "all", "holds": f"all(loss[mixer={CONV}, k=n] > loss[mixer=sa] for n in k)"},
            ],
        }
    )
    store = Store(tmp_path)
    for number, trial in enumerate(found.trials):
        store.write(made_row(trial, {"loss": float(number)}, number), [])
    outcomes = store.trials()
    table = build_table(found, found.tables[0], outcomes)
    assert table.columns == ("3", "5")
    assert [cell.text for cell in table.cells[0]] == ["", ""]
    assert "one seed, the mean over act" in table.caption
    changes = build_table(found, found.tables[1], outcomes)
    assert changes.rows == (
        *("baseline", "sa → conv(k=k)", "sa → conv(k=k, act=act)"),
        *(
            "k = 5, sa → conv(k=k)",
            "k = 5, sa → conv(k=k, act=act)",
            "act = gelu, sa → conv(k=k, act=act)",
        ),
        "k = 5, act = gelu, sa → conv(k=k, act=act)",
    )
    assert "k = " not in changes.caption[1]
    best = build_table(found, found.tables[2], outcomes)
    assert [row[0].picked for row in best.cells] == ["k –, act –", "k 3", "k 3, act relu"]
    assert " of up to 2 levels of k and 2 of act" in best.caption
    means = build_table(found, found.tables[3], outcomes).caption
    assert "one seed, the mean over k, act and mixer." in means
    drawn, bars = (build_curve(found, spec, outcomes).panels[0].content for spec in found.curves)
    assert [line.name for line in drawn.lines] == ["conv"]
    assert [(bar.name, bar.text) for bar in bars.bars] == [("sa", "0.0000"), ("conv", "1.0000")]
    assert study_levels(found, outcomes)["k"].to_list() == [None, 3, 5, 3, 3, 5, 5]
    checked = check_claims(found, outcomes)
    labels = [[part.label for part in each.findings] for each in checked]
    assert labels == [
        ["k=5, conv(k=k) > sa"],
        ["k=3, conv(k=k) > sa", "k=5, conv(k=k) > sa"],
    ]
    assert checked[0].findings[0].text == "loss[k=5, mixer=conv(k={k})] > loss[mixer=sa]"


@pytest.mark.parametrize(
    "keys",
    [
        {"when": {"kk": {"mixer": CONV}}},
        {"when": {"k": {"mixr": CONV}}},
        {"when": {"k": {"mixer": "gru"}}},
        {"when": {"k": {"act": "relu"}, "act": {"k": 3}}},
        {"when": {"k": {"k": 3}}},
        {"when": {"k": {"seed": 3}}},
        {"factors": FACTORS | {"k": []}},
        {"when": {"k": 3}},
        {"when": {"k": {"mixer": CONV}}},
        {"design": "zip"},
        {"design": "zip", "around": ["mixer", "task"]},
        {"factors": FACTORS | {"k": [3, "–"]}},
        {"arrays": {"cells": [{"mixer": "sa", "k": 3, "task": "sort"}]}},
    ],
)
def test_impossible_conditions_are_reported(keys, golden):
    golden(faults(**keys))


def test_a_random_sample_that_is_larger_than_the_grid_is_reported(golden):
    (message,) = faults(design={"name": "random", "cells": 8}, plugins=["sampled_designs"])
    golden(message)


OWN_KEYS = """
[study]
name = "own-keys"
title = "Two tasks"

[model]
recipe = "sa(heads=1, head_width=4)"
d_model = 4

[task]
name = "{task}"
pairs = "{pairs}"
lengths = ["{shortest}", "{longest}"]

[train]
optimizer = { name = "adam", lr = 1e-3 }
batch_size = 2
epochs = 1
steps_per_epoch = 1

[factors]
task = ["mqar", "parity"]
pairs = [2, 3]
shortest = [4]
longest = [9]

[when]
pairs = { task = "mqar" }
shortest = { task = "parity" }
longest = { task = "parity" }
"""


def test_a_key_with_the_hole_of_an_absent_factor_is_left_out():
    found = [trial.settings.task for trial in load_study(OWN_KEYS).trials]
    assert [(task.name, getattr(task, "pairs", None)) for task in found] == [
        ("mqar", 2),
        ("mqar", 3),
        ("parity", None),
    ]
    assert found[2].lengths == (4, 9)


def test_levels_are_checked_where_their_factor_is_present(golden):
    with pytest.raises(StudyError) as caught:
        load_study(OWN_KEYS.replace("[2, 3]", "[2, 900]"))
    (fault,) = caught.value.faults
    golden(fault.message)
