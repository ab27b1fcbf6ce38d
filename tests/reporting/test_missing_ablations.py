"""Single changes of a baseline that the store lacks, and the study that trains them."""

import pytest

from activemem import load_study
from activemem.reporting.missing_ablations import MissingError, find_missing
from activemem.storage import Store
from activemem.studies import make_plan
from activemem.studies.study import shipped_studies

from ..cli.store_factories import store_outcome
from ..study_texts import study_text

SA, CONV = "sa(heads=1, head_width=8)", "conv(k=3)"
TASK = {"name": "reverse"}


def missing(**tables):
    return find_missing(load_study(study_text(**{"task": TASK, **tables})))


def changes(found, folder, *, parts):
    return [cell.change for cell in found.missing_cells(Store(folder)) if cell.is_part == parts]


def test_parts_of_the_baseline_and_levels_by_themselves_are_missing(tmp_path):
    found = missing(
        model={"norm": "{norm}"},
        factors={"mixer": [f"{SA} + {CONV}", CONV], "norm": ["pre", "post"], "seed": [0, 1]},
    )
    assert changes(found, tmp_path, parts=True) == [f"− ({SA} + {CONV})", f"− {CONV}", "− ff(8)"]
    assert changes(found, tmp_path, parts=False) == [f"− {SA}", "norm = post"], "a level, not also a part"
    assert all(len(cell.trials) == 2 for cell in found.missing_cells(Store(tmp_path)))


def test_what_the_store_has_is_not_missing(tmp_path):
    found, store = missing(factors={"mixer": [SA, CONV], "seed": [0, 1]}), Store(tmp_path)
    for trial in found.study.trials:
        store_outcome(trial, store)
    assert changes(found, tmp_path, parts=False) == []
    assert changes(found, tmp_path, parts=True) == [f"− {SA}", "− ff(8)"]


def test_the_baseline_that_the_study_names_is_changed(tmp_path):
    found = missing(study={"baseline": {"mixer": CONV}}, factors={"mixer": [SA, CONV]})
    assert changes(found, tmp_path, parts=False) == [f"{CONV} → {SA}"]
    assert changes(found, tmp_path, parts=True) == [f"− {CONV}", "− ff(8)"]


def test_factors_of_the_task_keep_the_level_of_the_baseline(tmp_path):
    found = missing(factors={"mixer": [SA, CONV], "task": ["reverse", "not"]}, task={"name": "{task}"})
    assert found.held == {"task": "reverse"}
    assert changes(found, tmp_path, parts=False) == [f"{SA} → {CONV}"]


def test_levels_that_go_together_are_changed_by_themselves_where_a_study_can_have_them(tmp_path):
    found = missing(
        study={"design": "zip", "labels": "size"},
        model={"recipe": "sa(heads={heads}, head_width=4, pos=rope) >> ff({filter})", "d_model": 8},
        factors={"size": ["small", "odd"], "heads": [2, 3], "filter": [8, 16]},
    )
    words = changes(found, tmp_path, parts=False)
    assert any("16" in change for change in words)
    assert not any("size" in change for change in words)


@pytest.mark.parametrize(
    "tables",
    [
        pytest.param({"factors": {"mixer": [SA, CONV]}}, id="one seed"),
        pytest.param(
            {
                "factors": {"mixer": [CONV, "conv(k={k})"], "k": [3, 5]},
                "when": {"k": {"mixer": "conv(k={k})"}},
            },
            id="a factor that some cells lack",
        ),
        pytest.param(
            {
                "train": {"optimizer": "{optimizer}"},
                "factors": {
                    "optimizer": [
                        {"name": "adam", "lr": 1e-3},
                        {"name": "sgd", "lr": 0.1, "momentum": "{m}"},
                    ],
                    "m": [0.0, 0.9],
                    "mixer": [CONV],
                },
                "when": {"m": {"optimizer": "sgd"}},
            },
            id="a factor of another level",
        ),
        pytest.param(
            {
                "factors": {
                    "mixer": [SA, CONV],
                    "task": [
                        {"name": "mqar", "length": 16, "pairs": 2, "vocab": 16},
                        {"name": "parity", "lengths": [3, 8]},
                    ],
                },
                "task": {"name": "{task}"},
                "train": {"curriculum": None},
            },
            id="tasks that are tables",
        ),
        pytest.param(
            {
                "study": {"match": "parameters", "baseline": {"mixer": SA, "filter": 32}},
                "model": {"recipe": "2 * ({mixer} >> ff({filter}))"},
                "factors": {"mixer": [SA, CONV], "seed": [0, 1]},
            },
            id="matched sizes",
        ),
        pytest.param(
            {
                "study": {"ablate": "parts"},
                "model": {"recipe": f"{SA} >> ff(8)"},
                "factors": {"seed": [0, 1]},
            },
            id="parts",
        ),
        pytest.param(
            {"factors": {"seed": [0]}, "cells": [{"mixer": SA}, {"mixer": f"{CONV} + ff(8)"}]},
            id="listed cells",
        ),
    ],
)
def test_the_study_that_is_written_has_the_trials_that_are_missing(tables, tmp_path):
    found, store = missing(**tables), Store(tmp_path)
    cells = found.missing_cells(store)
    assert cells
    written = load_study(found.study_text(cells))
    plan = make_plan(written, store)
    assert sum(cell.flops for cell in cells) < plan.flops, "the baseline is there, too"
    assert {trial for cell in cells for trial in cell.trials} < {trial.id for trial in written.trials}
    for trial in written.trials:
        store_outcome(trial, store)
    assert find_missing(found.study).missing_cells(store) == []


def test_the_parts_of_a_ladder_are_removed_at_the_baselines_size_and_steps(tmp_path):
    text = study_text(
        model={"recipe": "{mixer} >> ff(8)", "d_model": "{width}"},
        task=TASK,
        train={"steps_per_epoch": None, "epochs": 1},
        factors={"mixer": [SA, CONV], "seed": [0]},
    )
    study = load_study(f"[ladder]\nsizes = {{ width = [4, 8] }}\ntokens_per_parameter = 40\n{text}")
    found = find_missing(study)
    assert found.held == {"width": 4, "mixer": SA}
    cells = found.missing_cells(Store(tmp_path))
    assert [cell.change for cell in cells] == [f"− {SA}", "− ff(8)"]
    first = load_study(found.study_text(cells)).trials[0]
    assert first.id == study.trials[0].id


def test_a_search_is_refused_with_what_to_do():
    text = study_text(
        task=TASK,
        train={"curriculum": {"start": 5}},
        search={"metric": "max_length", "trials": 2},
        space={"mixer": "choice(conv(k=3), conv(k=5))"},
    )
    with pytest.raises(MissingError, match="study promote"):
        find_missing(load_study(text))


@pytest.mark.heavy
@pytest.mark.parametrize("name", shipped_studies())
def test_the_missing_ablations_of_every_shipped_study_can_be_written(name, tmp_path):
    study = load_study(name)
    if study.search is None:
        found = find_missing(study)
        load_study(found.study_text(found.missing_cells(Store(tmp_path))))
