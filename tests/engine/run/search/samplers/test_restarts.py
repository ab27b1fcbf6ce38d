"""A search restored from its store proposes the same points as an uninterrupted one."""

import pytest

from activemem.storage import Store

from .....study_texts import study_text
from ..analytic import search

SEARCH = study_text(
    study={"name": "numbers", "title": "A kernel, a width and a rate"},
    model={"recipe": "conv(k={k}) >> ff({width})"},
    task={"name": "addition"},
    train={"optimizer": {"name": "adam", "lr": "{lr}"}, "epochs": 1, "steps_per_epoch": 1},
    search={"sampler": "tpe", "trials": 30, "metric": "loss"},
    # in another order than in the recipe, which may not matter
    space={"width": "integer(4, 64)", "lr": "real(0.01, 1.0)", "k": "integer(1, 64)"},
)


def loss(values, seed=0):
    """Return a loss with a valley along which kernel and rate grow together."""
    kernel, width = values["k"] / 64, values["width"] / 64
    return (kernel - values["lr"]) ** 2 + 0.1 * (kernel - 0.8) ** 2 + (width - 0.3) ** 2


TREES = study_text(
    study={"name": "trees", "title": "A mixer and its kernel"},
    model={"recipe": "{mixer} >> ff({width})"},
    task={"name": "addition"},
    train={"epochs": 1, "steps_per_epoch": 1},
    search={"trials": 24, "metric": "loss"},
    space={
        "mixer": "choice(sa, conv(k={k}), gru, conv(k={k}) >> sa)",
        "k": "integer(1, 64)",
        "width": "integer(4, 64)",
    },
)


def depth(values, seed=0):
    """Return a loss for which a convolution of 16 is the best mixer."""
    return abs(values.get("k", 64) - 16) / 16 + abs(values["width"] - 20) / 64


def assert_restarts_are_equal(text, value, folder, notes, changes, parts=(1, 6, 9)):
    """Stop a search after these numbers of points, and compare it with an uninterrupted one."""
    changes = [*changes, f"search.trials={sum(parts)}"]
    whole = search(text, Store(folder / "whole"), value, notes, changes)
    stored = Store(folder / "parts")
    found = [
        point for count in parts for point in search(text, stored, value, notes, changes, max_trials=count)
    ]
    assert len(whole) == sum(parts)
    assert found == whole


@pytest.mark.parametrize(
    "sampler",
    [
        *(pytest.param(name, marks=pytest.mark.heavy) for name in ("gp_trees", "random")),
        pytest.param("{ name = 'evolution', population = 6, sample = 3 }", id="evolution"),
        pytest.param("{ name = 'tpe', n_startup_trials = 4 }", id="tpe"),
        pytest.param("gp", marks=pytest.mark.slow),
    ],
)
def test_a_search_of_numbers_that_is_resumed_proposes_the_same(tmp_path, notes, sampler):
    assert_restarts_are_equal(SEARCH, loss, tmp_path, notes, [f"search.sampler={sampler}"])


@pytest.mark.parametrize(
    "sampler",
    [
        *("gp_trees", "evolution"),
        *(pytest.param(name, marks=pytest.mark.heavy) for name in ("tpe", "random", "grid")),
    ],
)
def test_a_search_of_recipes_that_is_resumed_proposes_the_same(tmp_path, notes, sampler):
    assert_restarts_are_equal(TREES, depth, tmp_path, notes, [f"search.sampler={sampler}"])


@pytest.mark.heavy
def test_a_search_by_generations_that_is_resumed_proposes_the_same(tmp_path, notes):
    assert_restarts_are_equal(SEARCH, loss, tmp_path, notes, ["search.sampler=nsga2"], (20, 35, 10))
