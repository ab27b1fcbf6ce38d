"""Rungs: points train at a small fidelity first, and the best of each rung at the next."""

import json
from collections import Counter

import optuna
import pytest
from optuna.distributions import IntDistribution
from optuna.trial import TrialState

from activemem import load_study, run_study
from activemem.engine import Machine
from activemem.engine.core.events import NOBODY
from activemem.engine.run.search.search import Search
from activemem.storage import Store
from activemem.studies import find_points, make_plan, study_status
from activemem.studies.searches.words import rung_costs, rung_words
from activemem.tracking.search_export import export_search

from .....study_texts import SEARCH_OF_RUNGS as SEARCH
from ..analytic import search

K = IntDistribution(1, 400, log=True)
WIDER = SEARCH.replace("integer(2, 40)", "integer(1, 400, log=true)")


def loss(values, _seed):
    return abs(values["k"] - 20) / 5


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "results")


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("searched"))
    search(SEARCH, store, loss, NOBODY)
    return store


def places(store, name="width"):
    """Return the values of k by rung, in the order of the trainings' starts."""
    rows = [json.loads(factors) for factors in store.trials().sort("started")["factors"]]
    found = {}
    for row in rows:
        found.setdefault(row[name], []).append(row["k"])
    return found


def test_the_best_points_of_each_rung_are_promoted_and_the_plan_shows_all_rungs(searched, notes):
    study = load_study(SEARCH)
    assert (study.search.rungs.rungs, study.search.points_by_rung, study.total) == (
        (8, 24, 72),
        [18, 6, 2],
        26,
    )
    assert rung_words("width", rung_costs(study)).startswith(
        "18 points at width=8, 6 at 24, 2 at 72: 26 epochs"
    )
    found = places(searched)
    assert len(found[8]) == 18
    assert set(found[72]) <= set(found[24]) <= set(found[8])
    best = sorted(found[8], key=lambda k: abs(k - 20))
    assert set(best[:6]) <= set(found[24])
    assert {abs(k - 20) for k in best[:2]} <= {abs(k - 20) for k in found[72]}
    assert set(searched.trials()["status"]) == {"done"}
    assert search(SEARCH, searched, loss, notes) == []
    status = study_status(study, searched)
    assert (status.left, make_plan(study, searched).left) == (0, 0)
    assert status.total == len(searched.trials()) >= study.total


def test_only_the_last_rung_is_a_result(searched):
    study, store = load_study(SEARCH), searched
    found = find_points(study, store.trials())
    assert len(found.points) == 18
    assert {point.values["k"] for point in found.complete} == set(places(store)[72])
    assert all("width" not in point.values for point in found.points)
    assert sum(point.seconds for point in found.points) == len(store.trials())
    whole = study.search.trial_of(found.complete[0].values).settings
    assert (whole.model.recipe.split("ff")[1], len(found.trained)) == ("(72)", len(found.complete))


def test_a_search_that_was_cut_off_anywhere_resumes_from_the_store(tmp_path, notes):
    changes = ["search.trials=9"]
    whole, parts = Store(tmp_path / "whole"), Store(tmp_path / "parts")
    at_once = search(SEARCH, whole, loss, notes, changes)
    trained = []
    while more := search(SEARCH, Store(parts.root), loss, notes, changes, max_trials=5):
        trained += more
    assert trained == at_once
    assert search(SEARCH, parts, loss, notes, changes) == []


def test_the_sampler_learns_from_the_highest_rung_with_enough_points(store, notes):
    changes = ["search.sampler=tpe", "search.trials=20", "search.scheduler.reduction=2"]
    search(SEARCH, store, loss, notes, changes)
    asked = Search(load_study(SEARCH, changes), store, "again", notes)._optuna
    sizes = {width: len(values) for width, values in places(store).items()}
    highest = max(width for width, count in sizes.items() if count >= 10)
    learnt = asked.studies[asked.rung].get_trials(states=[TrialState.COMPLETE])
    assert {trial.params["k"] for trial in learnt} == set(places(store)[highest])
    assert highest > 8


@pytest.mark.parametrize(
    "sampler",
    [
        "tpe",
        *(pytest.param(name, marks=pytest.mark.heavy) for name in ("evolution", "gp_trees", "random")),
    ],
)
def test_samplers_propose_what_is_new_on_any_rung_and_continue_where_a_search_was_cut_off(
    tmp_path, notes, sampler
):
    chosen = "{ name = 'evolution', population = 12 }" if sampler == "evolution" else sampler
    changes = [f"search.sampler={chosen}", "search.trials=20", "search.scheduler.reduction=2"]
    whole, parts = Store(tmp_path / "whole"), Store(tmp_path / "parts")
    at_once = search(WIDER, whole, loss, notes, changes)
    trained = []
    while more := search(WIDER, Store(parts.root), loss, notes, changes, max_trials=13):
        trained += more
    assert trained == at_once
    assert Search(load_study(WIDER, changes), whole, "again", notes)._optuna.rung
    assert len({values["k"] for values, _ in at_once}) == 20


def test_a_point_that_fails_goes_no_further_and_the_baseline_is_trained_whole(store, notes):
    text = SEARCH.replace("[model]", "baseline = { k = 40 }\nbaseline_seeds = 3\n[model]", 1)
    study = load_study(text)
    assert (study.search.points_by_rung, study.total) == ([17, 5, 2], 26)
    search(text, store, lambda values, seed: float("nan") if values["k"] < 20 else loss(values, seed), notes)
    found = places(store)
    assert (40 in found[8], found[72].count(40)) == (False, 3)
    assert min(found[24]) >= 20


def test_a_rung_of_epochs_resumes_from_the_one_before(store, notes):
    text = SEARCH.replace("epochs = 1", 'epochs = "{passes}"').replace("{width}", "8")
    text = text.replace('width = "integer(8, 72)"', 'passes = "integer(1, 4)"')
    changes = [
        "search.scheduler.fidelity=passes",
        "search.trials=4",
        "search.scheduler.reduction=2",
    ]
    run_study(load_study(text, [*changes, "train.steps_per_epoch=1"]), store, Machine(), notes, local=True)
    rows = {each["trial"]: each for each in store.trials().iter_rows(named=True)}
    assert Counter(row["epochs"] for row in rows.values()) in ({1: 4, 2: 2, 4: 1}, {1: 4, 2: 3, 4: 1})
    for row in rows.values():
        before = rows.get(row["continued_from"])
        assert (row["epochs"] == 1) == (before is None)
        assert before is None or before["epochs"] == row["continued_after"] == row["epochs"] // 2


def test_a_point_is_exported_once_with_its_highest_rung(searched, tmp_path):
    export_search(load_study(SEARCH), searched, str(tmp_path / "search.db"))
    storage = optuna.storages.RDBStorage(f"sqlite:///{tmp_path / 'search.db'}")
    trials = optuna.load_study(study_name="rungs", storage=storage).trials
    storage.remove_session()
    storage.engine.dispose()
    assert Counter(trial.state.name for trial in trials) == {
        "COMPLETE": len(places(searched)[72]),
        "PRUNED": 18 - len(places(searched)[72]),
    }
    given_up = [trial for trial in trials if trial.state.name == "PRUNED"]
    assert {trial.last_step for trial in given_up} == {8, 24}
