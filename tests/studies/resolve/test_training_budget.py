"""`[train] tokens` and `flops`: training budgets converted to steps."""

import json
import re

import pytest

from activemem import StudyError, load_study
from activemem.storage import Store
from activemem.studies import make_plan
from activemem.studies.json_schema import study_schema
from activemem.studies.resolve.costs import max_training_flops, step_flops

from ...study_texts import study_text

TASK = {"name": "mqar", "length": 16, "pairs": 2, "vocab": 16}


def study(factors=None, task=TASK, model=None, **train):
    given = {"curriculum": None, "steps_per_epoch": None, "batch_size": 4, "epochs": 2, **train}
    factors = factors or {"mixer": ["sa(heads=1, head_width=4)", "conv(k=3)"]}
    return load_study(study_text(task=task, train=given, model=model or {}, factors=factors))


def test_tokens_are_turned_into_the_nearest_number_of_steps():
    steps = {trial.settings.train.steps_per_epoch for trial in study(tokens=1300).trials}
    assert steps == {10}, "1300 tokens / (2 epochs * 4 sequences * 16 tokens)"


def test_models_with_equal_flops_take_different_numbers_of_steps():
    found = study(flops=5e7)
    spent = [max_training_flops(trial.settings) for trial in found.trials]
    assert len({trial.settings.train.steps_per_epoch for trial in found.trials}) == 2
    for trial, flops in zip(found.trials, spent, strict=True):
        assert flops == pytest.approx(5e7, abs=step_flops(trial.settings) * trial.settings.train.epochs / 2)


def test_a_trial_has_the_id_that_its_steps_alone_give():
    by_tokens, by_steps = study(tokens=1280), study(steps_per_epoch=10)
    assert [trial.id for trial in by_tokens.trials] == [trial.id for trial in by_steps.trials]


def test_whole_numbers_may_be_written_as_floats():
    floats = study(tokens=1.28e3, batch_size=4.0, epochs=2.0, task={**TASK, "length": 1.6e1})
    assert [trial.id for trial in floats.trials] == [trial.id for trial in study(tokens=1280).trials]


def test_a_budget_can_be_a_factor():
    found = study(factors={"mixer": ["conv(k=3)"], "budget": [1280, 2560]}, tokens="{budget}")
    assert [trial.settings.train.steps_per_epoch for trial in found.trials] == [10, 20]


@pytest.mark.parametrize(
    "train",
    [
        {"tokens": 1280, "flops": 1e9},
        {"steps_per_epoch": 3, "tokens": 1280},
        {"steps_per_epoch": 3, "seconds": 9},
        {"seconds": 0},
        {"tokens": 10},
        {"tokens": -1},
        {"tokens": 1280.5},
        {"tokens": 1e20},
        {"tokens": 1280, "epochs": None},
        {"flops": 0.0},
    ],
    ids=str,
)
def test_a_budget_that_gives_no_steps_is_a_fault_at_its_key(train, golden):
    with golden.raises(StudyError):
        study(**train)


def test_lengths_that_differ_have_no_budget(golden):
    with golden.raises(StudyError):
        study(task={"name": "reverse"}, curriculum={"start": 5}, tokens=1000)


def test_seconds_are_kept_and_may_be_given_for_lengths_that_differ():
    found = study(task={"name": "reverse"}, curriculum={"start": 5}, seconds=30)
    assert {trial.settings.train.seconds for trial in found.trials} == {30.0}
    assert (
        found.trials[0].id
        != study(task={"name": "reverse"}, curriculum={"start": 5}, seconds=60).trials[0].id
    )


def test_the_plan_knows_the_time_of_a_budget_of_seconds(tmp_path):
    plan = make_plan(study(seconds=30), Store(tmp_path), None)
    assert plan.estimate.seconds == 60
    assert "depend on the device" in " ".join(str(plan).split())


def test_the_plan_says_how_near_the_steps_come(tmp_path):
    found = study(flops=5e7)
    text = str(make_plan(found, Store(tmp_path), None))
    assert "% of the budget" in " ".join(text.split())


@pytest.mark.parametrize(("tokens", "percent", "label"), [(65, 100, "warning"), (1300, 5.26, "budget")])
def test_a_budget_is_missed_by_no_more_than_the_plan_says(tokens, percent, label, tmp_path):
    found = study(tokens=tokens)
    (steps,) = {trial.settings.train.steps_per_epoch for trial in found.trials}
    text = str(make_plan(found, Store(tmp_path), None))
    assert re.search(rf"{label} tokens give .*\b{steps} steps? .*\b{percent} %", " ".join(text.split()))
    assert abs(128 * steps / tokens - 1) <= percent / 100


def test_editors_know_the_keys():
    train = json.dumps(study_schema()["properties"]["train"])
    assert '"tokens"' in train
    assert '"flops"' in train


BEYOND = {
    "warmup": ({"schedule": {"warmup": 41}}, {"schedule": {"warmup": 40}}),
    "cooldown": (
        {"schedule": {"name": "warmup_stable_decay", "warmup": 10, "cooldown": 31}},
        {"schedule": {"name": "warmup_stable_decay", "warmup": 10, "cooldown": 30}},
    ),
    "milestones = [40, 50]": (
        {"schedule": {"name": "milestones", "milestones": [20, 40, 50]}},
        {"schedule": {"name": "milestones", "milestones": [20, 39]}},
    ),
    "schedule.patience": (
        {"schedule": {"name": "plateau", "patience": 3}},
        {"schedule": {"name": "plateau", "patience": 2}},
    ),
    "the schedule recent": (
        {"schedule": {"name": "recent", "patience": 3, "every": 10}},
        {"schedule": {"name": "recent", "patience": 2, "every": 10}},
    ),
    "stop.epochs": ({"stop": {"within": 0.1, "epochs": 3}}, {"stop": {"within": 0.1, "epochs": 2}}),
    "early_stopping.patience": (
        {"early_stopping": {"metric": "dev_loss", "patience": 3}},
        {"early_stopping": {"metric": "dev_loss", "patience": 2}},
    ),
    "average": ({"average": 0.99}, {"average": 0.9}),
}
"""By the beginning of the note: settings that 4 epochs of 10 steps do not reach, and such that they do."""


@pytest.mark.parametrize("named", BEYOND)
def test_a_plan_names_a_setting_that_the_training_is_too_short_for(named, tmp_path):
    beyond, within = (
        " ".join(str(make_plan(study(epochs=4, steps_per_epoch=10, **train), Store(tmp_path))).split())
        for train in BEYOND[named]
    )
    assert f" note {named}" in beyond
    assert "of the training" not in within


def test_steps_of_a_training_that_seconds_end_are_not_known():
    plan = str(make_plan(study(seconds=1.0, average=0.9999), Store("nowhere")))
    assert "average" not in plan
