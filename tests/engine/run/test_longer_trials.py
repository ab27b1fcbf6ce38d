"""Trials with more epochs or other test sets continue from stored ones, with identical results."""

import polars as pl
import pytest
from safetensors.torch import load_file

from activemem import load_study, run_study
from activemem.engine.trial.training import factor
from activemem.storage import Store
from activemem.studies import make_plan
from activemem.studies.catalog.optimisers import SCHEDULES, OwnScheduleSettings, rates_depend_on_length


@pytest.fixture
def text(tiny):
    """Return a study of two trials that saves weights, and last states as every study does."""
    small = tiny.replace('["not", "reverse"]', '["not"]').replace("seed = [0, 1]", "seed = [0]")
    return small.replace("[study]", "[study]\nkeep_weights = true")


def study(text, epochs, *overrides):
    return load_study(text, overrides=(f"train.epochs={epochs}", *overrides))


def run(text, folder, epochs, notes, *overrides):
    """Run the study with a number of epochs; return its store."""
    store = Store(folder)
    run_study(study(text, epochs, *overrides), store, listener=notes, local=True)
    return store


def values(store, trials):
    """Return all measurements except times."""
    metrics = store.metrics(trials).filter(pl.col("name") != "tokens_per_s")
    rows = store.trials().filter(pl.col("trial").is_in(trials))
    weights = [load_file(store.files.weights_file(trial)) for trial in trials]
    return (
        metrics.drop("attempt").rows(),
        rows.select("trial", "status", "epochs", "steps", "flops").rows(),
        [{name: each.tolist() for name, each in weight.items()} for weight in weights],
    )


def test_a_longer_training_continues_and_equals_one_from_the_start(text, tmp_path, notes):
    run(text, tmp_path / "results", 2, notes)
    shorter = {trial.settings.model.recipe: trial.id for trial in study(text, 2).trials}
    longer = study(text, 5)
    plan = make_plan(longer, Store(tmp_path / "results"))
    assert {trial.id: plan.resumed_from[trial.id].trial for trial in longer.trials} == {
        trial.id: shorter[trial.settings.model.recipe] for trial in longer.trials
    }
    assert {each.epochs for each in plan.resumed_from.values()} == {2}
    notes.events.clear()
    store = run(text, tmp_path / "results", 5, notes)
    assert {event.run.epoch for event in notes.of("started")} == {
        1
    }  # the evaluation after epoch 2 is another
    assert {event.run.trial for event in notes.events} == {trial.id for trial in longer.trials}
    whole = run(text, tmp_path / "whole", 5, notes)
    trials = [trial.id for trial in longer.trials]
    assert values(store, trials) == values(whole, trials)
    told = store.trials().filter(pl.col("trial").is_in(trials))
    assert set(told["continued_from"]) == set(shorter.values())
    assert set(told["continued_after"]) == {2}
    assert whole.trials()["continued_from"].null_count() == len(whole.trials())
    assert store.upkeep.check().findings == ()
    assert store.upkeep.clean() == ()
    assert store.files.trials_with_final_checkpoint() == {*trials}  # in the place of those before


@pytest.mark.parametrize(
    ("task", "before", "after"),
    [
        ("not", "task.test_lengths=[4]", "task.test_lengths=[4, 9]"),
        pytest.param("parity", "task.test_lengths=[4]", "task.test_lengths=[5]", marks=pytest.mark.heavy),
        pytest.param(
            "mqar", "task.tests=[[64, 4]]", "task.tests=[[64, 4], [12, 3]]", marks=pytest.mark.heavy
        ),
    ],
)
def test_other_test_sets_are_only_an_evaluation(text, tmp_path, notes, task, before, after):
    own = text.replace('["not"]', f'["{task}"]')
    if task != "not":
        own = own.replace("curriculum = { start = 5 }\n", "").replace("max_length", "dev_loss")
    few = "task.test_examples=20"
    run(own, tmp_path / "results", 3, notes, before, few)
    plan, none = (
        make_plan(study(own, 3, after, few), Store(tmp_path / name)) for name in ("results", "none")
    )
    assert plan.resumed_from.keys() == {each.id for each in plan.study.trials}
    assert plan.flops < none.flops  # nothing is trained
    notes.events.clear()
    store = run(own, tmp_path / "results", 3, notes, after, few)
    assert {event.run.epoch for event in notes.of("started")} == {2}  # the last evaluation alone is missing
    whole = run(own, tmp_path / "whole", 3, notes, after, few)
    trials = [trial.id for trial in study(own, 3, after, few).trials]
    assert values(store, trials) == values(whole, trials)


