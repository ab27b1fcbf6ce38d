"""Positions are checked against tasks before training; keys without effect are in no id."""

from pathlib import Path

import pytest

import activemem
from activemem import load_study
from activemem.studies import StudyError

STUDIES = Path(activemem.__file__).parent / "studies"


@pytest.mark.parametrize(
    ("name", "changes", "told"),
    [
        (
            "negative-eigenvalues-small",
            ["model.position=learned", "model.max_positions=254"],
            "learned has 254 positions, but a sequence has 255",  # where it is tested alone
        ),
        (
            "zoology-figure-2-small",
            ["model.position=randomised", "model.max_positions=63"],
            "randomised has 63 positions, but a sequence has 64",
        ),
        (
            "algorithmic-small",
            ["model.position=learned", "model.max_positions=20"],
            "learned has 20 positions, but a sequence has",
        ),
        (
            "language-modelling-small",
            ["model.position=learned", "model.max_positions=99"],
            "learned has 99 positions, but a sequence has 100",
        ),
        (
            "quickstart-text",
            ["model.position=learned"],
            "learned has 2,048 positions, but a stream has no end",
        ),
        (
            "quickstart-text",
            ["model.position=randomised"],
            "randomised positions need the length of the whole sequence",
        ),
        (
            "translation-small",
            ["model.position=randomised"],
            "randomised positions need the length of the whole sequence",
        ),
        (
            "language-modelling-small",
            ["model.position=randomised_pairs", "model.recipe=sa(pos=rope)"],
            "randomised_pairs positions need the length of the whole sequence",
        ),
        (
            "zoology-figure-2-small",
            ["model.position=randomised_pairs"],
            "randomised_pairs needs a mixer with pairwise positions, for example sa(pos=rope)",
        ),
    ],
)
def test_positions_that_a_task_cannot_have_are_reported(name, changes, told):
    with pytest.raises(StudyError) as caught:
        load_study(STUDIES / f"{name}.toml", changes)
    assert told in str(caught.value)


def test_the_number_of_positions_is_part_of_an_id_where_it_matters_alone():
    def ids(*changes):
        return {trial.id for trial in load_study(STUDIES / "quickstart.toml", list(changes)).trials}

    assert ids("model.max_positions=99") == ids("model.max_positions=2048") == ids()
    fewer, learned = ids("model.position=learned", "model.max_positions=999"), ids("model.position=learned")
    assert len(ids() | fewer | learned) == 3 * len(ids())
