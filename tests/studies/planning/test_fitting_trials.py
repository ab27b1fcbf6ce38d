"""Trials of other studies with the settings of a search's point belong to its space."""

import json

import pytest

from activemem import load_study
from activemem.engine.core.events import NOBODY
from activemem.engine.run.search.search import Search
from activemem.storage import Store
from activemem.studies import find_points, make_plan, study_status
from activemem.studies.planning.status import stored_outcomes, study_outcomes, tried_point
from activemem.studies.resolve.trial import settings_to_json

from ...study_texts import study_text
from ..test_plan import keep

SEARCH = study_text(
    study={"name": "search", "title": "Mixers, widths and rates"},
    model={"recipe": "{count} * (choice(sa + {mixer}, {mixer}) >> ff(integer(4, 16)))", "d_model": "{width}"},
    task={"name": "sort"},
    train={"optimizer": {"name": "adam", "lr": "{lr}"}},
    search={"trials": 9, "metric": "max_length"},
    space={
        "count": "integer(1, 3)",
        "mixer": "choice(sa, conv(k={k}))",
        "k": "integer(2, 9)",
        "lr": "real(1e-4, 1e-1, log=true)",
        "width": "choice(8, 16)",
    },
    factors={"seed": [0, 1]},
)
GRID = study_text(
    study={"name": "grid", "title": "Some of them"},
    model={"recipe": "2 * ({part} >> ff(8))"},
    task={"name": "sort"},
    train={"optimizer": {"name": "adam", "lr": 0.01}},
    factors={"part": ["sa", "conv(k=5)", "conv(k=10)", "conv(k=3) + sa"], "seed": [0, 1]},
)
WARM = ["search.warm_start=true"]
MIXERS = {"sa": {"mixer": "sa"}, "conv(k=5)": {"mixer": "conv(k={k})", "k": 5}}


@pytest.fixture
def store(tmp_path):
    """Return a grid that is done except for one seed."""
    found, study = Store(tmp_path / "results"), load_study(GRID)
    for minutes, trial in enumerate(study.trials[:-1]):
        keep(
            found,
            trial,
            minutes=minutes,
            settings=settings_to_json(trial.settings),
            metrics=(("max_length", float(minutes)),),
        )
    return found


def begin(study, store):
    """Begin a search and return the outcomes that it has then."""
    Search(study, store, "run", NOBODY)
    return study_outcomes(study, stored_outcomes(store, study))


def test_more_trials_of_other_studies_than_a_search_asks_for_are_its_trials(store):
    study = load_study(SEARCH, [*WARM, "search.trials=2"])
    known = len(begin(study, store))
    assert known > 2
    assert study_status(study, store).summary() == f"{known} of {known} trials done · 0 left"


def test_points_that_other_studies_trained_on_all_seeds_are_known(store):
    study = load_study(SEARCH, WARM)
    rows = begin(study, store)
    found = [
        tried_point(study, trial, json.loads(factors))
        for trial, factors in rows.sort("recipe", "seed").select("trial", "factors").iter_rows()
    ]
    shared = {"count": 2, "lr": 0.01, "width": 8, "ff.filter": 8}
    assert found[::2] == found[1::2]
    assert found[::2] == [shared | {"choice": "{mixer}"} | MIXERS[mixer] for mixer in ("conv(k=5)", "sa")]


def test_a_plan_counts_fitting_trials_and_a_key_reuses_them(store):
    cold, warm = load_study(SEARCH), load_study(SEARCH, WARM)
    plans = [make_plan(study, store) for study in (cold, warm)]
    assert ["2 points of its space are known" in str(plan) for plan in plans] == [True, True]
    assert [plan.left for plan in plans] == [18, 14]
    assert find_points(cold, begin(cold, store)).best() == []
    assert study_status(cold, store).summary() == "0 of 18 trials done · 18 left"
    assert [each.mean for each in find_points(warm, begin(warm, store)).best()] == [2.5, 0.5]
    assert study_status(warm, store).summary() == "4 of 18 trials done · 14 left"
    again = make_plan(warm, store)
    assert ("known from other studies" in str(again), again.left) == (False, 14)


def test_a_search_learns_from_fitting_trials_and_trains_none_again(store):
    told = {
        len(changes): Search(load_study(SEARCH, changes), store, "run", NOBODY)._optuna.studies[0].trials
        for changes in ([], WARM)
    }
    assert [len(each) for each in told.values()] == [0, 2]
    assert [trial.value for trial in told[1]] == [0.5, 2.5]
    full = Search(load_study(SEARCH, [*WARM, "search.trials=2"]), store, "run", NOBODY)
    assert full.next_job() is None


def test_a_search_with_other_names_continues_with_what_still_fits(store):
    renamed = SEARCH.replace("{k}", "{kernel}").replace("\nk = ", "\nkernel = ")
    values = {"count": 3, "lr": 0.02, "width": 16, "ff.filter": 9}
    values |= {"choice": "{mixer}", "mixer": "conv(k={k})", "k": 4}
    for trial in load_study(SEARCH).search.trials_of(values):
        keep(store, trial, settings=settings_to_json(trial.settings), minutes=20)
    assert len(begin(load_study(renamed), store)) == 0
    assert len(begin(load_study(renamed, WARM), store)) == 4 + 2
