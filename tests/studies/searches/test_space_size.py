"""Numbers of architectures and points of a search, compared with enumeration."""

import pytest

from activemem import load_study
from activemem.engine.core.events import NOBODY
from activemem.engine.run.search.search import Search
from activemem.storage import Store
from activemem.studies.schema.search import enumerate_points
from activemem.studies.searches.words import space_size, space_words

from ...study_texts import study_text

LAYERS = {
    "depth": "choice({first}, {first} >> {second})",
    "first": "choice(sa, conv(k={k}), sa + conv(k={k}))",
    "second": "choice(ff(8), conv(k={l}), conv(k=3))",
    "k": "integer(2, 5)",
    "l": "integer(2, 5)",
}


def search(recipe, space, overrides=()):
    found = {"trials": 3, "metric": "loss"}
    text = study_text(
        model={"recipe": recipe}, task={"name": "sort"}, factors={"seed": [0]}, search=found, space=space
    )
    return load_study(text, overrides)


@pytest.mark.parametrize(
    ("recipe", "space", "told"),
    [
        ("{depth}", LAYERS, "at most 54 architectures"),
        (
            "choice(sa, conv(k=integer(2, 5))) >> ff({filter})",
            {"filter": "choice(8, 16)"},
            "10 architectures",
        ),
        ("conv(k={k}) >> conv(k={k})", {"k": "integer(2, 5)"}, "at most 16 architectures"),
    ],
)
def test_each_recipe_counts_once_whatever_leads_to_it(recipe, space, told):
    study = search(recipe, space)
    assert str(space_size(study)) == told
    found = {
        study.search.trial_of(values).settings.model.recipe
        for values in enumerate_points(study.search.choose)
    }
    assert len(found) == {"at most 16 architectures": 4}.get(told, space_size(study).forms)


POINTS = [
    ("conv(k={k})", {"k": "integer(2, 5)"}, [], 4),
    ("conv(k={k})", {"k": "integer(2, 5)", "rate": "choice(0.1, 0.2)"}, ["train.optimizer.lr={rate}"], 8),
    ("conv(k={k})", {"k": "integer(2, 5)", "rate": "real(0.1, 0.2)"}, ["train.optimizer.lr={rate}"], 9),
    ("{mixer}", {"mixer": "choice(sa, conv(k={k}))", "k": "choice(3, 5, 7)"}, [], 4),
    ("{a} + {b}", {"a": "choice(sa, conv(k=3))", "b": "choice(sa, conv(k=3))"}, [], 3),
    ("conv(k={k})", {"k": "integer(2, 5)"}, ['study.limits.parameters="<= 600"'], 2),
]  # fmt: skip
"""Recipes, spaces, overrides and their numbers of distinct points, up to 9."""


@pytest.mark.parametrize(("recipe", "space", "changes", "points"), POINTS)
def test_a_plan_says_that_a_space_has_fewer_points_than_are_asked_for(recipe, space, changes, points):
    study = search(recipe, space, ["search.trials=9", *changes])
    assert (study.search.num_points, study.total) == (points, points)
    assert ("the requested 9" in space_words(study)) == (points < 9)


@pytest.mark.parametrize("sampler", ["random", "grid", "tpe", "evolution", "gp_trees", "gp"])
def test_every_sampler_proposes_all_points_of_a_small_space(sampler, tmp_path):
    study = search("conv(k={k})", {"k": "integer(2, 4)"}, ["search.trials=7", f"search.sampler={sampler}"])
    asked = Search(study, Store(tmp_path), "run", NOBODY)
    proposed = {job.trial.id for job in iter(asked.next_job, None)}
    assert len(proposed) == study.search.num_points == 3


def test_a_grid_has_no_space():
    assert space_size(load_study("quickstart")) is None
