"""Divergence: a training that ends much worse than its best, or worse than a guess."""

import math

import polars as pl
import pytest

from activemem.storage import TRIALS
from activemem.studies.catalog.tasks import read_task_settings
from activemem.studies.planning import (
    DIVERGED,
    describe_divergence,
    may_diverge,
    trial_values,
    uniform_losses,
)

TOLD = "diverged: the loss of seed 1 rose from 3.98 to 5.59; it has "


def outcomes(status="done", **metrics):
    row = {
        "trial": "a",
        "seed": 1,
        "status": status,
        "reason": None,
        "recipe": "sa",
        "task": "copy",
        "parameters": 7,
        "metrics": [{"name": name, "value": value} for name, value in metrics.items()],
    }
    return pl.DataFrame([row], schema={name: TRIALS[name] for name in row})


def told(losses, **metrics):
    course = [("a", epoch, float(value)) for epoch, value in enumerate(losses, 1)]
    frame = pl.DataFrame(course, schema=["trial", "epoch", "value"], orient="row")
    return describe_divergence(outcomes(**metrics), frame, {"a": 9.0})


@pytest.mark.parametrize(
    ("losses", "what"),
    [
        ([6.21, 3.98, 5.59], "rose from 3.98 to 5.59"),  # more than half of what it had learnt
        ([6.21, 3.98, 4.9], None),  # less than half
        ([5.0, 1.0, 4.0, 0.9], None),  # it has recovered
        ([2.0, 9.0], "rose from 2.0 to 9.0"),  # it never learnt
        ([90.0, 90.0], "ended at 90.0, where uniform guessing gives 9.0"),  # bad from the first on
        ([90.0, 12.0], "ended at 12.0, where uniform guessing gives 9.0"),
        ([9.5, 9.2, 9.1], None),  # it knows nothing, and is not sure of it
        ([0.0800, 0.0795, 0.0801], None),  # nothing is learnt and nothing lost
        ([3.0], None),
    ],
)
def test_a_training_diverged_if_it_lost_more_than_half_of_what_it_had_learnt(losses, what):
    assert told(losses)[DIVERGED].to_list() == [what]


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


def test_the_loss_of_equally_likely_symbols_is_known_for_tasks_with_symbols():
    tables = {"symbols": {"name": "reverse_copy"}, "numbers": {"name": "recall_addition", "length": 50}}
    tasks = {trial: read_task_settings(table) for trial, table in tables.items()}
    assert uniform_losses(tasks) == {"symbols": math.log(132)}
