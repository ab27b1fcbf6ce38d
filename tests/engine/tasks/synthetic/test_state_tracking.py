"""Parity, modular arithmetic and word problems against short automata."""

import pytest
import torch

from activemem.engine.tasks.synthetic.state_tracking import group_elements, multiplication_table
from activemem.studies.catalog.tasks import IGNORED, read_task_settings
from activemem.studies.catalog.tasks.synthetic import GROUP_ORDERS
from activemem.studies.text.strict_model import InvalidTableError

SIGNS = {1: "+", 2: "-", 3: "*", 4: ""}


def drawn(count=200, seed=0, **keys):
    """Return the settings of a task, and training examples as lists without padding."""
    task = read_task_settings(keys)
    examples = task.draw(count, torch.Generator().manual_seed(seed))
    return task, list(zip(examples.inputs.tolist(), examples.targets.tolist(), strict=True))


def asked(targets):
    """Return the target at the only scored position."""
    (place,) = [at for at, target in enumerate(targets) if target != IGNORED]
    return place


def test_parity_is_asked_at_the_last_bit():
    _, examples = drawn(name="parity", lengths=[3, 9])
    ends = set()
    for inputs, targets in examples:
        place = asked(targets)
        ends.add(place + 2)  # the answer counts
        assert set(inputs[: place + 1]) <= {1, 2}
        assert not any(inputs[place + 1 :])
        assert targets[place] == 1 + inputs.count(2) % 2
    assert ends == set(range(3, 10))


def test_modular_arithmetic_is_what_python_computes():
    _, examples = drawn(name="modular_arithmetic", lengths=[3, 16])
    signs = set()
    for inputs, targets in examples:
        place = asked(targets)
        assert inputs[place] == 4
        assert 4 not in inputs[:place]
        text = "".join(SIGNS.get(token, str(token - 7)) for token in inputs[:place])
        assert eval(text) % 5 == targets[place] - 7
        signs |= set(text)
    assert "*" in signs
    lengths = {asked(targets) + 2 for _, targets in examples}
    assert lengths == set(range(3, 17, 2))


@pytest.mark.parametrize("group", sorted(GROUP_ORDERS))
def test_the_elements_of_a_group_form_a_group(group):
    table = multiplication_table(group)
    order = len(table)
    assert order == GROUP_ORDERS[group]
    everyone = torch.arange(order)
    assert table.sort(0).values.equal(everyone[:, None].expand(order, order))  # no product twice
    assert table.sort(1).values.equal(everyone.expand(order, order))
    assert table[0].equal(everyone)  # the first element changes nothing
    assert table[:, 0].equal(everyone)
    assert (table == 0).any(1).all()  # an inverse
    assert table[table].equal(table[everyone[:, None, None], table])  # associative
    commutes = bool(table.equal(table.T))
    assert commutes == (group == "Z60")


@pytest.mark.parametrize("group", ["S3", "S5", "A5", "A4xZ5"])
def test_a_word_problem_moves_objects(group):
    elements = group_elements(group)
    _, examples = drawn(count=20, name="word_problem", group=group, lengths=[2, 9])
    for inputs, targets in examples:
        places = list(range(len(elements[0])))
        for element, target in zip(inputs, targets, strict=True):
            places = [elements[element][place] for place in places]
            if target != IGNORED:
                assert tuple(places) == elements[target]


def test_a_test_set_has_its_length_alone():
    task = read_task_settings(
        {"name": "parity", "test_lengths": {"first": 40, "last": 60, "step": 10}, "test_examples": 5}
    )
    shapes = {name: draw(torch.Generator()).inputs.shape for name, draw in task.test_sets().items()}
    assert shapes == {"40": (5, 39), "50": (5, 49), "60": (5, 59)}


@pytest.mark.parametrize(
    "keys",
    [
        {"lengths": [9, 3]},
        {"lengths": [1, 3]},
        {"test_lengths": [50, 40]},
    ],
)
def test_impossible_lengths_are_rejected(keys, golden):
    with pytest.raises(InvalidTableError) as error:
        read_task_settings({"name": "parity", **keys})
    golden(str(error.value.problems))