def test_a_schedule_that_depends_on_the_length_begins_at_the_start(text, tmp_path, notes):
    cosine = "train.schedule={name='cosine', warmup=2}"
    store = run(text, tmp_path, 1, notes, cosine)
    warming_up = "train.schedule={name='cosine', warmup=6}"  # as long as the first epoch, and a step
    store = run(text, tmp_path, 1, notes, warming_up)
    assert len(make_plan(study(text, 2, warming_up), store).resumed_from) == 2


@pytest.mark.parametrize(
    ("first", "then", "told"),
    [
        (
            "train.schedule={name='cosine', warmup=2}",
            "",
            "the learning rates of cosine depend on the number of",
        ),
        (
            "study.keep_checkpoints=false",
            "study.keep_checkpoints=true",
            "the last state of the shorter training is",
        ),
        ("train.clip_norm=2", "train.clip_norm=3", ""),  # nobody would expect that it resumes
    ],
)
def test_a_plan_says_why_trials_cannot_resume_from_shorter_ones(text, tmp_path, notes, first, then, told):
    store = run(text, tmp_path, 1, notes, first)
    plan = make_plan(study(text, 2, first, *([then] if then else [])), store)
    assert plan.resumed_from == {}
    found = [note.text for note in plan.notes if note.label == "anew"]
    assert all(text.startswith(f"2 trials cannot resume from shorter ones: {told}") for text in found)
    assert len(found) == bool(told)


def test_a_plan_says_how_much_the_last_states_take(text, tmp_path, notes):
    store = run(text, tmp_path, 1, notes)
    check = store.upkeep.check()
    assert check.last_states["files"] == 2
    planned = make_plan(study(text, 1), store).last_states
    assert planned == pytest.approx(check.last_states["bytes"], rel=0.5)
    assert make_plan(study(text, 1, "study.keep_checkpoints=false"), store).last_states == 0
    large = [note.text for note in make_plan(study(text, 1, "model.d_model=1024"), store).notes]
    assert any("the last states of trainings take about" in each for each in large)


@pytest.mark.parametrize("lost", ["trials", "weights"])
def test_a_trial_that_has_lost_files_continues_from_its_own_final_state(text, tmp_path, notes, lost):
    store = run(text, tmp_path, 3, notes)
    trials = [trial.id for trial in study(text, 3).trials]
    before = values(store, trials)
    for file in (tmp_path / lost).rglob("*.*"):
        file.unlink()
    assert make_plan(study(text, 3), Store(tmp_path)).resumed_from.keys() == set(trials)
    notes.events.clear()
    store = run(text, tmp_path, 3, notes)
    assert {event.run.epoch for event in notes.of("started")} == {2}  # the last evaluation alone is missing
    assert values(store, trials) == before
    assert store.trials()["continued_from"].null_count() == 2


def test_without_the_key_nothing_is_kept_and_a_damaged_state_costs_its_epochs(text, tmp_path, notes):
    off = "study.keep_checkpoints=false"
    assert run(text, tmp_path / "plain", 1, notes, off).files.trials_with_final_checkpoint() == frozenset()
    store = run(text, tmp_path / "results", 1, notes)
    for trial in study(text, 1).trials:
        path = store.files.final_checkpoint_file(trial.id)
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
    assert len(store.upkeep.check().findings) == 2
    notes.events.clear()
    run(text, tmp_path / "results", 2, notes)
    assert {event.run.epoch for event in notes.of("started")} == {0}
    assert store.trials()["continued_from"].null_count() == 4


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("warmup", [1, 6, 40])
def test_a_rate_depends_on_the_length_where_its_factors_do(name, warmup):
    milestones = (3, 30) if name == "milestones" else ()
    cooldown = 2 if name == "warmup_stable_decay" else 0
    schedule = OwnScheduleSettings(name=name, warmup=warmup, milestones=milestones, cooldown=cooldown)
    for steps in range(1, 20):
        short, long = (
            [factor(schedule, step, total) for step in range(1, steps + 2)] for total in (steps, 50)
        )
        assert rates_depend_on_length(schedule, steps) == (short != long)
