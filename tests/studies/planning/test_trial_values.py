"""The values of trials, or the reasons for missing ones."""

import math

import polars as pl

from activemem import register_metric
from activemem.storage.rows import METRIC_COLUMNS, TRIALS
from activemem.studies import METRICS
from activemem.studies.planning.final_values import combined_status, final_value, trial_values

SEQ2SEQ = "seq2seq(lstm, lstm, attention=luong)"
ENDS = [
    ("a", "done", None, "sa", {"loss": 0.5}),
    ("b", "done", None, "sa", {"loss": math.inf}),
    ("c", "done", None, "sa", {}),
    ("d", "failed", "out of memory\nTraceback", "sa", {"loss": 0.9}),
    ("e", "pruned", "behind the others", "sa", {"loss": 0.8}),
    ("f", "done", None, SEQ2SEQ, {"loss": 0.4}),
    ("g", "done", None, SEQ2SEQ, {"probed[asked]": 20.0}),
]


def outcomes(ends=ENDS):
    """Return stored rows of trials with these ends."""
    rows = [
        {
            "trial": trial,
            "study": "theirs",
            "seed": 3,
            "status": status,
            "reason": reason,
            "recipe": recipe,
            "task": "copy",
            "parameters": 7,
        }
        | {"metrics": [{"name": name, "value": value} for name, value in metrics.items()]}
        for trial, status, reason, recipe, metrics in ends
    ]
    return pl.DataFrame(rows, schema={name: TRIALS[name] for name in rows[0]})


def told(metric, trials="abcdefgh", **more):
    return list(trial_values("mine", trials, outcomes(), metric, **more).drop("seed").iter_rows())


def test_each_trial_has_its_value_or_the_reason_why_there_is_none(golden):
    found = told("loss", "abcdexy", begun=["y"])
    assert [each[:3] for each in found] == [
        ("a", 0.5, "done"),
        ("b", math.inf, "infinite"),
        ("c", None, "none"),
        ("d", 0.9, "failed"),
        ("e", 0.8, "pruned"),
        ("x", None, "missing"),
        ("y", None, "begun"),
    ]
    golden([each[3] for each in found])


def test_a_metric_that_a_probe_measures_later_is_pending_where_a_probe_can_measure_it(golden):
    found = told("theta[luong]", "afgx")
    assert [each[:3] for each in found] == [
        ("a", None, "none"),
        ("f", None, "pending"),
        ("g", None, "none"),
        ("x", None, "missing"),
    ]
    golden([each[3] for each in found])


def test_a_metric_that_was_registered_later_is_not_one_without_a_finite_value():
    register_metric("sureness", title="How sure a model is", kinds=["tagging"])(lambda: None)
    try:
        ends = outcomes([("a", "done", None, "sa", {}), ("b", "done", None, "sa", {"sureness": math.nan})])
        found = trial_values("mine", "ab", ends, "sureness")
        again = "activemem study forget theirs --shared"
        assert found.select("status", "why").rows() == [
            ("none", f"ended before sureness was registered (to train again: {again})"),
            ("none", "ended without a finite sureness"),
        ]
    finally:
        METRICS.unregister("sureness")


def test_a_trial_that_is_asked_for_twice_has_two_rows_with_its_seed():
    found = trial_values("mine", ["a", "x", "a"], outcomes(), "loss")
    assert found.select("trial", "seed").rows() == [("a", 3), ("x", None), ("a", 3)]


def test_the_last_of_several_values_of_a_name_counts():
    twice = [{"name": "loss", "value": 1.0}, {"name": "acc", "value": 5.0}, {"name": "loss", "value": 2.0}]
    rows = outcomes(ENDS[:1]).with_columns(metrics=pl.Series([twice], dtype=TRIALS["metrics"]))
    assert rows.select(final_value("loss")).item() == 2.0


def test_a_cost_is_a_value_too():
    assert told("parameters", "a") == [("a", 7.0, "done", "")]


def test_a_metric_with_an_index_has_the_value_of_the_last_step():
    steps = [(10, "bleu[1-9]", 3.0), (20, "bleu[1-9]", 4.0), (20, "bleu", 9.0), (10, "bleu[10-19]", 5.0)]
    rows = [{"trial": "a", "step": step, "name": name, "value": value} for step, name, value in steps]
    course = pl.DataFrame(rows, schema={name: METRIC_COLUMNS[name] for name in rows[0]})
    assert told("bleu[1-9]", "a", metrics=course) == [("a", 4.0, "done", "")]
    assert told("bleu[10-19]", "a", metrics=course)[0][2] == "none"


def test_several_trials_have_the_status_that_asks_most_of_a_reader():
    assert combined_status(["missing", "pruned", "failed"]).text == "failed"
    assert combined_status(["missing"]).text == "not run"
    assert combined_status(["pruned", "none"]).text == "no value"
