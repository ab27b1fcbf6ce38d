"""A training that ends with most of what it had learnt lost has diverged: told, and in no number."""

from pathlib import Path

import polars as pl
import pytest

import activemem
from activemem.reporting.claims.check import check_claims
from activemem.reporting.claims.verdicts import Verdict
from activemem.reporting.curves.build import build_curve
from activemem.reporting.outcomes import load_outcomes
from activemem.reporting.tables.build import build_table
from activemem.storage import Store
from activemem.storage.schema import TRIALS
from activemem.studies.planning.divergence import DIVERGED, may_diverge, tell_divergence
from activemem.studies.planning.trial_values import trial_values
from activemem.studies.study import load_study

SHIPPED = Path(activemem.__file__).parent / "studies"
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
    return tell_divergence(outcomes(**metrics), frame)


@pytest.mark.parametrize(
    ("losses", "what"),
    [
        ([6.21, 3.98, 5.59], "rose from 3.98 to 5.59"),  # more than half of what it had learnt
        ([6.21, 3.98, 4.9], None),  # less than half
        ([5.0, 1.0, 4.0, 0.9], None),  # it has recovered
        ([2.0, 9.0], "rose from 2.0 to 9.0"),  # it never learnt
        ([0.0800, 0.0795, 0.0801], None),  # nothing is learnt and nothing lost
        ([3.0], None),
    ],
)
def test_a_training_diverged_if_it_lost_more_than_half_of_what_it_had_learnt(losses, what):
    assert told(losses)[DIVERGED].to_list() == [what]


def test_a_metric_of_a_training_that_diverged_is_told_with_its_value_and_a_cost_counts():
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


@pytest.fixture(scope="module")
def committed():
    study, store = load_study(SHIPPED / "translation-small.toml"), Store(SHIPPED / "results")
    return study, store, load_outcomes(store, study)


def test_a_table_shows_the_sound_seeds_and_tells_the_one_that_diverged(committed):
    study, _, rows = committed
    made = build_table(study, study.tables[0], rows)
    cell = made.cells[0][0]
    assert (cell.status, cell.full_text) == ("partial", "300.7")
    notes = {note.mark: note.text for note in made.footnotes}
    assert [notes[mark] for mark in cell.marks] == [f"1 of 2 seeds {TOLD}5,302.7"]


def test_a_claim_over_a_seed_that_diverged_stays_undecided_and_tells_it(committed):
    study, store, rows = committed
    first = check_claims(study, rows, store.metrics())[0]
    assert first.verdict is Verdict.UNDECIDED
    assert [gap.what for gap in first.findings[0].gaps] == [f"1 of 2 seeds {TOLD}5,302.7"]


def test_a_figure_leaves_out_what_diverged_and_says_so(committed):
    study, store, rows = committed
    learning = next(curve for curve in study.curves if curve.name == "learning")
    notes = build_curve(study, learning, rows, store.metrics()).notes
    assert "Left out of 10 trials: 1 diverged." in notes
