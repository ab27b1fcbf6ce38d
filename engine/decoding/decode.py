"""Decoding of source sentences into outputs with scores."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ...blocks.models.seq2seq_model import PAD, TransductionModel
from .length_search import SizeSearch, search_lengths, size_bounds
from .searches import Bounds, Outputs, Ranking, beam_search, greedy_search

PLAIN_SIZES = SizeSearch()
"""Default search over sizes: up to twice the source's, without a cost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """A decoded output: its symbols, the end symbol last, and their log-probability in nats.

    It equals minus `TransductionModel.nll` for these symbols.
    """

    tokens: list[int]
    score: float


def decode(
    model: TransductionModel,
    sources: Tensor,
    *,
    max_length: Tensor | int,
    beam: int = 1,
    length_penalty: float = 0.0,
    coverage_penalty: float = 0.0,
    try_lengths: bool = False,
    sizes: SizeSearch = PLAIN_SIZES,
) -> list[Decoded]:
    """Return the best output that a search finds for each source (batch, n), padded with 0.

    A beam of 1 is greedy. Each output has at most `max_length` symbols, its end included: one number for all,
    or one for each (batch,). `Ranking` defines the penalties. A model whose transducer has
    `depends_on_target_length` writes exactly `max_length` symbols if the source has fewer. With `try_lengths`
    the length is searched among `sizes`, compared without penalties, or estimated by a line.
    """
    ranking = Ranking(length_penalty=length_penalty, coverage_penalty=coverage_penalty)
    bounds = torch.as_tensor(max_length, device=sources.device).expand(len(sources))
    training = model.training
    try:
        with torch.no_grad():
            asked = sizes if try_lengths else None
            found = _search(model.eval(), sources, bounds, ranking, beam=beam, sizes=asked)
    finally:
        model.train(training)
    lengths = (found.symbols != PAD).sum(1).tolist()
    rows = zip(found.symbols.tolist(), lengths, found.scores.tolist(), strict=True)
    return [Decoded(tokens=symbols[:length], score=score) for symbols, length, score in rows]


def _search(
    model: TransductionModel,
    sources: Tensor,
    max_length: Tensor,
    ranking: Ranking,
    *,
    beam: int,
    sizes: SizeSearch | None,
) -> Outputs:
    if sizes is not None:
        return search_lengths(model, sources, max_length, beam=beam, sizes=sizes)
    bounds = Bounds(min_length=torch.ones_like(max_length), max_length=max_length)
    if model.body.depends_on_target_length:
        bounds = size_bounds((sources != PAD).sum(1), max_length)
    if beam == 1:
        return greedy_search(model, sources, bounds)
    return beam_search(model, sources, bounds, beam=beam, ranking=ranking)
