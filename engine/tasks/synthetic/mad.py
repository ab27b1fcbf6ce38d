"""Sequences of MAD's tasks, drawn one at a time as in the program of MAD's authors."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import torch
from torch import Generator, Tensor

from ....studies.catalog.tasks import IGNORED, Examples
from ....studies.catalog.tasks.synthetic import RULES, MadSettings, Rule
from ....studies.catalog.tasks.synthetic.mad import MOTIF, NOISE

_POOL_SEED, _MAP_SEED = 12345, 12345
"""The program's seeds for the training pool and for memorization's fixed mapping."""


def draw_mad(task: MadSettings, count: int, test_set: str | None, generator: Generator) -> Examples:
    """Draw examples of a MAD task.

    If the number of training examples is limited, draw those from a fixed pool of this size.
    """
    write = _WRITERS[task.problem]
    if test_set is not None or not task.train_examples:
        return _stack([write(task, generator, test_set is None) for _ in range(count)])
    pool = _pool(task.model_dump_json())
    chosen = torch.randint(len(pool.inputs), (count,), generator=generator)
    return Examples(pool.inputs[chosen], pool.targets[chosen])


@lru_cache(maxsize=2)
def _pool(settings: str) -> Examples:
    task = MadSettings.model_validate_json(settings)
    generator = torch.Generator().manual_seed(_POOL_SEED)
    return _stack([_WRITERS[task.problem](task, generator, True) for _ in range(task.train_examples)])


def _stack(written: list[tuple[Tensor, Tensor]]) -> Examples:
    inputs, targets = zip(*written, strict=True)
    return Examples(torch.stack(inputs), torch.stack(targets))


def _recall(task: MadSettings, generator: Generator, training: bool) -> tuple[Tensor, Tensor]:
    """Draw key-value pairs separated by noise.

    The target at a repeated key is its value. In training all symbols are targets, as in the program.
    """
    pairs, keys = task.length // 2, task.keys
    key = torch.randint(keys, (pairs,), generator=generator)
    values = keys + torch.randint(task.usual - keys, (keys,), generator=generator)
    noisy = torch.zeros(pairs, dtype=torch.bool)
    if task.problem == "noisy_recall":
        noisy = torch.rand(pairs, generator=generator) < NOISE
        # at least one pair before the last one must have a key
        noisy[torch.randint(pairs - 1, (), generator=generator)] = False
        seen = key[:-1][~noisy[:-1]]
        key[-1], noisy[-1] = seen[torch.randint(len(seen), (), generator=generator)], False
    else:
        # the last key repeats an earlier one, so that every sequence has a target
        key[-1] = key[torch.randint(pairs - 1, (), generator=generator)]
    sequence = torch.stack([key, values[key]], 1)
    if bool(noisy.any()):
        noise = task.usual + torch.randint(task.vocab - task.usual, sequence.shape, generator=generator)
        sequence = torch.where(noisy[:, None], noise, sequence)
    again = torch.zeros(pairs, dtype=torch.bool)
    found = set[int]()
    for place, (one, is_noise) in enumerate(zip(key.tolist(), noisy.tolist(), strict=True)):
        again[place] = one in found and not is_noise
        if not is_noise:
            found.add(one)
    asked = torch.stack([torch.zeros_like(again), again], 1).flatten()
    flat = sequence.flatten()
    return flat[:-1], (flat if training else flat.masked_fill(~asked, IGNORED))[1:]


def _fuzzy(task: MadSettings, generator: Generator, training: bool) -> tuple[Tensor, Tensor]:
    """Draw keys and values that are sequences of symbols.

    They have one or more distinct symbols. All else is as in `_recall`. The last pair repeats an earlier
    pair. Test examples only have keys of the maximum length; the remaining length is padded on the left.
    """

    def below(limit: int) -> int:
        return int(torch.randint(limit, (), generator=generator))

    def motif(first: int, symbols: int, size: int) -> tuple[int, ...]:
        return tuple((torch.randperm(symbols, generator=generator)[:size] + first).tolist())

    def new_key() -> tuple[int, ...]:
        return motif(0, task.keys, 1 + below(MOTIF) if training else MOTIF)

    def new_value() -> tuple[int, ...]:
        return motif(task.keys, task.usual - task.keys, 1 + below(MOTIF))

    probe, longest = new_key(), 2 * MOTIF
    pairs = {probe: new_value()}
    end = task.length - len(probe) - len(pairs[probe]) - longest
    first = below(end - longest + 1)
    sequence, asked, found = list[int](), list[bool](), set[tuple[int, ...]]()
    while len(sequence) < end:
        key = probe if len(sequence) >= first and probe not in found else new_key()
        value = pairs.setdefault(key, new_value())
        sequence += [*key, *value]
        asked += [False] * len(key) + [key in found] * len(value)
        found.add(key)
    missing = task.length + 1 - len(sequence) - len(probe) - len(pairs[probe])
    flat = torch.tensor([*[task.usual] * missing, *sequence, *probe, *pairs[probe]])
    scored = [*[False] * (missing + len(sequence) + len(probe)), *[True] * len(pairs[probe])]
    scored[missing : missing + len(asked)] = asked
    return flat[:-1], (flat if training else flat.masked_fill(~torch.tensor(scored), IGNORED))[1:]


def _copying(task: MadSettings, generator: Generator, training: bool) -> tuple[Tensor, Tensor]:
    """Draw symbols mixed with blanks, then a marker and more blanks.

    The last targets are the symbols. The marker is followed by as many blanks as there are symbols. The
    targets have the order of the symbols.
    """
    blank, sign = task.usual, task.usual + 1
    before = task.length - task.copies - 1
    places = torch.randperm(before, generator=generator)[: task.copies].sort().values
    symbols = torch.randint(task.usual, (task.copies,), generator=generator)
    inputs = torch.full((task.length,), blank)
    inputs[places], inputs[before] = symbols, sign
    targets = torch.full_like(inputs, IGNORED)
    targets[before + 1 :] = symbols
    return inputs, targets


def _memorization(task: MadSettings, generator: Generator, training: bool) -> tuple[Tensor, Tensor]:
    """Draw keys, each followed by a marker.

    The target at a marker is the key's value. Values are the same in all sequences.
    """
    by_heart = torch.randperm(task.usual - task.keys, generator=torch.Generator().manual_seed(_MAP_SEED))
    keys = torch.randint(task.keys, (task.length // 2,), generator=generator)
    inputs = torch.stack([keys, torch.full_like(keys, task.usual)], 1).flatten()
    asked = torch.stack([torch.full_like(keys, IGNORED), task.keys + by_heart[keys]], 1).flatten()
    return inputs, asked


def _compression(task: MadSettings, generator: Generator, training: bool) -> tuple[Tensor, Tensor]:
    symbols = torch.randint(task.usual, (task.length,), generator=generator)
    symbols[-1] = task.usual
    return symbols, symbols.clone()


_WRITERS: dict[str, Callable[[MadSettings, Generator, bool], tuple[Tensor, Tensor]]] = {
    "in_context_recall": _recall,
    "noisy_recall": _recall,
    "fuzzy_recall": _fuzzy,
    "selective_copying": _copying,
    "memorization": _memorization,
    "compression": _compression,
}

RULES["mad"] = Rule(draw_mad)
