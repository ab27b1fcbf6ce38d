"""The nearest stored recipes: their results by cell, and faults of queries."""

import json

import polars as pl
import pytest

from activemem import RecipeError, nearest_recipes
from activemem.reporting import NearestError
from activemem.reporting.recipes import format_nearest
from activemem.storage import Store, trial_frame

from ...storage.factories import make_trial_row


class Rows(Store):
    """A store with these trials."""

    def __init__(self, *rows):
        super().__init__("rows")
        self.rows = rows

    def trials(self):
        return pl.concat([trial_frame(row) for row in self.rows], how="vertical")


def row(number, recipe, seed=0, *, value=None, d_model=64, task="sort", **changes):
    return make_trial_row(
        number,
        recipe=recipe,
        seed=seed,
        task=task,
        factors=json.dumps({"mixer": recipe, "lr": 0.1, "seed": seed}),
        settings=json.dumps({"model": {"recipe": recipe, "d_model": d_model}, "seed": seed}),
        metrics=() if value is None else (("loss", 0.5), ("accuracy", value)),
        status="failed" if value is None else "done",
        reason="disk is full" if value is None else None,
        **changes,
    )


STORE = Rows(
    row(0, "sa >> ff(64)", 0, value=0.5),
    row(1, "sa >> ff(64)", 1, value=0.7),
    row(2, "sa >> ff(64)", 2),
    row(3, "sa >> ff(64)", 0, value=0.9, d_model=128),
    row(4, "conv(k=3) >> ff(64)", value=0.8, task="copy"),
    row(5, "4 * (gru >> lstm)", value=0.1),
    row(6, "block_of_a_plugin(3)", value=0.1),
)


def test_trainings_that_differ_in_their_seed_alone_are_one_result():
    same, other = nearest_recipes("sa >> ff(64)", STORE, count=2)
    assert (same.distance, other.distance, other.difference) == (0.0, 1.0, "sa → conv(k=3)")
    both = [(each.d_model, each.metric, each.n, dict(each.ended)) for each in same.results]
    assert both == [(64, "accuracy", 2, {"done": 2, "failed": 1}), (128, "accuracy", 1, {"done": 1})]
    assert same.results[0].mean == pytest.approx(0.6)
    assert same.results[0].sd == pytest.approx(0.1 * 2**0.5)


def test_the_text_has_distances_differences_and_results():
    assert format_nearest(nearest_recipes("sa >> ff(32)", STORE, count=2)) == (
        " 0.25  sa >> ff(64)   id 29fdf77a\n"
        "       ff(32) → ff(64)\n"
        "       alpha  sort  accuracy 0.600 ± 0.141 n=2 (1 failed)  lr=0.1\n"
        "       alpha  sort  accuracy 0.900 n=1                     lr=0.1\n"
        " 1.25  conv(k=3) >> ff(64)   id 60ca3583\n"
        "       sa >> ff(32) → conv(k=3) >> ff(64)\n"
        "       alpha  copy  accuracy 0.800 n=1  lr=0.1"
    )


def test_a_task_and_a_metric_leave_out_the_rest():
    (found,) = nearest_recipes("sa", STORE, task="copy")
    assert found.recipe == "conv(k=3) >> ff(64)"
    assert [each.metric for each in nearest_recipes("sa", STORE, metric="loss")[0].results] == ["loss"] * 2


def test_all_faults_of_a_question_are_reported_at_once(golden):
    with golden.raises(NearestError):
        nearest_recipes("choice(sa, gru) >> {end}", STORE, task="cpoy", metric="acuracy")
    with pytest.raises(RecipeError):
        nearest_recipes("saa", STORE)
