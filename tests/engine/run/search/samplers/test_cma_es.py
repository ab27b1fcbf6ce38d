"""CMA-ES learns from generations of points that have ended, and from the store alone."""

from functools import partial
from statistics import fmean

import optuna
import pytest

from activemem.engine.run.search.optuna_search import OptunaSearch
from activemem.engine.run.search.samplers.factory import make_sampler
from activemem.engine.run.search.samplers.optuna_space import suggest
from activemem.storage import Store
from activemem.studies.study import StudyError, load_study

from .....study_texts import study_text
from ..analytic import search

SEARCH = study_text(
    study={"name": "numbers", "title": "A kernel, a width and a rate"},
    model={"recipe": "conv(k={k}) >> ff({width})"},
    task={"name": "addition"},
    train={"optimizer": {"name": "adam", "lr": "{lr}"}, "epochs": 1, "steps_per_epoch": 1},
    search={"sampler": "cmaes", "trials": 30, "metric": "loss"},
    space={"k": "integer(1, 64)", "width": "integer(4, 64)", "lr": "real(0.01, 1.0)"},
)


def loss(values, seed=0):
    """A valley along which a larger kernel goes with a larger rate."""
    kernel, width = values["k"] / 64, values["width"] / 64
    return (kernel - values["lr"]) ** 2 + 0.1 * (kernel - 0.8) ** 2 + (width - 0.3) ** 2


def best(sampler, seed, points=100):
    """The lowest loss of so many points."""
    study = load_study(SEARCH, [f"search.sampler={sampler}", f"search.seed={seed}"])
    asked = optuna.create_study(sampler=make_sampler(study.search, study))
    for _ in range(points):
        trial = asked.ask()
        asked.tell(trial, loss(study.choose(partial(suggest, trial))))
    return asked.best_value


def test_it_finds_lower_places_of_a_valley_than_chance():
    found, drawn = (fmean(best(name, seed) for seed in range(2)) for name in ("cmaes", "random"))
    assert found < 0.3 * drawn


def test_a_search_that_was_killed_goes_on_as_it_would_have(tmp_path, notes):
    changes = ["search.trials=16", "search.space.lr=integer(1, 2)", "search.space.width=integer(4, 5)"]
    whole = search(SEARCH, Store(tmp_path / "whole"), loss, notes, changes)
    parts = Store(tmp_path / "parts")
    begun = [
        point for count in (6, 6) for point in search(SEARCH, parts, loss, notes, changes, max_trials=count)
    ]
    assert [*begun, *search(SEARCH, parts, loss, notes, changes)] == whole


@pytest.mark.parametrize("sampler", ["cmaes", "gp"])
def test_spaces_that_it_cannot_treat_are_refused(sampler):
    conditional = ["model.recipe={mixer}", "search.space.mixer=choice(conv(k={k}), ff({width}))"]
    with pytest.raises(
        StudyError, match=f"{sampler} is for points that all .* but some lack k, width: tpe, evo"
    ):
        load_study(SEARCH, [*conditional, f"search.sampler={sampler}"])
    choice = ["search.space.k=choice(1, 2)", f"search.sampler={sampler}"]
    if sampler == "gp":
        load_study(SEARCH, choice)
        return
    with pytest.raises(StudyError, match="cmaes is for numbers alone, got choices: k"):
        load_study(SEARCH, choice)


def test_generations_of_optunas_genetic_samplers_are_restored_from_the_store(tmp_path, notes):
    store, changes = Store(tmp_path / "results"), ["search.sampler=nsga2", "search.trials=70"]
    search(SEARCH, store, loss, notes, changes, max_trials=52)
    again = OptunaSearch(load_study(SEARCH, changes), store, "again", notes)
    (_, jobs) = again.next_cohort()
    first = [trial.system_attrs["NSGAIISampler:generation"] for trial in again._optuna.trials]
    assert (len(jobs), first[:52], first[-1]) == (1, [*[0] * 50, 1, 1], 1)
