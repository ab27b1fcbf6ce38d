"""Recall sequences have the parts defined by their papers' programs."""

from itertools import pairwise

import pytest
import torch

from activemem.studies.catalog.tasks import IGNORED, read_task_settings
from activemem.studies.text.strict_model import InvalidTableError


def draw(count=300, **keys):
    task = read_task_settings({"name": "mqar", **keys})
    return task, task.draw(count, torch.Generator().manual_seed(0))


def test_each_key_of_mqar_is_asked_once_for_its_value():
    _, (inputs, targets, _) = draw(vocab=64, length=32, pairs=4)
    for row, answers in zip(inputs.tolist(), targets.tolist(), strict=True):
        keys, values = row[0:8:2], row[1:8:2]
        assert len(set(keys)) == len(set(values)) == 4
        assert all(1 <= key < 32 for key in keys)
        assert all(32 <= value < 64 for value in values)
        asked = [place for place, answer in enumerate(answers) if answer != IGNORED]
        assert all(place >= 8 and place % 2 == 0 for place in asked)
        assert sorted(row[place] for place in asked) == sorted(keys)
        assert [answers[place] for place in asked] == [values[keys.index(row[place])] for place in asked]
        assert not any(symbol for place, symbol in enumerate(row[8:], 8) if place not in asked)


def test_gaps_of_mqar_follow_a_power_law():
    _, (_, targets, _) = draw(count=20_000, vocab=64, length=40, pairs=1)
    gaps = (targets != IGNORED).nonzero()[:, 1].sub(2).div(2, rounding_mode="floor").bincount(minlength=19)
    expected = torch.arange(1, 20, dtype=torch.float64) ** -0.99
    expected = 20_000 * expected / expected.sum()
    assert ((gaps - expected).abs() < 5 * expected.sqrt() + 1).all()


def test_all_keys_are_as_likely():
    _, (inputs, _, _) = draw(count=4000, vocab=20, length=16, pairs=2)
    counts = inputs[:, 0:4:2].flatten().bincount(minlength=10)
    assert counts[0] == 0
    assert ((counts[1:10] - 8000 / 9).abs() < 5 * (8000 / 9) ** 0.5).all()


def test_a_mixture_has_all_its_shapes_and_a_test_set_one():
    task, (inputs, targets, _) = draw(vocab=64, mixture=[[16, 2, 3], [32, 5, 1]], tests=[[16, 2], [64, 8]])
    asked = (targets != IGNORED).sum(1)
    assert set(asked.tolist()) == {2, 5}
    assert 180 < (asked == 2).sum() < 270
    assert not inputs[asked == 2][:, 16:].any()
    sets = {name: some(torch.Generator()) for name, some in task.test_sets().items()}
    assert {
        name: (examples.inputs.shape[1], int((examples.targets[0] != IGNORED).sum()))
        for name, examples in sets.items()
    } == {
        "16-2": (16, 2),
        "64-8": (64, 8),
    }


def test_more_pairs_than_there_is_room_for_are_refused():
    with pytest.raises(InvalidTableError) as error:
        read_task_settings({"name": "mqar", "length": 16, "tests": [[16, 5]]})
    assert "4 pairs in 16" in str(error.value.problems)


def test_the_target_is_the_symbol_after_the_trigger():
    task = read_task_settings({"name": "induction_heads", "lengths": [3, 9], "vocab": 5})
    inputs, targets, _ = task.draw(300, torch.Generator().manual_seed(0))
    places = set()
    for row, answers in zip(inputs.tolist(), targets.tolist(), strict=True):
        (asked,) = [place for place, answer in enumerate(answers) if answer != IGNORED]
        assert not any(row[asked + 1 :])
        first = row.index(1)
        assert [place for place, symbol in enumerate(row) if symbol == 1] == [first, asked]
        assert answers[asked] == row[first + 1] > 1
        places.add((asked + 1, first))
    assert places == {(length, place) for length in range(3, 10) for place in range(length - 2)}


def test_digits_are_found_where_they_were_hidden():
    task = read_task_settings({"name": "needle", "lengths": [20, 30], "test_lengths": [44]})
    sets = {name: draw(torch.Generator().manual_seed(1)) for name, draw in task.test_sets().items()}
    assert list(sets) == ["44-0", "44-25", "44-50", "44-75", "44-100"]
    starts = {name: {row.index(2) for row in examples.inputs.tolist()} for name, examples in sets.items()}
    assert starts == {"44-0": {0}, "44-25": {8}, "44-50": {16}, "44-75": {25}, "44-100": {33}}
    for inputs, targets, _ in [task.draw(100, torch.Generator().manual_seed(0)), *sets.values()]:
        for row, answers in zip(inputs.tolist(), targets.tolist(), strict=True):
            mark, ask = row.index(2), row.index(1)
            digits = row[mark + 1 : mark + 6]
            assert all(3 <= digit < 13 for digit in digits)
            assert row[ask : ask + 5] == [1, *digits[:4]]
            assert answers[ask : ask + 5] == digits
            assert sum(answer != IGNORED for answer in answers) == 5
            assert not any(row[ask + 5 :])
            words = row[:mark]
            assert all(word >= 13 for word in words)
            assert all((b - a) % 24 == 1 for a, b in pairwise(words))
