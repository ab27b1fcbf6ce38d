"""Sequences of the tasks of recall."""

from __future__ import annotations

from functools import partial

import torch
from torch import Generator, Tensor

from ....studies.catalog.tasks import IGNORED, Examples
from ....studies.catalog.tasks.synthetic import RULES, MqarSettings, Rule


def draw_mqar(task: MqarSettings, count: int, test_set: str | None, generator: Generator) -> Examples:
    """Sequences of one shape, or of each shape of a mixture as many as are drawn, in a random order."""
    if test_set is not None:
        length, pairs = map(int, test_set.split("-"))
        return _fill(task, _mqar_of(task, count, length, pairs, generator), generator)
    shapes = task.shapes
    if len(shapes) == 1:
        return _fill(task, _mqar_of(task, count, *shapes[0][:2], generator), generator)
    weights = torch.tensor([weight for _, _, weight in shapes], dtype=torch.float64)
    drawn = weights.multinomial(count, replacement=True, generator=generator)
    longest = max(shapes[each][0] for each in drawn.unique().tolist())
    inputs = torch.zeros(count, longest, dtype=torch.int64)
    targets = torch.full_like(inputs, IGNORED)
    for each in drawn.unique().tolist():
        length, pairs, _ = shapes[each]
        rows = (drawn == each).nonzero().flatten()
        some = _fill(task, _mqar_of(task, len(rows), length, pairs, generator), generator)
        inputs[rows, :length], targets[rows, :length] = some.inputs, some.targets
    return Examples(inputs, targets)


def _mqar_of(task: MqarSettings, count: int, length: int, pairs: int, generator: Generator) -> Examples:
    """Different keys and values, and a query of each key at a place of its own; 0 stands between."""
    random = partial(torch.rand, generator=generator, dtype=torch.float64)
    half = task.vocab // 2
    keys = 1 + _different(count, half - 1, pairs, generator)
    values = half + _different(count, task.vocab - half, pairs, generator)
    gaps = torch.arange(1, length // 2 - pairs + 1, dtype=torch.float64) ** (task.power_a - 1)
    # the largest of log(u) / weight are drawn without replacement by these weights
    places = 2 * pairs + 2 * (random(count, len(gaps)).log() / gaps).topk(pairs).indices
    inputs = torch.zeros(count, length, dtype=torch.int64)
    inputs[:, 0 : 2 * pairs : 2], inputs[:, 1 : 2 * pairs : 2] = keys, values
    targets = torch.full_like(inputs, IGNORED).scatter_(1, places, values)
    return Examples(inputs.scatter_(1, places, keys), targets)


def _fill(task: MqarSettings, examples: Examples, generator: Generator) -> Examples:
    """The same with any symbols instead of 0, if the task says so."""
    if not task.random_non_queries:
        return examples
    inputs, targets, _ = examples
    others = torch.randint(task.vocab, inputs.shape, generator=generator)
    return Examples(torch.where(inputs == 0, others, inputs), targets)


def _different(count: int, symbols: int, chosen: int, generator: Generator) -> Tensor:
    """Rows (count, chosen) of different numbers below `symbols`, any of them as likely as another.

    Few of many are drawn with replacement until none is there twice; else by the order of random keys.
    """
    if chosen * chosen > symbols:
        return torch.rand(count, symbols, generator=generator).argsort(1)[:, :chosen]
    drawn = torch.randint(symbols, (count, chosen), generator=generator)
    while len(again := _repeated(drawn)):
        drawn[again] = torch.randint(symbols, (len(again), chosen), generator=generator)
    return drawn


def _repeated(drawn: Tensor) -> Tensor:
    """The rows that have a number twice."""
    ordered = drawn.sort(1).values
    return (ordered[:, 1:] == ordered[:, :-1]).any(1).nonzero().flatten()


RULES["mqar"] = Rule(draw_mqar)
