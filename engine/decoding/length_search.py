"""Search for models that need the output length in advance: try all sizes, or one estimated size."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

import torch
from torch import Tensor

from ...blocks.models.seq2seq_model import PAD, TransductionModel
from ..core.process import give_back_memory
from .searches import Bounds, NoCosts, OutputCosts, Outputs, Race, Ranking, beam_search, greedy_search


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthLine:
    """Linear estimate of an output's length from its source's: slope and constant, ends included.

    The numbers are exact, so every machine rounds up to the same length.
    """

    slope: Fraction
    constant: Fraction

    @classmethod
    def fit(cls, sources: Tensor, targets: Tensor) -> Self:
        """Fit the line by least squares to the lengths (pairs,) of sources and targets.

        They are whole numbers. If all sources have one length, the line is constant: the mean of the targets.
        At least one pair is needed.
        """
        sources, targets = sources.long(), targets.long()
        count, total, written = len(sources), int(sources.sum()), int(targets.sum())
        spread = count * int(sources.dot(sources)) - total**2
        together = count * int(sources.dot(targets)) - total * written
        slope = Fraction(together, spread) if spread else Fraction(0)
        return cls(slope=slope, constant=(written - slope * total) / count)

    def estimate(self, lengths: Tensor) -> Tensor:
        """Estimate the output length of each source length (rows,), rounded up; it may be below 1."""
        found = [math.ceil(self.slope * length + self.constant) for length in lengths.tolist()]
        return torch.tensor(found, device=lengths.device)

    def to_dict(self) -> dict[str, str]:
        """Return the line as plain values that `from_dict` reads."""
        return {"slope": str(self.slope), "constant": str(self.constant)}

    @classmethod
    def from_dict(cls, values: Mapping[str, str]) -> Self:
        """Rebuild the line from `to_dict`."""
        return cls(slope=Fraction(values["slope"]), constant=Fraction(values["constant"]))


MAX_POSITIONS = 16384
"""Limit on the positions of all outputs decoded at once: about two gigabytes for images of 4 x 512."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeSearch:
    """Search over output sizes, from a source's length to `ratio` times it plus `margin`.

    The best output is the most likely one or, with `costs` for each source, the one with the highest
    log-probability minus cost. With a `line`, only the size nearest to its estimate is tried.
    """

    ratio: float = 2.0
    margin: int = 0
    costs: OutputCosts | None = None
    line: LengthLine | None = None

    def tried(self, lengths: Tensor, longest: Tensor) -> tuple[Tensor, Tensor]:
        """Return the first and the last size for sources of these lengths, none above `longest`.

        Each is (rows,).
        """
        most = (self.ratio * lengths.double()).floor().long() + self.margin
        least, most = torch.minimum(lengths, longest), torch.minimum(most, longest)
        if self.line is not None:
            least = most = self.line.estimate(lengths).clamp(least, most)
        return least, most


def size_bounds(lengths: Tensor, sizes: Tensor) -> Bounds:
    """Return the bounds on output lengths for source lengths (rows,) and these sizes.

    All sizes up to the source's length are equivalent; a longer output has exactly its size.
    """
    return Bounds(min_length=torch.where(sizes > lengths, sizes, 1), max_length=sizes)


def search_lengths(
    model: TransductionModel,
    sources: Tensor,
    max_length: Tensor,
    *,
    beam: int,
    sizes: SizeSearch,
) -> Outputs:
    """Beam-search each output at the size whose greedy output is best (Kaiser and Bengio 2016, section 3).

    `max_length` (batch,) bounds the sizes. If outputs have costs, the greedy output is kept unless the beam's
    is better. With a line no size is searched.
    """
    costs = sizes.costs
    if beam > 1 and sizes.line is not None and costs is None:
        lengths_tried, _ = sizes.tried((sources != PAD).sum(1), max_length)
        return _beams(model, sources, lengths_tried, beam)
    chosen, found = _best_sizes(model, sources, max_length, sizes)
    if beam == 1:
        return found
    widely = _beams(model, sources, chosen, beam)
    if costs is None:
        return widely
    everyone = torch.arange(len(sources), device=sources.device)
    worth = [each.scores - costs.total(everyone, each.symbols) for each in (widely, found)]
    better = worth[0] >= worth[1]
    return Outputs(
        symbols=torch.where(better[:, None], widely.symbols, found.symbols[:, : widely.symbols.shape[1]]),
        scores=torch.where(better, widely.scores, found.scores),
    )


