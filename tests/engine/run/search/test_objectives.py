"""Multi-objective searches: all samplers that support them, limits, and restarts."""

import json
from statistics import fmean

import optuna
import pytest

from activemem import load_study
from activemem.engine.run.search.optuna_study import optuna_sampler_maker
from activemem.engine.run.search.search import Search
from activemem.engine.trial.checkpoints import Checkpoint
from activemem.storage import Store
from activemem.studies import make_plan, study_status

from ....quick_cases import one_in
from ....studies.test_plan import keep
from ....study_texts import study_text
from .test_optuna_search import points, run

SEARCH = study_text(
    study={"name": "trade_offs", "title": "A short loss and a small model"},
    model={"recipe": "choice(conv(k=integer(2, 9)), sa) >> ff(integer(4, 12))"},
    task={"name": "addition"},
    train={"epochs": 1, "steps_per_epoch": 1},
    search={"sampler": "nsga2", "trials": 6, "metric": ["loss", "parameters"]},
)


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "results")


def told(store, notes, changes=()):
    """Return the Optuna trials of a search in a store."""
    return Search(load_study(SEARCH, changes), store, "again", notes)._optuna.studies[0]


@pytest.mark.parametrize("sampler", one_in(2, ["tpe", "nsga2", "gp", "random", "evolution"]))
def test_a_search_for_trade_offs_resumes_from_the_store(store, notes, sampler):
    chosen = "{ name = 'evolution', population = 2, sample = 2 }" if sampler == "evolution" else sampler
    changes = [f"search.sampler={chosen}", "search.trials=4", 'study.limits.seconds="< 60"']
    changes += ["model.recipe=conv(k=integer(2, 9)) >> ff(integer(4, 12))"] if sampler == "gp" else []
    assert run(SEARCH, store, notes, changes, max_trials=3).ran == 3
    first = told(store, notes, changes)
    rows = store.trials()
    losses = {next(m["value"] for m in row["metrics"] if m["name"] == "loss") for row in rows.to_dicts()}
    assert {trial.values[0] for trial in first.trials} == losses
    assert {trial.values[1] for trial in first.trials} == set(rows["parameters"])
    assert all(-60 < trial.constraints["seconds < 60"] < 0 for trial in first.trials)
    assert run(SEARCH, store, notes, changes).ran == 1
    assert len(points(store)) == 4


def test_limits_that_follow_from_the_text_are_never_exceeded(store, notes):
    limits = ['study.limits.parameters="< 500"', 'study.limits.reach=">= 4"', "search.trials=50"]
    assert run(SEARCH, store, notes, limits).ran
    kernels = [json.loads(text)["conv.k"] for text in store.trials()["factors"]]
    assert min(kernels) >= 4
    assert store.trials()["parameters"].max() < 500


@pytest.mark.heavy
def test_an_evolution_for_trade_offs_resumes_as_if_uninterrupted(tmp_path, notes):
    changes = ["search.sampler={ name = 'evolution', population = 4, sample = 3 }", "search.trials=10"]
    whole, parts = Store(tmp_path / "whole"), Store(tmp_path / "parts")
    run(SEARCH, whole, notes, changes)
    while run(SEARCH, parts, notes, changes, max_trials=3).ran:
        pass
    assert points(parts) == points(whole)


def test_a_search_ends_where_its_budget_does_and_continues_with_more(store, notes):
    changes = ["search.sampler=random", "factors.seed=[0, 1]"]
    assert run(SEARCH, store, notes, [*changes, "search.budget={ trainings = 3 }"]).ran == 4  # whole points
    assert run(SEARCH, store, notes, [*changes, "search.budget={ trainings = 4 }"]).ran == 0
    assert run(SEARCH, store, notes, [*changes, "search.budget={ hours = 1e-9, flops = 1e30 }"]).ran == 0
    assert run(SEARCH, store, notes, [*changes, "search.budget={ hours = 1, trainings = 5 }"]).ran == 2


def test_a_search_with_a_spent_budget_only_has_begun_points_left(store, notes):
    changes = ["search.sampler=random", "search.budget={ trainings = 2 }"]
    assert run(SEARCH, store, notes, changes).ran == 2
    for seeds, left in (("[0, 1]", 2), ("[0]", 0)):
        study = load_study(SEARCH, [*changes, f"factors.seed={seeds}"])
        words = f"2 of {study.total} trials done · {left} left · its budget of 2 trainings is exhausted"
        assert study_status(study, store).summary() == words
        assert make_plan(study, store).left == left
    assert run(SEARCH, store, notes, [*changes, "factors.seed=[0, 1]"]).ran == 2
    more = load_study(SEARCH, ["factors.seed=[0, 1]", "search.budget={ trainings = 5 }"])
    assert study_status(more, store).summary() == "4 of 12 trials done · 8 left"


def test_trials_of_another_driver_count_as_spent(store, notes):
    study = load_study(SEARCH, ["search.budget={ trainings = 2 }"])
    other, mine = (Search(study, store, name, notes) for name in ("other", "mine"))
    job = other.next_job()
    Checkpoint(store, job.trial.id).record_start(job.trial.to_json(), "other", "here")
    assert mine.next_job() is not None
    keep(store, job.trial, metrics=(("loss", 1.0),), settings=job.trial.settings.model_dump_json())
    assert mine.next_job() is None


def test_tpe_weighs_all_objectives_and_finds_more_of_the_trade_off_than_chance():
    def covered(sampler, seed):
        """Return the share of a square of losses that 40 points dominate."""
        settings = load_study(SEARCH, [f"search.sampler={sampler}"]).search.settings
        chosen = optuna_sampler_maker(settings)(seed)
        study = optuna.create_study(directions=["minimize", "minimize"], sampler=chosen)
        for _ in range(40):
            trial = study.ask()
            x, y = (trial.suggest_float(name, 0, 1) for name in "xy")
            study.tell(trial, (x * x + y, (x - 1) ** 2 + y))
        front = [trial.values for trial in study.best_trials]
        places = [place / 20 for place in range(41)]
        return fmean(any(one <= a and two <= b for one, two in front) for a in places for b in places)

    tpe, drawn = (fmean(covered(name, seed) for seed in range(3)) for name in ("tpe", "random"))
    assert tpe > drawn + 0.03
