from datetime import UTC, datetime

import polars as pl
import pytest

from activemem.reporting.subject import (
    factor_column,
    levels_frame,
    metrics_frame,
    stored_levels,
    trials_frame,
    with_task_names,
)
from activemem.storage import MetricRow, Store, TrialRow

WHEN = datetime(2026, 11, 28, tzinfo=UTC)


def row(trial, factors, metrics=(), *, status="done"):
    """Return an outcome of a trial with these factors."""
    return TrialRow(
        trial=trial * 16,
        attempt=0,
        study="small",
        recipe="2 * (sa >> ff(8))",
        recipe_id="0" * 8,
        task="sort",
        seed=1,
        status=status,
        reason=None if status == "done" else "out of memory",
        factors=factors,
        settings="{}",
        metrics=metrics,
        parameters=1,
        flops=1.0,
        epochs=7,
        steps=1,
        seconds=1.0,
        peak_mib=1.0,
        version="0.1.0",
        device="a processor",
        host="elsewhere",
        started=WHEN,
        finished=WHEN,
    )


@pytest.fixture
def store(tmp_path):
    """Store a done trial with a learning curve, and a failed one."""
    store = Store(tmp_path)
    course = [
        MetricRow(step=2, epoch=1, name="loss", value=3.0),
        MetricRow(step=4, epoch=2, name="loss", value=2.0),
    ]
    store.write(row("a", '{"mixer": "sa", "k": 3, "task": "sort"}', (("loss", 2.0), ("gain", 9.0))), course)
    store.write(row("b", '{"mixer": "sa", "k": 20, "epochs": 100}', status="failed"), [])
    return store


def test_every_factor_and_every_final_metric_is_a_column(store):
    outcomes = store.trials()
    frame = trials_frame(outcomes, stored_levels(outcomes))
    assert frame.columns[:9] == [
        "trial",
        "study",
        "mixer",
        "k",
        "task",
        "factor_epochs",
        "status",
        "reason",
        "loss",
    ]
    assert frame.select("mixer", "k", "task", "status", "reason", "loss", "gain").rows() == [
        ("sa", 3, "sort", "done", None, 2.0, 9.0),
        ("sa", 20, "sort", "failed", "out of memory", None, None),
    ]


def test_a_factor_that_is_called_as_something_stored_has_another_name(store):
    outcomes = store.trials()
    frame = trials_frame(outcomes, stored_levels(outcomes))
    assert frame.select("factor_epochs", "epochs").rows() == [(None, 7), (100, 7)]
    assert [factor_column(name) for name in ("seed", "task", "recipe", "loss", "value", "k")] == [
        "seed", "task", "factor_recipe", "factor_loss", "factor_value", "k"
    ]  # fmt: skip


def test_labels_of_tasks_have_their_own_column(store):
    outcomes = store.trials()
    plain = stored_levels(outcomes)
    assert with_task_names(plain, outcomes) is plain
    labelled = with_task_names(levels_frame([("a" * 16, {"task": "short"}), ("b" * 16, {})]), outcomes)
    frame = trials_frame(outcomes, labelled)
    assert frame.select("factor_task", "task").rows() == [("short", "sort"), (None, "sort")]
    numbers = with_task_names(levels_frame([("a" * 16, {"task": 4})]), outcomes)
    assert numbers.select("factor_task", "task").rows() == [(4, "sort")]
    course = metrics_frame(store.metrics().lazy(), labelled).collect()
    assert course.select("factor_task", "task").unique().rows() == [("short", "sort")]


def test_factors_whose_names_would_be_one_column_have_two(store):
    levels = levels_frame([("a" * 16, {"task": "short", "factor_task": 1, "loss": 2, "factor_loss": 3})])
    frame = trials_frame(store.trials(), with_task_names(levels, store.trials()))
    columns = ("task", "factor_task", "factor_factor_task", "factor_loss", "factor_factor_loss")
    assert frame.select(columns).rows() == [("sort", "short", 1, 2, 3)]


def test_a_trial_that_is_two_cells_has_a_row_for_each(store):
    levels = levels_frame(
        [("a" * 16, {"mixer": "sa"}), ("c" * 16, {"mixer": "conv"}), ("a" * 16, {"mixer": "tied(sa)"})]
    )
    frame = trials_frame(store.trials(), levels)
    assert frame.select("mixer", "loss").rows() == [("sa", 2.0), ("tied(sa)", 2.0)]


@pytest.mark.parametrize(
    ("levels", "kind", "values"),
    [
        ([1, 2], pl.Int64, [1, 2]),
        ([1, 0.5], pl.Float64, [1.0, 0.5]),
        ([True, False], pl.Boolean, [True, False]),
        ([True, 1], pl.String, ["true", "1"]),
        (["sa", 1], pl.String, ["sa", "1"]),
        ([2**63, 1], pl.String, ["9223372036854775808", "1"]),
    ],
)
def test_levels_are_numbers_where_all_of_them_are(levels, kind, values):
    found = levels_frame([("a" * 16, {"x": level}) for level in levels])["x"]
    assert (found.dtype, found.to_list()) == (kind, values)


def test_the_course_of_a_metric_has_the_levels_next_to_it(store):
    levels = stored_levels(store.trials()).select("trial", "mixer")
    frame = metrics_frame(store.metrics().lazy(), levels).collect()
    assert frame.columns == ["trial", "mixer", "epoch", "step", "name", "value"]
    assert frame.drop("trial").rows() == [("sa", 1, 2, "loss", 3.0), ("sa", 2, 4, "loss", 2.0)]


def test_an_empty_store_has_a_column_for_each_metric_that_is_known(tmp_path):
    outcomes = Store(tmp_path).trials()
    frame = trials_frame(outcomes, stored_levels(outcomes))
    assert len(frame) == 0
    assert {"max_length", "loss", "status", "settings"} < set(frame.columns)