def _beams(model: TransductionModel, sources: Tensor, lengths_tried: Tensor, beam: int) -> Outputs:
    bounds = size_bounds((sources != PAD).sum(1), lengths_tried)
    symbols = sources.new_full((len(sources), int(lengths_tried.max())), PAD)
    scores = torch.zeros(len(sources), dtype=torch.float64, device=sources.device)
    for rows in _chunks(lengths_tried, MAX_POSITIONS // beam):
        written = beam_search(
            model, _trim_padding(sources[rows]), bounds.select(rows), beam=beam, ranking=Ranking()
        )
        scores[rows], symbols[rows, : written.symbols.shape[1]] = written.scores, written.symbols
    return Outputs(symbols=symbols, scores=scores)


def _best_sizes(
    model: TransductionModel, sources: Tensor, longest: Tensor, sizes: SizeSearch
) -> tuple[Tensor, Outputs]:
    """Return the best size (batch,) of each sentence, and the greedy outputs at these sizes.

    A size is dropped as soon as its likelihood so far, with its lowest possible cost, cannot beat another
    output.
    """
    costs, lengths = sizes.costs or NoCosts(), (sources != PAD).sum(1)
    least, most = sizes.tried(lengths, longest)
    tried = torch.arange(int((most - least).max()) + 1, device=sources.device)
    sentence, more = torch.nonzero(tried <= (most - least)[:, None], as_tuple=True)  # (outputs,)
    lengths_tried = least[sentence] + more
    symbols = sources.new_full((len(lengths_tried), int(most.max())), PAD)
    scores = torch.full(lengths_tried.shape, -torch.inf, dtype=torch.float64, device=sources.device)
    best = scores.new_full(lengths.shape, -torch.inf)
    for rows in _chunks(lengths_tried, MAX_POSITIONS):
        of, bounds = sentence[rows], size_bounds(lengths[sentence[rows]], lengths_tried[rows])
        race = Race(sentence=of, best=best, costs=costs)
        written = greedy_search(model, _trim_padding(sources[of]), bounds, race=race)
        scores[rows], symbols[rows, : written.symbols.shape[1]] = written.scores, written.symbols
    worth = scores - costs.total(sentence, symbols)
    table = scores.new_full((len(sources), len(tried)), -torch.inf)
    table[sentence, more] = worth
    chosen = torch.zeros_like(table, dtype=torch.long)
    chosen[sentence, more] = torch.arange(len(lengths_tried), device=lengths_tried.device)
    chosen = chosen.gather(1, table.argmax(1, keepdim=True)).squeeze(1)
    return lengths_tried[chosen], Outputs(symbols=symbols[chosen], scores=scores[chosen])


def _chunks(sizes: Tensor, positions: int) -> Iterator[Tensor]:
    """Yield row indices in chunks of at most `positions` padded positions, ordered by size.

    After each chunk freed memory is returned to the system. On a CPU oneDNN caches prepared convolutions for
    each shape, and shrinking batches produce hundreds of shapes, which fragments the heap.
    """
    order = torch.argsort(sizes, stable=True)
    start = 0
    for place, size in enumerate(sizes[order].tolist()):
        if place > start and (place - start + 1) * size > positions:
            yield order[start:place]
            give_back_memory()
            start = place
    yield order[start:]
    give_back_memory()


def _trim_padding(sources: Tensor) -> Tensor:
    return sources[:, : int((sources != PAD).sum(1).max())]
