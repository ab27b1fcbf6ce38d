"""Rungs: points are trained at a small fidelity first, and the best of each rung at the next."""

import json
from collections import Counter

import pytest

from activemem.engine.run.search.optuna_search import OptunaSearch
from activemem.storage import Store
from activemem.studies.fidelity import Fidelity
from activemem.studies.planning.plan import make_plan
from activemem.studies.planning.status import study_status
from activemem.studies.searches.points import find_points
from activemem.studies.searches.rung_costs import rung_costs
from activemem.studies.searches.words import rung_words
from activemem.studies.study import StudyError, load_study

from .....study_texts import study_text
from ..analytic import search

SEARCH = study_text(
    study={"name": "rungs", "title": "How far a convolution should see"},
    model={"recipe": "conv(k={k}) >> ff({width})"},
    task={"name": "addition"},
    train={"epochs": 1, "steps_per_epoch": 27},
    factors={"seed": [0]},
    search={
        "sampler": "random",
        "trials": 18,
        "metric": "loss",
        "scheduler": "asha",
        "fidelity": "width",
        "reduction": 3,
    },
    space={"k": "integer(2, 40)", "width": "integer(8, 72)"},
)
HYPERBAND = ["search.scheduler=hyperband", "search.trials=17"]


def loss(values, _seed):
    return abs(values["k"] - 20) / 5


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "results")


def places(store, name="width"):
    """The values of k by rung, in the order in which their trainings were begun."""
    rows = [json.loads(factors) for factors in store.trials().sort("started")["factors"]]
    found = {}
    for row in rows:
        found.setdefault(row[name], []).append(row["k"])
    return found


def test_the_best_of_each_rung_go_on_and_all_of_it_is_told_by_the_plan(store, notes):
    study = load_study(SEARCH)
    assert (study.fidelity.rungs, study.points_by_rung, study.total) == ((8, 24, 72), [18, 6, 2], 26)
    assert rung_words("width", rung_costs(study)).startswith(
        "18 points at width=8, 6 at 24, 2 at 72: 26 epochs"
    )
    search(SEARCH, store, loss, notes)
    found = places(store)
    assert len(found[8]) == 18
    assert set(found[72]) <= set(found[24]) <= set(found[8])
    best = sorted(found[8], key=lambda k: abs(k - 20))
    assert set(best[:6]) <= set(found[24])
    assert {abs(k - 20) for k in best[:2]} <= {abs(k - 20) for k in found[72]}
    assert set(store.trials()["status"]) == {"done"}
    assert search(SEARCH, store, loss, notes) == []
    status = study_status(study, store)
    assert (status.num_remaining, make_plan(study, store).num_remaining) == (0, 0)


def test_only_the_last_rung_is_a_result(store, notes):
    search(SEARCH, store, loss, notes)
    study = load_study(SEARCH)
    found = find_points(study, store.trials())
    assert len(found.points) == 18
    assert {point.values["k"] for point in found.complete} == set(places(store)[72])
    assert all("width" not in point.values for point in found.points)
    assert sum(point.seconds for point in found.points) == len(store.trials())
    whole = study.trial_for(found.complete[0].values).settings
    assert (whole.model.recipe.split("ff")[1], len(found.trained)) == ("(72)", len(found.complete))


@pytest.mark.parametrize("changes", [["search.trials=9"], HYPERBAND])
def test_a_search_that_was_cut_off_anywhere_goes_on_from_the_store_alone(tmp_path, notes, changes):
    whole, parts = Store(tmp_path / "whole"), Store(tmp_path / "parts")
    at_once = search(SEARCH, whole, loss, notes, changes)
    trained = []
    while more := search(SEARCH, Store(parts.root), loss, notes, changes, max_trials=5):
        trained += more
    assert trained == at_once
    assert search(SEARCH, parts, loss, notes, changes) == []


