"""Problems in which an encoder's memory degrades (Harvat and Martín-Guerrero 2022, appendix A).

All sequences of a problem are distinct. The sequences and the fixed symbols (the tabu set and the bigrams)
are drawn from the problem's seed.
"""

from __future__ import annotations

from itertools import chain
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from ...studies.catalog.tasks import DegradationProblem
from ..core.process import derive_seed
from ..data.sentence_pairs import PairSplit
from ..data.token_files import Split
from ..data.vocabularies.vocabulary import END, FIRST_SYMBOL, START

Symbols = tuple[int, ...]
"""The symbols of a sequence, counted from 0."""


class SequenceSplits(NamedTuple):
    """A problem's pairs of sequences for training, validation, and memory measurements.

    Sources have a start and an end symbol, targets only the end.
    """

    train: PairSplit
    dev: PairSplit
    test: PairSplit


def generate_splits(spec: DegradationProblem, seed: int) -> SequenceSplits:
    """Generate the training, dev and test pairs of a problem. The same seed gives the same pairs."""
    sources = _different(spec, seed, spec.sequences + spec.test_sequences)
    targets = [source[::-1] for source in sources]
    if spec.num_dropped_symbols:
        tabu = set(tabu_symbols(spec, seed).tolist())
        targets = [tuple(symbol for symbol in source if symbol not in tabu) for source in sources]
    train = round(spec.sequences * (1 - spec.dev_fraction))
    parts = (slice(train), slice(train, spec.sequences), slice(spec.sequences, None))
    return SequenceSplits(
        *(
            PairSplit(source=_to_split(sources[part], [START]), target=_to_split(targets[part], []))
            for part in parts
        )
    )


def _to_split(sequences: list[Symbols], before: list[int]) -> Split:
    """Return sequences as the lines of a split, with the marks `before` and an end symbol."""
    lines = [[*before, *(FIRST_SYMBOL + symbol for symbol in each), END] for each in sequences]
    lengths = torch.tensor([len(line) for line in lines])
    return Split(
        tokens=torch.tensor(list(chain.from_iterable(lines))),
        lines=torch.nn.functional.pad(lengths.cumsum(0), (1, 0)),
        line_words=lengths,
    )


def tabu_symbols(spec: DegradationProblem, seed: int) -> Tensor:
    """Return the symbols (tabu,) that never occur in a problem's targets. Symbols count from 0."""
    return torch.randperm(spec.symbols, generator=_fixed_generator(spec, seed))[: spec.num_dropped_symbols]


def fixed_bigrams(spec: DegradationProblem, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return the bigrams of a problem, with their probabilities.

    The three tensors are the first symbols, the second symbols and the probabilities. No two bigrams have the
    same first symbol. All three are (bigrams,).
    """
    generator = _fixed_generator(spec, seed)
    firsts = torch.randperm(spec.symbols, generator=generator)[: spec.num_bigrams]
    seconds = torch.randint(spec.symbols, (spec.num_bigrams,), generator=generator)
    low, high = spec.bigram_probability
    return firsts, seconds, low + (high - low) * torch.rand(spec.num_bigrams, generator=generator)


def _fixed_generator(spec: DegradationProblem, seed: int) -> Generator:
    return torch.Generator().manual_seed(derive_seed(seed, f"fixed symbols of {spec.name}"))


def _different(spec: DegradationProblem, seed: int, count: int) -> list[Symbols]:
    generator = torch.Generator().manual_seed(derive_seed(seed, f"sequences of {spec.name}"))
    found: dict[Symbols, None] = {}
    while len(found) < count:
        missing = count - len(found)
        lengths = torch.randint(spec.min_length, spec.max_length + 1, (missing,), generator=generator)
        symbols = _draw(spec, seed, missing, generator)
        for row, length in zip(symbols.tolist(), lengths.tolist(), strict=True):
            found[tuple(row[:length])] = None
    return list(found)


def _draw(spec: DegradationProblem, seed: int, count: int, generator: Generator) -> Tensor:
    """Draw rows of symbols (count, max_length)."""
    if spec.num_repeated_symbols:
        return _repeated(spec, count, generator)
    if spec.num_dropped_symbols:
        return _with_tabu(spec, tabu_symbols(spec, seed), count, generator)
    if spec.num_bigrams:
        return _with_bigrams(spec, fixed_bigrams(spec, seed), count, generator)
    return _uniform(spec, (count, spec.max_length), generator)


def _uniform(spec: DegradationProblem, shape: tuple[int, ...], generator: Generator) -> Tensor:
    return torch.randint(spec.symbols, shape, generator=generator)


def _repeated(spec: DegradationProblem, count: int, generator: Generator) -> Tensor:
    """Draw runs of equal symbols for exactly `max_length` positions: cut or extend the last run."""
    symbols = _uniform(spec, (count, spec.num_repeated_symbols), generator)
    runs = torch.randint(1, spec.max_repeats + 1, symbols.shape, generator=generator)
    # torch.searchsorted warns about inputs that are not contiguous
    places = torch.arange(spec.max_length).expand(count, -1).contiguous()
    run = torch.searchsorted(runs.cumsum(1), places, right=True).clamp(max=spec.num_repeated_symbols - 1)
    return symbols.gather(1, run)


def _with_tabu(spec: DegradationProblem, tabu: Tensor, count: int, generator: Generator) -> Tensor:
    """Draw rows of symbols, with 1 to `max_dropped` tabu symbols at random positions in each row."""
    shape = (count, spec.max_length)
    others = torch.ones(spec.symbols, dtype=torch.bool).index_fill_(0, tabu, False).nonzero().flatten()
    ranks = torch.rand(shape, generator=generator).argsort(dim=1)
    dropped = ranks < torch.randint(1, spec.max_dropped + 1, (count, 1), generator=generator)
    bad = tabu[torch.randint(len(tabu), shape, generator=generator)]
    good = others[torch.randint(len(others), shape, generator=generator)]
    return torch.where(dropped, bad, good)


def _with_bigrams(
    spec: DegradationProblem, bigrams: tuple[Tensor, Tensor, Tensor], count: int, generator: Generator
) -> Tensor:
    """Draw rows of symbols in which the bigrams are frequent.

    All other symbols are uniform. A bigram's first symbol is followed by its second with the bigram's
    probability.
    """
    firsts, seconds, probable = bigrams
    successor = torch.full((spec.symbols,), -1).index_copy_(0, firsts, seconds)
    probability = torch.zeros(spec.symbols).index_copy_(0, firsts, probable)
    steps = [_uniform(spec, (count,), generator)]
    for _ in range(spec.max_length - 1):
        due = successor[steps[-1]]
        free = _uniform(spec, (count,), generator)
        other = torch.randint(spec.symbols - 1, (count,), generator=generator)
        other = other + (other >= due)  # uniform over all but the successor
        follows = torch.rand(count, generator=generator) < probability[steps[-1]]
        steps.append(torch.where(follows, due, torch.where(due < 0, free, other)))
    return torch.stack(steps, dim=1)
