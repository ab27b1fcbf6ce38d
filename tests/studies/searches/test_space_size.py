"""How many architectures a search chooses from, held against all of its points."""

import pytest

from activemem.studies.resolve.search_points import enumerate_points
from activemem.studies.searches.space_size import space_size
from activemem.studies.study import load_study

from ...study_texts import study_text

LAYERS = {
    "depth": "choice({first}, {first} >> {second})",
    "first": "choice(sa, conv(k={k}), sa + conv(k={k}))",
    "second": "choice(ff(8), conv(k={l}), conv(k=3))",
    "k": "integer(2, 5)",
    "l": "integer(2, 5)",
}


def search(recipe, space):
    found = {"trials": 3, "metric": "loss"}
    return load_study(
        study_text(
            model={"recipe": recipe}, task={"name": "sort"}, factors={"seed": [0]}, search=found, space=space
        )
    )


@pytest.mark.parametrize(
    ("recipe", "space", "told"),
    [
        ("{depth}", LAYERS, "54 architectures"),
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
    found = {study.trial_for(values).settings.model.recipe for values in enumerate_points(study.choose)}
    assert len(found) == (4 if told.startswith("at most") else space_size(study).forms)


def test_a_grid_has_no_space():
    assert space_size(load_study("quickstart")) is None
