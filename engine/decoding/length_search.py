"""Models that must know how long an output will be: every size is tried, from the source's to twice it."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from ...blocks.models.seq2seq_model import PAD, TransductionModel
from .beam import beam_search
from .greedy import Race, greedy_search
from .length_penalty import Ranking
from .outputs import Bounds, Outputs

MAX_POSITIONS = 16384
"""The positions of all outputs that are written at once: about two gigabytes for images of 4 x 512."""


def size_bounds(lengths: Tensor, sizes: Tensor) -> Bounds:
    """The outputs that a model of sources of these lengths (rows,) writes when it is told these sizes.

    Up to the source's length all sizes are one to it; a longer output has all of its symbols.
    """
    return Bounds(min_length=torch.where(sizes > lengths, sizes, 1), max_length=sizes)


def search_lengths(
    model: TransductionModel, sources: Tensor, max_length: Tensor, *, beam: int, end: int
) -> Outputs:
    """The outputs of a small beam, each of the size whose greedy output is the likeliest.

    Kaiser and Bengio 2016, section 3. `max_length` (batch,) bounds the sizes.
    """
    sizes, found = _likeliest_sizes(model, sources, max_length, end)
    if beam == 1:
        return found
    bounds = size_bounds((sources != PAD).sum(1), sizes)
    symbols, scores = torch.zeros_like(found.symbols), torch.zeros_like(found.scores)
    for rows in _chunks(sizes, MAX_POSITIONS // beam):
        written = beam_search(
            model, _trim_padding(sources[rows]), bounds.select(rows), beam=beam, end=end, ranking=Ranking()
        )
        scores[rows], symbols[rows, : written.symbols.shape[1]] = written.scores, written.symbols
    return Outputs(symbols=symbols, scores=scores)


def _likeliest_sizes(
    model: TransductionModel, sources: Tensor, longest: Tensor, end: int
) -> tuple[Tensor, Outputs]:
    """The best size (batch,) of each sentence, and the greedy outputs of these sizes.

    A size is given up as soon as it is less likely than what another one has written.
    """
    lengths = (sources != PAD).sum(1)
    least, most = torch.minimum(lengths, longest), torch.minimum(2 * lengths, longest)
    tried = torch.arange(int((most - least).max()) + 1, device=sources.device)
    sentence, more = torch.nonzero(tried <= (most - least)[:, None], as_tuple=True)  # (outputs,)
    sizes = least[sentence] + more
    symbols = sources.new_full((len(sizes), int(most.max())), PAD)
    scores = torch.full(sizes.shape, -torch.inf, dtype=torch.float64, device=sources.device)
    best = scores.new_full(lengths.shape, -torch.inf)
    for rows in _chunks(sizes, MAX_POSITIONS):
        of, bounds = sentence[rows], size_bounds(lengths[sentence[rows]], sizes[rows])
        written = greedy_search(
            model, _trim_padding(sources[of]), bounds, end=end, race=Race(sentence=of, best=best)
        )
        scores[rows], symbols[rows, : written.symbols.shape[1]] = written.scores, written.symbols
    table = scores.new_full((len(sources), len(tried)), -torch.inf)
    table[sentence, more] = scores
    chosen = torch.zeros_like(table, dtype=torch.long)
    chosen[sentence, more] = torch.arange(len(sizes), device=sizes.device)
    chosen = chosen.gather(1, table.argmax(1, keepdim=True)).squeeze(1)
    return sizes[chosen], Outputs(symbols=symbols[chosen], scores=scores[chosen])


def _chunks(sizes: Tensor, positions: int) -> Iterator[Tensor]:
    """The rows in parts of so many positions, padding counted, the short ones first."""
    order = torch.argsort(sizes, stable=True)
    start = 0
    for place, size in enumerate(sizes[order].tolist()):
        if place > start and (place - start + 1) * size > positions:
            yield order[start:place]
            start = place
    yield order[start:]


def _trim_padding(sources: Tensor) -> Tensor:
    """Sources without the padding that all of them have."""
    return sources[:, : int((sources != PAD).sum(1).max())]
