"""The reach that tasks need, proved by enumerating all inputs of short sequences."""

import itertools

import pytest
import torch

from activemem.engine.tasks.algorithmic import get_task, registered_tasks
from activemem.studies.catalog.tasks import require_task

ARITHMETIC = ("addition", "multiply")
CASES = [
    (name, length)
    for name in registered_tasks()
    for length in ((5, 7, 9, 11, 13) if name in ARITHMETIC else (1, 2, 3, 4, 5, 6, 8))
]
TOO_LUCKY = 0.05 ** (1 / 32)  # right so often in one sequence: in all of 32 with a chance of 5 %


@pytest.fixture(autouse=True)
def _one_thread():
    torch.set_num_threads(1)


def every_input(name, length):
    """Return all inputs of the task with symbols 0 and 1; (inputs, tokens)."""
    if name in ARITHMETIC:
        numbers = list(itertools.product((0, 1), repeat=length // 2))[:-1]
        return torch.tensor([[*a, 2, *b] for a in numbers for b in numbers])
    rows = torch.tensor(list(itertools.product((0, 1), repeat=length)))
    return torch.nn.functional.pad(rows, (0, length)) if require_task(name).doubles_length else rows


def groups(visible):
    """Return the group number of each row, with equal rows in one group, and the number of groups."""
    keys = (visible * 3 ** torch.arange(visible.shape[1])).sum(dim=1)
    distinct, group = keys.unique(return_inverse=True)
    return group, len(distinct)


def furthest_dependence(name, length):
    """Return the largest distance on each side at which changing a symbol changes an output."""
    inputs = every_input(name, length)
    targets = get_task(name).solve(inputs)
    left = right = 0
    for position in range(inputs.shape[1]):
        others = inputs.clone()
        others[:, position] = 0
        group, count = groups(others)
        index, start = (
            group[:, None].expand_as(targets),
            torch.zeros(count, inputs.shape[1], dtype=torch.int64),
        )
        most = start.scatter_reduce(0, index, targets, "amax", include_self=False)
        least = start.scatter_reduce(0, index, targets, "amin", include_self=False)
        for output in (most != least).any(dim=0).nonzero().flatten().tolist():
            left, right = max(left, output - position), max(right, position - output)
    return left, right


def best_guess(name, length, left, right):
    """Return the accuracy of the best possible model with that reach on its hardest output."""
    inputs = every_input(name, length)
    targets = get_task(name).solve(inputs)
    chances = []
    for output in range(inputs.shape[1]):
        visible = inputs.clone()
        visible[:, : max(0, output - left)] = 0
        visible[:, output + right + 1 :] = 0
        group, count = groups(visible)
        seen = torch.bincount(group * 3 + targets[:, output], minlength=count * 3).view(count, 3)
        chances.append(seen.amax(dim=1).sum().item() / len(targets))
    return min(chances)


@pytest.mark.parametrize(("name", "length"), CASES)
def test_no_reach_is_beyond_the_furthest_inputs_that_can_change_an_output(name, length):
    certain = require_task(name).unguessable_reach(length)
    left, right = furthest_dependence(name, length)
    assert certain.left <= left
    assert certain.right <= right


@pytest.mark.parametrize(("name", "length"), [case for case in CASES if case[0] != "sort"])
def test_luck_does_not_replace_what_is_certain(name, length):
    certain, tokens = require_task(name).unguessable_reach(length), require_task(name).sequence_length(length)
    if certain.left:
        assert best_guess(name, length, int(certain.left) - 1, tokens) < TOO_LUCKY
    if certain.right:
        assert best_guess(name, length, tokens, int(certain.right) - 1) < TOO_LUCKY
    assert best_guess(name, length, tokens, tokens) == 1


@pytest.mark.parametrize("length", [2, 3, 4, 5, 8, 20, 60, 200])
def test_luck_does_not_sort(length):
    sequences, completions, sort = 40, 50, get_task("sort")
    generator = torch.Generator().manual_seed(length)
    sees = int(sort.spec.unguessable_reach(length).right) - 1  # to the right; everything to the left
    output = length // 20  # one value ends about there: 20 symbols
    inputs = sort.batch(sequences, length, generator).inputs.repeat_interleave(completions, dim=0)
    hidden = sort.batch(sequences * completions, length, generator).inputs
    inputs[:, output + sees + 1 :] = hidden[:, output + sees + 1 :]
    answers = sort.solve(inputs)[:, output].view(sequences, completions)
    right = (answers == answers.mode(dim=1, keepdim=True).values).double().mean().item()
    assert right < TOO_LUCKY