def test_brackets_have_hyperbands_shares_and_are_compared_among_themselves(store, notes):
    fidelity = Fidelity(name="width", rungs=(1, 3, 9), reduction=3, brackets=True)
    begun = Counter()
    for _ in range(17):
        begun[fidelity.next_first(begun)] += 1
    assert begun == {0: 9, 1: 5, 2: 3}
    assert fidelity.planned(17) == [9, 8, 5]
    search(SEARCH, store, loss, notes, HYPERBAND)
    found = places(store)
    assert (len(found[8]), len(set(found[24]) - set(found[8]))) == (9, 5)
    assert len(set(found[72]) - set(found[24])) == 3


def test_the_sampler_learns_from_the_highest_rung_with_enough_points(store, notes):
    changes = ["search.sampler=tpe", "search.trials=22", "search.reduction=2"]
    search(SEARCH, store, loss, notes, changes)
    told = OptunaSearch(load_study(SEARCH, changes), store, "again", notes)._told
    sizes = {width: len(values) for width, values in places(store).items()}
    highest = max(width for width, count in sizes.items() if count >= 10)
    assert {trial.params["k"] for trial in told.asked.get_trials()} == set(places(store)[highest])
    assert highest > 8


def test_a_point_that_fails_goes_no_further_and_the_baseline_is_trained_whole(store, notes):
    text = SEARCH.replace("[model]", "baseline = { k = 40 }\nbaseline_seeds = 3\n[model]", 1)
    study = load_study(text)
    assert (study.points_by_rung, study.total) == ([17, 5, 2], 26)
    search(text, store, lambda values, seed: float("nan") if values["k"] < 20 else loss(values, seed), notes)
    found = places(store)
    assert (40 in found[8], found[72].count(40)) == (False, 3)
    assert min(found[24]) >= 20


@pytest.mark.parametrize(
    ("changes", "rungs", "settings"),
    [
        (["search.fidelity=data"], (3, 9, 27), lambda found: found.train.steps_per_epoch),
        (
            ["search.fidelity=length", "train.curriculum.end=50", "search.min_fidelity=6"],
            (6, 50),
            lambda found: found.train.curriculum.end,
        ),
        (
            ["search.fidelity=width", "factors.width=[8, 16, 32, 64]"],
            (8, 16, 32, 64),
            lambda found: found.model,
        ),
    ],
)
def test_a_rung_is_a_training_with_settings_of_its_own(changes, rungs, settings):
    text = SEARCH.replace('width = "integer(8, 72)"\n', "")
    text = text if any("factors" in change for change in changes) else text.replace("{width}", "8")
    study = load_study(text, changes)
    assert study.fidelity.rungs == rungs
    trials = [study.point_trials({"k": 3}, rung)[0] for rung in range(len(rungs))]
    assert len({trial.id for trial in trials}) == len(rungs)
    assert trials[-1].id == study.trial_for({"k": 3}).id
    if "factors" not in changes[-1]:
        assert tuple(settings(trial.settings) for trial in trials) == rungs


WRONG = {
    "search.fidelity=widht": "expected one of epochs, length, data, k, width, got 'widht'; nearest: width",
    "search.min_fidelity=4": "width begins with 8: leave this key out",
    "search.scheduler=none": "fidelity: for the schedulers asha and hyperband alone, got none",
    "search.scheduler=race": "fidelity: for the schedulers asha and hyperband alone, got race",
    "search.fidelity=length": "length is the longest of a training: expected lengths = [shortest, longest]",
    "search.metric=parameters": "asha needs a metric of trainings, got 'parameters'",
    "search.space.width='choice(8, 72)'": "expected integer(lo, hi) as the fidelity, or its rungs as levels",
    "search.space.width='integer(60, 72)'": "expected room for two rungs at least, got width = 72 alone",
    "search.space.width='real(8, 72)'": "expected integer(lo, hi) as the fidelity",
    "search.space.width=3": "or its rungs as levels in [factors], got 3",
    "factors.data=[1]": "'data' is a fidelity by itself: give the factor or dimension another name",
}


@pytest.mark.parametrize("change", WRONG)
def test_what_can_be_no_fidelity_is_told_at_once(change):
    more = ["search.fidelity=data"] if "data" in change else []
    with pytest.raises(StudyError) as told:
        load_study(SEARCH, [change, *more])
    assert WRONG[change] in str(told.value)
