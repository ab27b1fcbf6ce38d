"""Optuna's samplers reject unsupported spaces, and keep their generations after a restart."""

import pytest

from activemem import StudyError, load_study
from activemem.engine.run.search.search import Search
from activemem.storage import Store

from .....study_texts import study_text
from ..analytic import search

SEARCH = study_text(
    study={"name": "numbers", "title": "A kernel, a width and a rate"},
    model={"recipe": "conv(k={k}) >> ff({width})"},
    task={"name": "addition"},
    train={"optimizer": {"name": "adam", "lr": "{lr}"}, "epochs": 1, "steps_per_epoch": 1},
    search={"sampler": "gp", "trials": 30, "metric": "loss"},
    space={"k": "integer(1, 64)", "width": "integer(4, 64)", "lr": "real(0.01, 1.0)"},
)


def loss(values, seed=0):
    """Return a loss with a valley along which kernel and rate grow together."""
    kernel, width = values["k"] / 64, values["width"] / 64
    return (kernel - values["lr"]) ** 2 + 0.1 * (kernel - 0.8) ** 2 + (width - 0.3) ** 2


def test_a_space_that_a_sampler_cannot_search_is_refused(golden):
    load_study(SEARCH, ["search.space.k=choice(1, 2)"])
    with golden.raises(StudyError):
        load_study(SEARCH, ["model.recipe={mixer}", "search.space.mixer=choice(conv(k={k}), ff({width}))"])


@pytest.mark.heavy
def test_generations_of_optunas_genetic_samplers_are_restored_from_the_store(tmp_path, notes):
    store, changes = Store(tmp_path / "results"), ["search.sampler=nsga2", "search.trials=70"]
    search(SEARCH, store, loss, notes, changes, max_trials=52)
    again = Search(load_study(SEARCH, changes), store, "again", notes)
    jobs = [again.next_job()]
    first = [trial.system_attrs["NSGAIISampler:generation"] for trial in again._optuna.studies[0].trials]
    assert (len(jobs), first[:52], first[-1]) == (1, [*[0] * 50, 1, 1], 1)
