"""How many architectures a search chooses from, held against all of its points."""

import pytest

from activemem.studies.resolve.search_points import enumerate_points
from activemem.studies.searches.space_size import has_too_few, space_size
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


@pytest.mark.parametrize(
    ("trials", "lr", "too_few"), [(4, "1e-3", False), (5, "1e-3", True), (5, "'{rate}'", False)]
)
def test_more_points_than_architectures_are_told_if_nothing_else_is_chosen(trials, lr, too_few):
    space = {"k": "integer(2, 5)", "rate": "choice(1e-3, 1e-2)"} if "rate" in lr else {"k": "integer(2, 5)"}
    text = study_text(
        model={"recipe": "conv(k={k})"}, task={"name": "sort"}, factors={"seed": [0]},
        search={"trials": trials, "metric": "loss"}, space=space,
    )  # fmt: skip
    study = load_study(text, [f"train.optimizer.lr={lr}"])
    assert has_too_few(study, space_size(study)) == too_few


def test_a_grid_has_no_space():
    assert space_size(load_study("quickstart")) is None
