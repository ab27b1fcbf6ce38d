"""Plans of trials whose models torch compiles separately for each length."""

import re

import pytest

from activemem import load_study
from activemem.engine import Machine
from activemem.engine.run import on_machine
from activemem.storage import Store
from activemem.studies import make_plan

from ...study_texts import study_text

GROWN, FIXED = {"curriculum": {"start": 5}}, {"curriculum": {"start": 5, "end": 5}}


@pytest.fixture
def compile_note(tmp_path):
    """Return a function for the `compile` line of a plan; None without one."""

    def note(mixers, task=None, model=None, *, compiled=True, **train):
        factors = {"mixer": mixers, "seed": [0]}
        train = {**train, "compile": compiled}
        study = load_study(
            study_text(task=task or {"name": "reverse"}, model=model or {}, train=train, factors=factors)
        )
        page = str(on_machine(make_plan(study, Store(tmp_path)), Machine()))
        found = re.search(r"^  compile (.*?)(?:\n\n|\Z)", page, re.DOTALL | re.MULTILINE)
        return None if found is None else " ".join(found[1].split())

    return note


@pytest.mark.parametrize(
    ("train", "told"),
    [
        (GROWN, True),
        (FIXED, False),
        ({"curriculum": None, "lengths": [3, 9]}, True),
        ({"curriculum": None, "lengths": [9, 9]}, False),
    ],
)
def test_a_plan_names_the_blocks_that_are_compiled_for_each_length(compile_note, train, told):
    note = compile_note(["lstm"], **train)
    assert bool(note) == told
    assert note is None or re.search(r"\b1 trial .* lstm ", note)
    assert compile_note(["lstm"], compiled=False, **train) is None


def test_blocks_compiled_once_for_most_lengths_are_not_named(compile_note):
    assert compile_note(["sa(heads=2)", "conv(k=3)", "delta(heads=2)", "base_conv(k=3)"], **GROWN) is None


def test_only_the_first_of_many_blocks_are_named(compile_note, golden):
    mixers = ["sa(heads=2, pos=alibi)", "gru", "lstm", "lstm + conv(k=3)", "hyena", "conv(k=3)", "mamba"]
    golden(compile_note(mixers, **GROWN))


@pytest.mark.parametrize(
    ("task", "told"),
    [
        ({"name": "word_problem", "lengths": [6, 30]}, True),
        ({"name": "word_problem", "lengths": [6, 6]}, False),
        ({"name": "mqar", "length": 64, "pairs": 8}, False),
        ({"name": "recall_addition", "length": 50}, False),
        ({"name": "recall_addition", "variable": True}, True),
    ],
)
def test_it_knows_the_lengths_of_tasks_that_draw_their_examples(compile_note, task, told):
    model = {"recipe": "{mixer} >> last"} if task["name"] == "recall_addition" else {}
    assert (compile_note(["lstm"], task, model, curriculum=None) is not None) is told
