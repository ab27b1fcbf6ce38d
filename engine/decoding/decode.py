"""Sentences in, outputs and their scores back."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ...blocks.transduction import PAD, TransductionModel
from ...errors import ActivememError
from ..data.vocabulary import END
from .beam import beam_search
from .greedy import greedy
from .outputs import Bounds, Outputs
from .ranking import Ranking
from .sizes import search_sizes, size_bounds


class DecodingError(ActivememError):
    """What cannot be decoded, or not in this way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """The symbols of an output, its end as the last one, and their log-probability in nats.

    The score is what `TransductionModel.nll` gives for these symbols, but for its sign.
    """

    tokens: list[int]
    score: float


def decode(
    model: TransductionModel,
    sources: Tensor,
    *,
    longest: Tensor | int,
    beam: int = 1,
    length_penalty: float = 0.0,
    coverage_penalty: float = 0.0,
    sizes: bool = False,
    end: int = END,
) -> list[Decoded]:
    """The output that a search finds best for each source (batch, n), padded with 0.

    A beam of 1 is greedy. Each output ends within `longest` symbols, of all or of each (batch,), the end
    counted; the penalties are those of a Ranking. A model whose transducer is `sized` writes exactly
    `longest` symbols where the source has fewer, or with `sizes` as many as it finds best, all of them
    compared without penalties.
    Raises DecodingError, with all faults.
    """
    ranking = Ranking(length_penalty=length_penalty, coverage_penalty=coverage_penalty)
    bound = torch.as_tensor(longest, device=sources.device)
    faults = [
        *_search_faults(model, ranking, beam=beam, sizes=sizes, end=end),
        *_batch_faults(sources, bound),
    ]
    if faults:
        raise DecodingError("; ".join(faults))
    training = model.training
    try:
        with torch.no_grad():
            if not sizes:
                _need_weights(model, sources, ranking)
            bound = bound.expand(len(sources))
            found = _searched(model.eval(), sources, bound, ranking, beam=beam, sizes=sizes, end=end)
    finally:
        model.train(training)
    lengths = (found.symbols != PAD).sum(1).tolist()
    rows = zip(found.symbols.tolist(), lengths, found.scores.tolist(), strict=True)
    return [Decoded(tokens=symbols[:length], score=score) for symbols, length, score in rows]


def _searched(
    model: TransductionModel,
    sources: Tensor,
    longest: Tensor,
    ranking: Ranking,
    *,
    beam: int,
    sizes: bool,
    end: int,
) -> Outputs:
    """The outputs of the search that was asked for."""
    if sizes:
        return search_sizes(model, sources, longest, beam=beam, end=end)
    bounds = Bounds(least=torch.ones_like(longest), longest=longest)
    if model.body.sized:
        bounds = size_bounds((sources != PAD).sum(1), longest)
    if beam == 1:
        return greedy(model, sources, bounds, end=end)
    return beam_search(model, sources, bounds, beam=beam, end=end, ranking=ranking)


def _search_faults(
    model: TransductionModel, ranking: Ranking, *, beam: int, sizes: bool, end: int
) -> list[str]:
    """What is wrong with the search that is asked for."""
    vocab, lengths, coverage = model.frame.symbols, ranking.length_penalty, ranking.coverage_penalty
    rules = (
        (beam >= 1, f"expected a beam of at least 1, got {beam}"),
        (lengths >= 0.0, f"expected a length_penalty of at least 0, got {lengths:g}"),
        (coverage >= 0.0, f"expected a coverage_penalty of at least 0, got {coverage:g}"),
        (PAD < end < vocab, f"expected an end from 1 to {vocab - 1}, got {end}"),
        (vocab > 2, f"expected a vocabulary with more than padding and an end, got {vocab} symbols"),
        (
            model.body.sized or not sizes,
            f"expected sizes for a transducer that must know them, as neural_gpu, got {model}",
        ),
    )
    return [fault for holds, fault in rules if not holds]


def _batch_faults(sources: Tensor, longest: Tensor) -> list[str]:
    """What is wrong with the sentences, or with their bounds."""
    if sources.dim() != 2 or 0 in sources.shape:
        return [f"expected sources (batch, n), got {tuple(sources.shape)}"]
    empty, batch = int((sources[:, 0] == PAD).sum()), len(sources)
    rules = (
        (not empty, f"expected a symbol in each source, got none in {empty} of {batch}"),
        (
            longest.shape in ((), (batch,)),
            f"expected longest for {batch} sources, got {tuple(longest.shape)}",
        ),
        (bool((longest >= 1).all()), f"expected longest of at least 1, got {int(longest.min())}"),
    )
    return [fault for holds, fault in rules if not holds]


def _need_weights(model: TransductionModel, sources: Tensor, ranking: Ranking) -> None:
    """Raise DecodingError for a coverage penalty where no weights can be had."""
    if ranking.coverage_penalty > 0.0:
        state = model.begin(sources[:1], torch.ones_like(sources[:1, 0]))
        if model.body.attended(state) is None:
            raise DecodingError(
                "expected a transducer whose decoder has one attention for a coverage_penalty, as "
                f"seq2seq(gru, gru, attention=bahdanau), got {model}"
            )
