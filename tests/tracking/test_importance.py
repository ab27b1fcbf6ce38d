"""The importance of a search's dimensions is Optuna's, over the points that are done."""

from pathlib import Path

import optuna
import pytest

from activemem import open_study
from activemem.tracking import TrackingError, dimension_importances

COMMITTED = Path(__file__).parents[2] / "studies" / "results"


def importances(name, store):
    opened = open_study(name, store)
    return dimension_importances(opened.study, opened.store)


def test_the_importances_of_a_search_are_shares_with_the_largest_first():
    found, points = importances("tune-kernel", COMMITTED)
    assert points == 22  # the points of 40 whose trials reached the last rung
    assert found.keys() == {"k", "dropout", "lr"}
    assert sum(found.values()) == pytest.approx(1)
    assert list(found.values()) == sorted(found.values(), reverse=True)


def test_an_importance_leaves_optunas_log_level():
    optuna.logging.set_verbosity(optuna.logging.INFO)
    importances("tune-kernel", COMMITTED)
    assert optuna.logging.get_verbosity() == optuna.logging.INFO


def test_a_search_with_too_few_points_and_a_grid_are_refused(tmp_path, golden):
    with golden.raises(TrackingError):
        importances("tune-kernel", tmp_path)
    with golden.raises(TrackingError):
        importances("quickstart", tmp_path)
