"""Answers of MAD's tasks are at the positions that the released program defines."""

import pytest
import torch

from activemem.studies.catalog.tasks import IGNORED, read_task_settings
from activemem.studies.text.strict_model import InvalidTableError


def test_set_of(**keys):
    task = read_task_settings({"name": "mad", "test_examples": 200, **keys})
    (draw,) = task.test_sets().values()
    inputs, targets, _ = draw(torch.Generator().manual_seed(0))
    assert inputs.shape[1] == task.sizes.tokens
    return task, list(zip(inputs.tolist(), targets.tolist(), strict=True))


test_set_of.__test__ = False


@pytest.mark.parametrize("problem", ["in_context_recall", "noisy_recall"])
def test_keys_that_come_again_are_asked_for_their_value(problem):
    task, examples = test_set_of(problem=problem, length=40, vocab=32)
    noise = 0
    for inputs, targets in examples:
        known = {}
        sequence = [*inputs, targets[-1]]
        for place in range(0, 40, 2):
            key, value = sequence[place : place + 2]
            if key >= task.usual:
                noise += 1
                assert value >= task.usual
                assert targets[place] == IGNORED
                continue
            assert key < task.keys <= value < task.usual
            assert targets[place] == (value if key in known else IGNORED)
            assert known.setdefault(key, value) == value
        assert targets[-1] != IGNORED
        assert all(target == IGNORED for target in targets[1::2])
    assert (0.1 < noise / 4000 < 0.3) == (problem == "noisy_recall")
    assert bool(noise) == (problem == "noisy_recall")


def test_a_fuzzy_key_comes_before_it_is_asked():
    task, examples = test_set_of(problem="fuzzy_recall", length=60, vocab=16)
    for inputs, targets in examples:
        sequence = [*inputs, targets[-1]]
        start = next(place for place, symbol in enumerate(sequence) if symbol != task.usual)
        known, place = {}, start
        while place < len(sequence):
            key = tuple(sequence[place : place + 3])
            end = place + 3
            while end < len(sequence) and sequence[end] >= task.keys:
                end += 1
            value = tuple(sequence[place + 3 : end])
            assert len(set(key)) == 3
            assert max(key) < task.keys <= min(value)
            asked = targets[place + 2 : end - 1]
            assert asked == (list(value) if key in known else [IGNORED] * len(value))
            assert known.setdefault(key, value) == value
            place = end
        assert targets[-1] != IGNORED


def test_symbols_are_copied_in_their_order():
    task, examples = test_set_of(problem="selective_copying", length=20, copies=4)
    for inputs, targets in examples:
        symbols = [symbol for symbol in inputs if symbol < task.usual]
        assert inputs[15:] == [15, 14, 14, 14, 14]
        assert targets == [IGNORED] * 16 + symbols


def test_memorised_pairs_are_the_same_in_all_sets():
    _, examples = test_set_of(problem="memorization", length=12, vocab=33)
    found = {}
    for inputs, targets in examples:
        assert set(inputs[1::2]) == {32}
        assert targets[::2] == [IGNORED] * 6
        for key, value in zip(inputs[::2], targets[1::2], strict=True):
            assert found.setdefault(key, value) == value
    assert set(found) == set(range(16))
    assert sorted(found.values()) == list(range(16, 32))


def test_all_that_is_compressed_is_asked_for():
    task, examples = test_set_of(problem="compression", length=8, vocab=5)
    for inputs, targets in examples:
        assert inputs == targets
        assert inputs[-1] == 4
        assert max(inputs[:-1]) < 4
    assert (task.interface.model.bottleneck, task.interface.model.causal) == (True, True)
    assert not read_task_settings({"name": "mad"}).interface.model.bottleneck


def test_the_examples_of_a_training_are_few():
    task = read_task_settings({"name": "mad", "length": 16, "train_examples": 7})
    drawn = [task.draw(40, torch.Generator().manual_seed(seed)) for seed in (1, 2)]
    assert {len(each.inputs.unique(dim=0)) for each in drawn} == {7}
    assert drawn[0].inputs[:, 1:].equal(drawn[0].targets[:, :-1])  # all symbols are asked for


@pytest.mark.parametrize("problem", ["in_context_recall", "memorization"])
def test_dev_examples_are_other_ones_than_those_of_the_training_and_scored_as_in_the_test_set(problem):
    task = read_task_settings({"name": "mad", "problem": problem, "train_examples": 50, "length": 32})
    (draw_test_set,) = task.test_sets().values()
    trained = {tuple(row) for row in task.draw(2000, torch.Generator().manual_seed(0)).inputs.tolist()}
    dev, test = task.draw_dev(1000, torch.Generator().manual_seed(0)), draw_test_set(torch.Generator())
    assert trained.isdisjoint(map(tuple, dev.inputs.tolist()))
    scored, expected = (float((each.targets != IGNORED).double().mean()) for each in (dev, test))
    assert scored == pytest.approx(expected, rel=0.02)


def test_sizes_that_cannot_be_are_refused():
    with pytest.raises(InvalidTableError) as error:
        read_task_settings({"name": "mad", "problem": "selective_copying", "length": 32})
    assert "34 tokens, got 32" in str(error.value.problems)
