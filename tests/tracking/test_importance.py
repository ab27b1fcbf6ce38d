"""The importance of a search's dimensions is Optuna's, over the points that the search ranks."""

import json
from dataclasses import replace
from pathlib import Path

import optuna
import pytest

from activemem import load_study, open_study
from activemem.storage import MetricRow, Store
from activemem.tracking.contract import TrackingError
from activemem.tracking.importance import dimension_importances
from activemem.tracking.search_export import export_search

from ..reporting.conftest import made_row
from ..studies.test_plan import keep
from ..study_texts import SEARCH_OF_RUNGS, study_text

COMMITTED = Path(__file__).parents[2] / "studies" / "results"


def importances(name, store):
    opened = open_study(name, store)
    return dimension_importances(opened.study, opened.store)


def test_the_importances_of_a_search_are_shares_with_the_largest_first():
    found, points, _ = importances("tune-kernel", COMMITTED)
    assert points == 22  # the points of 40 whose trials reached the last rung
    assert found.keys() == {"k", "dropout", "lr"}
    assert sum(found.values()) == pytest.approx(1)
    assert list(found.values()) == sorted(found.values(), reverse=True)


@pytest.fixture
def several(tmp_path):
    """Return a search with two objectives, and a store with 10 sound points and a diverged one."""
    study = load_study(
        study_text(
            model={"recipe": "conv(k={k}) >> ff({filter})"},
            task={"name": "mqar", "length": 32, "pairs": 4},
            train={"curriculum": None},
            factors={"mixer": None, "task": None, "seed": [0]},
            search={"trials": 11, "metric": ["loss", "parameters"]},
            space={"k": "integer(2, 40)", "filter": "integer(2, 40)"},
        )
    )
    store = Store(tmp_path / "results")
    for number in range(11):
        (trial,) = study.search.trials_of({"k": 2 + number, "filter": 12 - number})
        losses = (6.5, 0.5, 6.0) if number == 10 else (6.5, 2.0 + number / 10)
        course = [MetricRow(step=n, epoch=n, name="loss", value=loss) for n, loss in enumerate(losses, 1)]
        row = made_row(trial, {"loss": losses[-1]}, number)
        store.write(replace(row, factors=json.dumps(dict(trial.levels))), course)
    return study, store


def test_an_importance_for_one_of_several_objectives_has_no_point_that_diverged(several, golden):
    for metric in ("loss", "parameters"):
        assert dimension_importances(*several, metric).points == 10
    with golden.raises(TrackingError):
        dimension_importances(*several)


@pytest.mark.parametrize("is_related", [True, False])
def test_an_importance_is_clear_only_where_the_values_depend_on_the_dimension(tmp_path, is_related):
    space = {"k": "integer(2, 80)", "filter": "integer(2, 80)"}
    study = load_study(
        study_text(
            model={"recipe": "conv(k={k}) >> ff({filter})"},
            task={"name": "copy"},
            factors={"mixer": None, "task": None, "seed": [0]},
            search={"trials": 60, "metric": "loss"},
            space=space,
        )
    )
    store = Store(tmp_path)
    for number in range(60):
        point = {"k": 2 + number, "filter": 2 + number * 11 % 60}
        (trial,) = study.search.trials_of(point)
        value = number if is_related else number * 7 % 60
        row = made_row(trial, {"loss": 1.0 + value / 100}, number)
        store.write(replace(row, factors=json.dumps(dict(trial.levels))), [])
    found = dimension_importances(study, store)
    assert found == dimension_importances(study, store)
    assert found.unclear == (["filter"] if is_related else [*found.shares])
    assert all(0 < p <= 1 for p in found.p_values.values())


def test_a_point_that_diverged_has_failed_for_optuna(several, storages, tmp_path):
    path = f"{tmp_path}/search.db"
    export_search(*several, path)
    last = optuna.load_study(study_name="tiny", storage=storages(path)).trials[-1]
    assert (last.state.name, last.user_attrs["reason"]) == ("FAIL", "the training diverged")


def test_points_on_lower_rungs_have_no_importance(tmp_path, golden):
    study, store = load_study(SEARCH_OF_RUNGS), Store(tmp_path)
    for k in range(2, 20):
        for trial in study.search.trials_of({"k": k}, study.search.rungs.top if k < 5 else 0):
            settings = trial.settings.model_dump_json()
            keep(store, trial, minutes=k, metrics=(("loss", 1 / k),), settings=settings)
    with golden.raises(TrackingError):
        dimension_importances(study, store)


def test_an_importance_leaves_optunas_log_level():
    optuna.logging.set_verbosity(optuna.logging.INFO)
    importances("tune-kernel", COMMITTED)
    assert optuna.logging.get_verbosity() == optuna.logging.INFO


def test_a_search_with_too_few_points_and_a_grid_are_refused(tmp_path, golden):
    with golden.raises(TrackingError):
        importances("tune-kernel", tmp_path)
    with golden.raises(TrackingError):
        importances("quickstart", tmp_path)
