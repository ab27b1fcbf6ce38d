"""Problems in which an encoder's memory degrades (Harvat and Martín-Guerrero 2022, appendix A).

All sequences of a problem are distinct. The sequences and the fixed symbols (the tabu set and the bigrams)
are drawn from the problem's seed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from ...studies.catalog.tasks import DegradationProblem
from ..core.process import derive_seed
from ..data.sentence_pairs import PairSplit
from ..data.token_files import Split
from ..data.vocabularies.vocabulary import END, FIRST_SYMBOL, PADDING, START


class Sequences(NamedTuple):
    """Source and target sequences, both (sequences, tokens) int64.

    Each sequence is a start token, its symbols, an end token, and padding with 0.
    """

    sources: Tensor
    targets: Tensor


class _SymbolRows(NamedTuple):
    """Rows of symbols (sequences, longest), without start and end tokens.

    Symbols count from 0. Entries beyond the `lengths` (sequences,) are undefined.
    """

    symbols: Tensor
    lengths: Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceSplits:
    """A problem's sequences for training, validation, and memory measurements."""

    train: Sequences
    dev: Sequences
    test: Sequences


def generate_splits(spec: DegradationProblem, seed: int) -> SequenceSplits:
    """Generate the training, dev and test sequences of a problem. The same seed gives the same sequences."""
    drawn = _different(spec, seed, spec.sequences + spec.test_sequences)
    sequences = Sequences(_add_markers(drawn), _add_markers(_answer(spec, seed, drawn)))
    train = round(spec.sequences * (1 - spec.dev_fraction))
    parts = [train, spec.sequences - train, spec.test_sequences]
    splits = zip(*(each.split(parts) for each in sequences), strict=True)
    return SequenceSplits(
        **dict(zip(("train", "dev", "test"), (Sequences(*each) for each in splits), strict=True))
    )


def as_pairs(sequences: Sequences) -> PairSplit:
    """Return sequences in the form of sentence pairs.

    So they are batched as in translation. Sources keep their start and end symbols, targets only the end.
    """
    return PairSplit(source=_to_split(sequences.sources, 0), target=_to_split(sequences.targets, 1))


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


def _different(spec: DegradationProblem, seed: int, count: int) -> _SymbolRows:
    generator = torch.Generator().manual_seed(derive_seed(seed, f"sequences of {spec.name}"))
    found: dict[tuple[int, ...], None] = {}
    while len(found) < count:
        symbols, lengths = _draw(spec, seed, count - len(found), generator)
        for row, length in zip(symbols.tolist(), lengths.tolist(), strict=True):
            found[tuple(row[:length])] = None
    symbols = torch.tensor([row + (0,) * (spec.max_length - len(row)) for row in found])
    return _SymbolRows(symbols, torch.tensor([len(row) for row in found]))


def _draw(spec: DegradationProblem, seed: int, count: int, generator: Generator) -> _SymbolRows:
    lengths = torch.randint(spec.min_length, spec.max_length + 1, (count,), generator=generator)
    if spec.num_repeated_symbols:
        return _SymbolRows(_repeated(spec, count, generator), lengths)
    if spec.num_dropped_symbols:
        return _SymbolRows(_with_tabu(spec, tabu_symbols(spec, seed), count, generator), lengths)
    if spec.num_bigrams:
        return _SymbolRows(_with_bigrams(spec, fixed_bigrams(spec, seed), count, generator), lengths)
    return _SymbolRows(_uniform(spec, (count, spec.max_length), generator), lengths)


def _uniform(spec: DegradationProblem, shape: tuple[int, ...], generator: Generator) -> Tensor:
    return torch.randint(spec.symbols, shape, generator=generator)


def _repeated(spec: DegradationProblem, count: int, generator: Generator) -> Tensor:
    """Draw runs of equal symbols that fill `max_length` positions.

    Runs beyond this length are cut; if the runs are too short, the last one is extended.
    """
    symbols = _uniform(spec, (count, spec.num_repeated_symbols), generator)
    runs = torch.randint(1, spec.max_repeats + 1, symbols.shape, generator=generator)
    # torch.searchsorted warns about inputs that are not contiguous
    places = torch.arange(spec.max_length).expand(count, -1).contiguous()
    run = torch.searchsorted(runs.cumsum(1), places, right=True).clamp(max=spec.num_repeated_symbols - 1)
    return symbols.gather(1, run)


def _with_tabu(spec: DegradationProblem, tabu: Tensor, count: int, generator: Generator) -> Tensor:
    """Draw rows of symbols, with tabu symbols at a few random positions.

    There are 1 to `max_dropped` tabu symbols in each row.
    """
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


def _answer(spec: DegradationProblem, seed: int, drawn: _SymbolRows) -> _SymbolRows:
    symbols, lengths = drawn
    places = torch.arange(spec.max_length)
    if not spec.num_dropped_symbols:
        backwards = (lengths[:, None] - 1 - places).clamp(min=0)
        return _SymbolRows(symbols.gather(1, backwards), lengths)
    dropped = torch.isin(symbols, tabu_symbols(spec, seed))
    # a stable sort keeps the order of the other symbols
    kept_first = dropped.to(torch.int8).argsort(dim=1, stable=True)
    return _SymbolRows(symbols.gather(1, kept_first), lengths - dropped.sum(1))


def _add_markers(drawn: _SymbolRows) -> Tensor:
    symbols, lengths = drawn
    framed = torch.nn.functional.pad(symbols + FIRST_SYMBOL, (1, 1))  # sequences, longest + 2
    framed[:, 0] = START
    places = torch.arange(framed.shape[1])
    framed[places == lengths[:, None] + 1] = END
    framed[places > lengths[:, None] + 1] = PADDING
    return framed


def _to_split(rows: Tensor, skipped: int) -> Split:
    rows = rows[:, skipped:]
    valid = rows != PADDING
    lengths = valid.sum(1)
    lines = torch.nn.functional.pad(lengths.cumsum(0), (1, 0))
    return Split(tokens=rows[valid], lines=lines, line_words=lengths, words=int(lengths.sum()))
