"""Decoding of source sentences into outputs with scores."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ...blocks.models.seq2seq_model import PAD, TransductionModel
from ...errors import ActivememError
from ..data.vocabularies.base import END
from .length_search import SizeSearch, search_lengths, size_bounds
from .searches import Bounds, Outputs, Ranking, beam_search, greedy_search

PLAIN_SIZES = SizeSearch()
"""Default search over sizes: up to twice the source's, without a cost."""


class DecodingError(ActivememError):
    """A model, sentence or search that cannot be decoded."""


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
    the length is searched among `sizes`, compared without penalties, or estimated by a line. Raise
    DecodingError, with all faults.
    """
    ranking = Ranking(length_penalty=length_penalty, coverage_penalty=coverage_penalty)
    bound = torch.as_tensor(max_length, device=sources.device)
    faults = [
        *_search_faults(model, ranking, beam=beam, try_lengths=try_lengths),
        *_batch_faults(sources, bound),
    ]
    if faults:
        raise DecodingError("; ".join(faults))
    training = model.training
    try:
        with torch.no_grad():
            if not try_lengths:
                _require_attention_weights(model, sources, ranking)
            bound = bound.expand(len(sources))
            asked = sizes if try_lengths else None
            found = _search(model.eval(), sources, bound, ranking, beam=beam, sizes=asked)
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


def _search_faults(model: TransductionModel, ranking: Ranking, *, beam: int, try_lengths: bool) -> list[str]:
    vocab, lengths, coverage = model.config.symbols, ranking.length_penalty, ranking.coverage_penalty
    rules = (
        (beam >= 1, f"expected a beam of at least 1, got {beam}"),
        (lengths >= 0.0, f"expected a length_penalty of at least 0, got {lengths:g}"),
        (coverage >= 0.0, f"expected a coverage_penalty of at least 0, got {coverage:g}"),
        (vocab > END, f"expected a vocabulary with more than padding and an end, got {vocab} symbols"),
        (
            model.body.depends_on_target_length or not try_lengths,
            f"expected try_lengths for a transducer that must know them, as neural_gpu, got {model}",
        ),
    )
    return [fault for holds, fault in rules if not holds]


def _batch_faults(sources: Tensor, max_length: Tensor) -> list[str]:
    if sources.dim() != 2 or 0 in sources.shape:
        return [f"expected sources (batch, n), got {tuple(sources.shape)}"]
    empty, batch = int((sources[:, 0] == PAD).sum()), len(sources)
    rules = (
        (not empty, f"expected a symbol in each source, got none in {empty} of {batch}"),
        (
            max_length.shape in ((), (batch,)),
            f"expected max_length for {batch} sources, got {tuple(max_length.shape)}",
        ),
        (bool((max_length >= 1).all()), f"expected max_length of at least 1, got {int(max_length.min())}"),
    )
    return [fault for holds, fault in rules if not holds]


def _require_attention_weights(model: TransductionModel, sources: Tensor, ranking: Ranking) -> None:
    if ranking.coverage_penalty > 0.0:
        state = model.begin(sources[:1], torch.ones_like(sources[:1, 0]))
        if model.body.attention_weights(state) is None:
            raise DecodingError(
                "expected a transducer whose decoder has one attention for a coverage_penalty, as "
                f"seq2seq(gru, gru, attention=bahdanau), got {model}"
            )
