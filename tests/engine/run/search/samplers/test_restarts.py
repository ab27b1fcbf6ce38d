"""A search that is stopped and resumed from its store proposes the points of one that was never stopped."""

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
    space={"k": "integer(1, 64)", "width": "integer(4, 64)", "lr": "real(0.01, 1.0)"},
)


def loss(values, seed=0):
    """A valley along which a larger kernel goes with a larger rate."""
    kernel, width = values["k"] / 64, values["width"] / 64
    return (kernel - values["lr"]) ** 2 + 0.1 * (kernel - 0.8) ** 2 + (width - 0.3) ** 2


@pytest.mark.parametrize(
    ("sampler", "parts"),
    [("tpe", (7, 9, 14)), ("nsga2", (20, 35, 10)), ("random", (7, 23)), ("quasi_random", (7, 23))],
)
def test_a_resumed_search_proposes_the_same_points(tmp_path, notes, sampler, parts):
    changes = [f"search.sampler={sampler}", f"search.trials={sum(parts)}"]
    whole = search(SEARCH, Store(tmp_path / "whole"), loss, notes, changes)
    stored = Store(tmp_path / "parts")
    found = [
        point for count in parts for point in search(SEARCH, stored, loss, notes, changes, max_trials=count)
    ]
    assert found == whole
