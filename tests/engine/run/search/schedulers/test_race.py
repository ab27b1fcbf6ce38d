"""A race over seeds: candidates for the best get all seeds, clearly worse points one training."""

import random
from collections import Counter

import pytest

from activemem import StudyError, load_study
from activemem.engine.run.search import SeedRace
from activemem.storage import Store
from activemem.studies import stored_outcomes
from activemem.studies.planning import stored_part, study_outcomes

from .....study_texts import study_text
from ..analytic import search

SEARCH = study_text(
    study={"name": "race", "title": "How far a convolution should see"},
    model={"recipe": "conv(k={k}) >> ff(8)"},
    task={"name": "addition"},
    train={"epochs": 1, "steps_per_epoch": 1},
    factors={"seed": [0, 1, 2]},
    search={"sampler": "random", "trials": 12, "metric": "loss", "scheduler": "race", "seed": 1},
    space={"k": "integer(2, 40)"},
)


def loss(values, seed):
    """Return a loss with its minimum near 20, noise of 0.3, and an offset of 2 per seed."""
    return abs(values["k"] - 20) / 5 + 2 * seed + random.Random(f"{values} {seed}").gauss(0, 0.3)


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "results")


def test_only_points_that_may_be_the_best_get_all_seeds(store, notes):
    trained = search(SEARCH, store, loss, notes)
    seeds = Counter(values["k"] for values, _ in trained)
    assert len(seeds) == 12
    assert {seeds[k] for k in seeds if abs(k - 20) <= 3} == {3}
    far = [k for k in list(seeds)[2:] if abs(k - 20) >= 12]  # before, nothing is known of the noise
    assert far
    assert {seeds[k] for k in far} == {1}
    rows = store.trials()
    given_up = rows.filter(status="pruned")
    assert len(rows) == 36
    assert (set(given_up["reason"]), given_up["epochs"].sum()) == ({"pruned by race"}, 0)
    assert search(SEARCH, store, loss, notes) == []


def test_what_one_search_prunes_others_train_and_it_keeps_its_own_history(tmp_path, store, notes):
    def outcomes(place, changes):
        study = load_study(SEARCH, changes)
        return sorted(
            study_outcomes(study, stored_outcomes(place, study)).select("trial", "status").iter_rows()
        )

    plain = ["study.name=plain", "search.scheduler=none", "search.trials=6"]
    race = ["search.trials=6"]
    search(SEARCH, store, loss, notes, race)
    before = outcomes(store, race)
    assert Counter(status for _, status in before) == Counter(store.trials()["status"])
    assert outcomes(store, plain) == []

    alone = Store(tmp_path / "alone")
    search(SEARCH, alone, loss, notes, plain)
    trained = search(SEARCH, store, loss, notes, plain)
    assert len(trained) == sum(status == "pruned" for _, status in before)
    assert outcomes(store, plain) == outcomes(alone, plain)
    assert {status for _, status in outcomes(store, plain)} == {"done"}
    assert outcomes(store, race) == before

    assert search(SEARCH, store, loss, notes, race) == []
    store.upkeep.forget("race", stored_part(load_study(SEARCH, race), store, ()))
    assert outcomes(store, race) == []
    assert outcomes(store, plain) == outcomes(alone, plain)


def test_a_race_that_was_cut_off_anywhere_resumes_as_if_uninterrupted(tmp_path, notes):
    few = ["search.trials=6"]
    whole = search(SEARCH, Store(tmp_path / "whole"), loss, notes, few)
    parts = Store(tmp_path / "parts")
    trained = []
    while more := search(SEARCH, parts, loss, notes, few, max_trials=2):
        trained += more
    assert trained == whole


def test_a_point_that_was_half_pruned_when_the_search_was_killed_gets_no_more_seeds(store, notes):
    search(SEARCH, store, loss, notes, ["search.trials=6"])
    lost = store.trials().filter(status="pruned")["trial"][0]
    (path,) = store.root.glob(f"trials/**/{lost}*.parquet")
    path.unlink()
    again = Store(store.root)
    assert lost not in set(again.trials()["trial"])
    assert search(SEARCH, again, loss, notes, ["search.trials=6"]) == []
    assert again.trials().filter(trial=lost)["status"].to_list() == ["pruned"]


def test_the_baseline_gets_all_of_its_seeds_and_a_budget_counts_trainings_alone(store, notes):
    text = SEARCH.replace("[model]", "baseline = { k = 40 }\nbaseline_seeds = 5\n[model]", 1)
    trained = search(text, store, loss, notes, ["search.budget.trainings=15"])
    assert trained[:5] == [({"k": 40}, seed) for seed in range(5)]
    assert 15 <= len(trained) <= 17  # a point that was begun is finished


def test_a_point_on_several_tasks_gets_a_seed_on_all_of_them(store, notes):
    text = SEARCH.replace('name = "addition"', 'name = "{task}"').replace(
        "seed = [0, 1, 2]", 'seed = [0, 1, 2]\ntask = ["addition", "sort"]'
    )
    trained = search(text, store, loss, notes, ['search.across=["task"]', "search.trials=8"])
    seeds = Counter((values["k"], seed) for values, seed in trained)
    assert set(seeds.values()) == {2}
    assert 8 < len(seeds) < 24


def test_a_point_beyond_a_limit_is_no_rival():
    race = SeedRace((0, 1), 0.05)
    for seeds in ({0: 5.0, 1: 5.3}, {0: 5.2, 1: 5.1}, {0: 5.1, 1: 5.2}):
        race.add(seeds)
    assert race.is_promising({0: 5.2})
    race.add({0: 1.0, 1: 1.2}, eligible=False)
    assert race.is_promising({0: 5.2})
    race.add({0: 1.0, 1: 1.2})
    assert not race.is_promising({0: 5.2})
    assert not race.is_promising({0: float("nan")})


def test_the_best_point_is_pruned_no_more_often_than_the_risk():
    rng, wrong, kept = random.Random(0), 0, 0
    for _ in range(200):
        race, true = SeedRace(range(3), 0.05), [rng.gauss(0, 3) for _ in range(20)]
        values = [[each + rng.gauss(0, 1) for _ in range(3)] for each in true]
        for losses in values[:-1]:
            race.add(dict(enumerate(losses)))
        best = min(true) - 0.1
        losses = [best + rng.gauss(0, 1) for _ in range(3)]
        wrong += not all(race.is_promising(dict(enumerate(losses[:looks]))) for looks in (1, 2))
        kept += race.is_promising({0: max(true) + rng.gauss(0, 1)})
    assert wrong <= 0.05 * 200
    assert kept <= 0.5 * 200


def test_searches_that_cannot_race_are_reported(golden):
    changes = ["factors.seed=[0]", "search.metric=parameters"]
    with golden.raises(StudyError):
        load_study(SEARCH, changes[:1])
    with golden.raises(StudyError):
        load_study(SEARCH, changes[1:2])
    with pytest.raises(StudyError, match="write scheduler"):
        load_study(SEARCH, ["search.risk=0.1"])
