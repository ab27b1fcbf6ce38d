"""Drawing of sequences for the recall tasks: multi-query recall, induction heads, and needle."""

from __future__ import annotations

from functools import partial

import torch
from torch import Generator, Tensor

from ....studies.catalog.tasks import IGNORED, Examples
from ....studies.catalog.tasks.synthetic import RULES, InductionSettings, MqarSettings, NeedleSettings, Rule
from ....studies.catalog.tasks.synthetic.recall import (
    ASK,
    DIGITS,
    FIRST_DIGIT,
    FIRST_WORD,
    GAP_EXPONENT,
    MARK,
    TRIGGER,
    WORDS,
)
from .lengths import draw_lengths, only_last, pad_behind


def draw_mqar(task: MqarSettings, count: int, test_set: str | None, generator: Generator) -> Examples:
    """Draw sequences of multi-query associative recall.

    Keys with values come first, then keys as queries. The sequences have the shapes of a test set or of
    training. A shape is a length and a number of pairs. With several training shapes, the shape of each
    sequence is drawn by the shapes' weights.
    """
    if test_set is not None:
        length, pairs = map(int, test_set.split("-"))
        return _mqar_of(task, count, length, pairs, generator)
    shapes = task.shapes
    if len(shapes) == 1:
        return _mqar_of(task, count, *shapes[0][:2], generator)
    weights = torch.tensor([weight for _, _, weight in shapes], dtype=torch.float64)
    drawn = weights.multinomial(count, replacement=True, generator=generator)
    longest = max(shapes[each][0] for each in drawn.unique().tolist())
    inputs = torch.zeros(count, longest, dtype=torch.int64)
    targets = torch.full_like(inputs, IGNORED)
    for each in drawn.unique().tolist():
        length, pairs, _ = shapes[each]
        rows = (drawn == each).nonzero().flatten()
        some = _mqar_of(task, len(rows), length, pairs, generator)
        inputs[rows, :length], targets[rows, :length] = some.inputs, some.targets
    return Examples(inputs, targets)


def _mqar_of(task: MqarSettings, count: int, length: int, pairs: int, generator: Generator) -> Examples:
    """Draw key-value pairs, then each key once more as a query.

    The target at a query is the key's value. All other positions are 0.
    """
    random = partial(torch.rand, generator=generator, dtype=torch.float64)
    half = task.vocab // 2
    keys = 1 + _distinct_numbers(count, half - 1, pairs, generator)
    values = half + _distinct_numbers(count, task.vocab - half, pairs, generator)
    gaps = torch.arange(1, length // 2 - pairs + 1, dtype=torch.float64) ** GAP_EXPONENT
    # taking the largest log(u) / weight draws without replacement, by these weights
    places = 2 * pairs + 2 * (random(count, len(gaps)).log() / gaps).topk(pairs).indices
    inputs = torch.zeros(count, length, dtype=torch.int64)
    inputs[:, 0 : 2 * pairs : 2], inputs[:, 1 : 2 * pairs : 2] = keys, values
    targets = torch.full_like(inputs, IGNORED).scatter_(1, places, values)
    return Examples(inputs.scatter_(1, places, keys), targets)


def _distinct_numbers(count: int, symbols: int, chosen: int, generator: Generator) -> Tensor:
    """Draw `count` rows of `chosen` distinct numbers below `symbols`.

    All rows are equally likely. If few of many are chosen, rows with duplicates are drawn again; otherwise
    random keys are sorted.
    """
    if chosen * chosen > symbols:
        return torch.rand(count, symbols, generator=generator).argsort(1)[:, :chosen]
    drawn = torch.randint(symbols, (count, chosen), generator=generator)
    while len(again := _repeated(drawn)):
        drawn[again] = torch.randint(symbols, (len(again), chosen), generator=generator)
    return drawn


def _repeated(drawn: Tensor) -> Tensor:
    ordered = drawn.sort(1).values
    return (ordered[:, 1:] == ordered[:, :-1]).any(1).nonzero().flatten()


def draw_induction(
    task: InductionSettings, count: int, test_set: str | None, generator: Generator
) -> Examples:
    """Draw symbols with a trigger at a random position, and again at the end.

    The first trigger is before the last two symbols.
    """
    ends, rows = draw_lengths(task, count, test_set, generator), torch.arange(count)
    inputs = torch.randint(task.vocab, (count, int(ends.max())), generator=generator) + TRIGGER + 1
    # numbers of such a range are practically uniform after a modulo
    places = torch.randint(1 << 62, (count,), generator=generator) % (ends - 2)
    answers = inputs[rows, places + 1]
    inputs[rows, places] = inputs[rows, ends - 1] = TRIGGER
    inputs = pad_behind(inputs, ends)
    return Examples(inputs, only_last(answers[:, None].expand_as(inputs), ends))


def draw_needle(task: NeedleSettings, count: int, test_set: str | None, generator: Generator) -> Examples:
    """Draw texts in which a marker and digits are hidden.

    The targets at the end are these digits. A text ends with a question token and all digits except the last
    one; the targets from the question on are the digits.
    """
    if test_set is None:
        ends = draw_lengths(task, count, None, generator)
        depths = torch.rand(count, generator=generator, dtype=torch.float64)
    else:
        length, depth = test_set.split("-")
        ends, depths = draw_lengths(task, count, length, generator), torch.full((count,), float(depth) / 100)
    width, rows, places = int(ends.max()), torch.arange(count)[:, None], torch.arange(DIGITS)
    starts = torch.randint(WORDS, (count, 1), generator=generator)
    inputs = FIRST_WORD + (starts + torch.arange(width)) % WORDS
    digits = FIRST_DIGIT + torch.randint(10, (count, DIGITS), generator=generator)
    marks = ((ends - 2 * DIGITS - 1) * depths).round().long()[:, None]
    asked = (ends - DIGITS)[:, None]
    inputs[rows, marks], inputs[rows, marks + 1 + places] = MARK, digits
    inputs[rows, asked], inputs[rows, asked + 1 + places[:-1]] = ASK, digits[:, :-1]
    targets = torch.full_like(inputs, IGNORED)
    targets[rows, asked + places] = digits
    return Examples(pad_behind(inputs, ends), targets)


RULES["mqar"] = Rule(draw_mqar)
RULES["induction_heads"] = Rule(draw_induction)
RULES["needle"] = Rule(draw_needle)
