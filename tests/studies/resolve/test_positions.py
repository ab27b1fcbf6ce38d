"""Positions are checked against tasks before training; keys without effect are in no id."""

from pathlib import Path

import pytest

import activemem
from activemem import load_study
from activemem.studies import StudyError

STUDIES = Path(activemem.__file__).parent / "studies"


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("negative-eigenvalues-small", ["model.position=learned", "model.max_positions=254"]),
        ("zoology-figure-2-small", ["model.position=randomised", "model.max_positions=63"]),
        ("algorithmic-small", ["model.position=learned", "model.max_positions=20"]),
        ("language-modelling-small", ["model.position=learned", "model.max_positions=99"]),
        ("quickstart-text", ["model.position=learned"]),
        ("quickstart-text", ["model.position=randomised"]),
        ("quickstart-text", ["model.position=learned", "task.batching=packed", "task.context=3000"]),
        ("translation-small", ["model.position=randomised"]),
        ("language-modelling-small", ["model.position=randomised_pairs", "model.recipe=sa(pos=rope)"]),
        ("zoology-figure-2-small", ["model.position=randomised_pairs"]),
    ],
    ids=str,
)
def test_positions_that_a_task_cannot_have_are_reported(name, changes, golden):
    with golden.raises(StudyError):
        load_study(STUDIES / f"{name}.toml", changes)


def test_packed_rows_need_positions_for_their_context_alone():
    packed = ["task.batching=packed", "task.context=64", "model.position=learned", "model.max_positions=64"]
    assert load_study(STUDIES / "quickstart-text.toml", packed).trials


def test_the_number_of_positions_is_part_of_an_id_where_it_matters_alone():
    def ids(*changes):
        return {trial.id for trial in load_study(STUDIES / "quickstart.toml", list(changes)).trials}

    assert ids("model.max_positions=99") == ids("model.max_positions=2048") == ids()
    fewer, learned = ids("model.position=learned", "model.max_positions=999"), ids("model.position=learned")
    assert len(ids() | fewer | learned) == 3 * len(ids())
