"""Divergence: a training that ends much worse than its best, or worse than a guess."""

import math

import polars as pl
import pytest

from activemem.storage.rows import TRIALS
from activemem.studies.catalog.tasks import read_task_settings
from activemem.studies.planning.final_values import (
    DIVERGED,
    describe_divergence,
    guessing_losses,
    may_diverge,
    trial_values,
)

CORPUS = {
    "layout": {"form": "csv", "train": ("a" * 64,), "columns": ("text", "label")},
    "rows": {"train": 90, "dev": 9, "test": 9},
    "lists": False,
    "symbols": 2000,
    "classes": 5,
}
TOLD = "diverged: the loss of seed 1 rose from 3.98 to 5.59, its test_perplexity is "


def outcomes(status="done", **metrics):
    row = {
        "trial": "a",
        "study": "mine",
        "seed": 1,
        "status": status,
        "reason": None,
        "recipe": "sa",
        "task": "copy",
        "parameters": 7,
        "metrics": [{"name": name, "value": value} for name, value in metrics.items()],
    }
    return pl.DataFrame([row], schema={name: TRIALS[name] for name in row})


def told(losses, dev=(), **metrics):
    schema = {"trial": pl.String, "epoch": pl.Int64, "value": pl.Float64}

    def find_course(name, attempts):
        values = {"loss": losses, "dev_loss": dev}[name]
        course = [("a", epoch, float(value)) for epoch, value in enumerate(values, 1)]
        return pl.DataFrame(course, schema=schema, orient="row")

    rows = outcomes(**metrics)
    return describe_divergence(rows, rows, find_course, {"a": 9.0})


@pytest.mark.parametrize(
    ("losses", "what"),
    [
        ([6.21, 3.98, 5.59], "rose from 3.98 to 5.59"),  # more than half of what it had learnt
        ([6.21, 3.98, 4.9], None),  # less than half
        ([5.0, 1.0, 4.0, 0.9], None),  # it has recovered
        ([2.0, 9.0], "rose from 2.0 to 9.0"),  # it never learnt
        ([90.0, 90.0], "ended at 90.0, where guessing gives 9.0"),  # bad from the first on
        ([90.0, 12.0], "ended at 12.0, where guessing gives 9.0"),
        ([9.5, 9.2, 9.1], None),  # it knows nothing, and is not sure of it
        ([12.0, 11.5, 11.0], None),  # it is slow: its first weights were bad
        ([12.0, 11.0, 11.5], "ended at 11.5, where guessing gives 9.0"),
        ([0.0800, 0.0795, 0.0801], None),  # nothing is learnt and nothing lost
        ([3.0], None),
    ],
)
def test_a_training_diverged_if_it_lost_more_than_half_of_what_it_had_learnt(losses, what):
    assert told(losses)[DIVERGED].to_list() == [what]


@pytest.mark.parametrize(
    ("dev", "diverged"),
    [
        ([0.844, 0.788, 0.774, 0.737], False),  # the last epoch of the training loss was noisy
        ([0.844, 0.700, 0.774, 0.760], False),  # it has risen by less than a tenth
        ([0.844, 0.700, 0.774, 0.790], True),
        ([0.737], True),  # measured once, it cannot contradict
    ],
)
def test_a_training_whose_dev_loss_has_not_risen_did_not_diverge(dev, diverged):
    what = "rose from 0.743 to 0.832" if diverged else None
    assert told([0.865, 0.805, 0.743, 0.832], dev)[DIVERGED].to_list() == [what]


@pytest.mark.parametrize(("dev", "diverged"), [([20.0, 9.5], False), ([20.0, 12.0], True), ([12.0], True)])
def test_a_training_whose_dev_loss_is_that_of_a_guess_did_not_diverge(dev, diverged):
    what = "ended at 12.0, where guessing gives 9.0" if diverged else None
    assert told([90.0, 12.0], dev)[DIVERGED].to_list() == [what]


def test_an_overfitted_training_did_not_diverge():
    assert told([3.0, 1.0, 0.2], [3.0, 1.0, 2.9])[DIVERGED].to_list() == [None]


def test_a_metric_of_a_training_that_diverged_is_reported_with_its_value_and_a_cost_counts():
    rows = told([6.21, 3.98, 5.59], test_perplexity=5302.7)
    assert trial_values("mine", ["a"], rows, "test_perplexity").rows() == [
        ("a", 1, 5302.7, "diverged", f"{TOLD}5,302.7")
    ]
    assert trial_values("mine", ["a"], rows, "parameters").rows() == [("a", 1, 7.0, "done", "")]
    assert trial_values("mine", ["a"], rows, "bleu")["status"].to_list() == ["none"]


def test_a_training_on_sequences_that_grow_longer_or_that_failed_does_not_diverge():
    assert outcomes(loss=1.0).select(may_diverge()).item()
    assert not outcomes(loss=1.0, max_length=9.0).select(may_diverge()).item()
    assert not outcomes("failed", loss=1.0).select(may_diverge()).item()


def test_the_loss_of_a_guess_is_that_of_the_outputs_and_not_of_the_inputs():
    labelled = {"tokens": "symbols", "corpus": CORPUS}
    tables = {
        "symbols": {"name": "reverse_copy"},
        "numbers": {"name": "recall_addition", "length": 50},
        "classes": {"name": "sequence_classification", **labelled},
        "classes of tokens": {"name": "token_classification", "corpus": CORPUS},
        "labels": {"name": "sequence_regression", **labelled, "corpus": {**CORPUS, "classes": None}},
        "target": {"name": "translation", "corpus": "multi30k-en-de", "tokens": "bpe", "pieces": 7000},
        "characters": {"name": "language_model", "corpus": "text8"},
    }
    tasks = {trial: read_task_settings(table) for trial, table in tables.items()}
    assert guessing_losses(tasks) == {
        "symbols": math.log(132),
        "classes": math.log(5),
        "classes of tokens": math.log(5),
        "labels": 1.0,
        "target": math.log(7000),
        "characters": math.log(28),
    }


def test_a_loss_that_is_no_number_diverged_and_other_failures_did_not():
    rows = told([6.21, 3.98, 5.59], test_perplexity=5302.7)
    for reason, status in (("not a number at epoch 3\nTraceback", "diverged"), ("out of memory", "failed")):
        failed = rows.with_columns(
            status=pl.lit("failed"), reason=pl.lit(reason), diverged=pl.lit(None, dtype=pl.String)
        )
        (row,) = trial_values("mine", ["a"], failed, "test_perplexity").select("status", "why").rows()
        whole = "diverged: the loss of seed 1 was not a number at epoch 3"
        assert row == (status, whole if status == "diverged" else "failed: out of memory")
        assert trial_values("mine", ["a"], failed, "parameters")["status"].to_list() == ["failed"]
