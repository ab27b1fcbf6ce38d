"""A trial's id depends exactly on what determines its result, and never changes."""

import pickle

import pytest
from pydantic import ValidationError

from activemem.studies import Trial, load_study
from activemem.studies.schema.settings import TrialSettings
from tests.study_texts import study_text

WRITTEN = {
    "model": {"recipe": "4 * (sa + conv(k=20) >> ff(512))", "d_model": 128},
    "task": {"name": "reverse"},
    "train": {
        "optimizer": {"name": "adam", "lr": 1e-3},
        "batch_size": 32,
        "epochs": 100,
        "steps_per_epoch": 100,
        "curriculum": {"start": 5},
    },
}


def settings(**changes):
    """Return the settings above with changes by dotted key, written with double underscores."""
    written = {name: {**table} for name, table in WRITTEN.items()}
    seed = changes.pop("seed", 0)
    for key, value in changes.items():
        *tables, last = key.split("__")
        place = written
        for name in tables:
            place[name] = {**place[name]}
            place = place[name]
        place[last] = value
    return TrialSettings.model_validate({**written, "seed": seed})


def trial(**changes):
    return Trial(study="s", levels={"mixer": "sa", "seed": 0}, settings=settings(**changes))


def test_the_id_of_a_trial_never_changes_by_accident():
    assert trial().id == "c5d80f27234144d8"
    assert trial(seed=1).id == "624a628cb41e2e4d"


@pytest.mark.parametrize(
    "changes",
    [
        {"model__recipe": "4*( conv( k = 20 )+sa >> ff(512) )"},
        {"model__recipe": "4 * (sa(heads=8) + conv(20, act=relu) >> ff(filter=512))"},
        {"model__norm": "pre", "model__dropout": 0.1, "model__position": "timing"},
        {"train__optimizer": {"name": "adam", "lr": 0.001, "betas": [0.9, 0.999], "weight_decay": 0}},
        {"train__schedule": {"name": "constant"}, "train__curriculum__grow_at": 1},
        {"train__clip_norm": None},
    ],
    ids=[
        "the order of a sum",
        "defaults in the recipe",
        "defaults of the model",
        "of the optimizer",
        "of others",
        "none",
    ],
)
def test_spelling_and_defaults_do_not_matter_to_the_id(changes):
    assert trial(**changes).id == trial().id


@pytest.mark.parametrize(
    "changes",
    [
        {"model__recipe": "4 * (sa + conv(k=21) >> ff(512))"},
        {"model__dropout": 0.2},
        {"task__name": "copy"},
        {"train__optimizer__lr": 2e-3},
        {"train__clip_norm": 1.0},
        {"train__schedule": {"warmup": 1}},
        {"seed": 1},
    ],
    ids=str,
)
def test_whatever_determines_the_result_changes_the_id(changes):
    assert trial(**changes).id != trial().id


def test_the_study_and_the_names_of_levels_do_not_matter_to_the_id():
    assert Trial(study="other", levels={}, settings=settings()).id == trial().id


def test_keys_of_train_that_are_left_out_are_part_of_the_id():
    written = {"batch_size": 32, "steps_per_epoch": 100}
    trains = (written, dict.fromkeys((*written, "curriculum")))
    task, mixer = {"name": "sort"}, {"mixer": ["sa"]}
    full, short = (load_study(study_text(task=task, factors=mixer, train=each)) for each in trains)
    assert [trial.id for trial in full.trials] == [trial.id for trial in short.trials]


def test_a_trial_comes_back_from_json_and_pickle():
    one = trial(train__clip_norm=0.5, train__schedule={"name": "inverse_sqrt", "warmup": 10}, seed=7)
    assert Trial.from_json(one.to_json()) == one
    assert pickle.loads(pickle.dumps(one)) == one


def test_the_recipe_of_settings_is_canonical():
    assert (
        settings(model__recipe="4*(sa+conv(20) >>ff(512))").model.recipe == "4 * (sa + conv(k=20) >> ff(512))"
    )


@pytest.mark.parametrize("recipe", ["4 * ({mixer} >> ff(8))", "sa >> ff(integer(1, 8))"])
def test_settings_refuse_a_recipe_that_leaves_something_open(recipe, golden):
    with golden.raises(ValidationError):
        settings(model__recipe=recipe)


def test_settings_are_frozen():
    with pytest.raises(ValidationError, match="frozen"):
        settings().seed = 3
