"""How likely a language model finds a text: every token once, as a stream or line by line."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ...blocks import Model
from ...blocks.core.streaming import StreamState
from ...grammar import analyse
from ..data import Split, iter_line_eval, iter_stream_eval
from .registered_metrics import RegisteredMetrics


@dataclass(frozen=True, slots=True, kw_only=True)
class TextScore:
    """Minus the log-probability of a text in nats, the number of its tokens, and that of its words.

    `padded_loss` is given for lines: the mean over all positions of their batches, padding included.
    """

    nats: float
    tokens: int
    words: int
    padded_loss: float | None = None

    @property
    def loss(self) -> float:
        """Nats per token."""
        return self.nats / self.tokens

    @property
    def bits_per_token(self) -> float:
        """Bits per token: per character where these are the tokens."""
        return self.loss / math.log(2)

    @property
    def word_perplexity(self) -> float:
        """The perplexity per word, whatever the tokens are."""
        return math.exp(min(self.nats / self.words, 700.0))


@torch.no_grad()
def score_stream(
    model: Model,
    split: Split,
    *,
    batch_size: int,
    context: int,
    device: torch.device,
    registered: RegisteredMetrics | None = None,
    parts: int = 1,
) -> TextScore:
    """The score of a text in rows that overlap by the model's reach, which equals one pass over the whole.

    The rows are computed in so many parts.
    """
    reach = analyse(model.recipe, model.config, length=1).reach.left
    rows = 1 if math.isinf(reach) else len(split.tokens) // (2 * int(reach) + 2)
    rows = max(1, min(rows, batch_size))
    warm_up = 0 if rows == 1 else int(reach)
    nats, tokens, streams = 0.0, 0, [StreamState()] * parts
    for batch in iter_stream_eval(split.tokens, batch_size=rows, context=context, warm_up=warm_up):
        if batch.reset:
            streams = [StreamState()] * parts
        chunked = zip(*(rows.chunk(parts) for rows in batch[:3]), strict=True)
        for part, chunks in enumerate(chunked):
            inputs, targets, scored = (rows.to(device) for rows in chunks)
            losses, streams[part] = model.nll_stream(inputs, targets, streams[part])
            if registered is not None:
                registered.update(losses, targets, scored)
            nats += float(losses[scored].double().sum())
            tokens += int(scored.sum())
    return TextScore(nats=nats, tokens=tokens, words=split.words - 1)  # the first token is given


@torch.no_grad()
def score_lines(
    model: Model,
    split: Split,
    *,
    batch_size: int,
    longest: int,
    device: torch.device,
    registered: RegisteredMetrics | None = None,
    parts: int = 1,
) -> TextScore:
    """The score of lines, each a sequence of its own; empty and too long ones are left out.

    Batches are computed in so many parts; their padding is counted as if they were not.
    """
    nats, words = 0.0, 0
    scored: list[tuple[Tensor, Tensor, Tensor]] = []  # for each batch: lines' numbers, nats and lengths
    for batch in iter_line_eval(split, batch_size=max(1, batch_size // parts), max_length=longest):
        inputs, targets, lengths = (part.to(device) for part in batch[:3])
        losses = model.nll(inputs, targets, lengths).double()
        valid = torch.arange(losses.shape[1], device=device) < lengths[:, None]
        if registered is not None:
            registered.update(losses, targets, valid)
        nats += float(losses.sum())
        words += batch.words
        scored.append((batch.numbers, losses.sum(1).cpu(), batch.lengths))
    numbers, losses, lengths = map(torch.cat, zip(*scored, strict=True))
    order = numbers.argsort()
    padded = _padded_loss(losses[order], lengths[order], batch_size)
    return TextScore(nats=nats, tokens=int(lengths.sum()), words=words, padded_loss=padded)


def _padded_loss(nats: Tensor, lengths: Tensor, rows: int) -> float:
    """The mean over all positions of batches of `rows` lines in their order, where padding costs nothing.

    The program of Dowdell and Zhang 2019 prints this; an incomplete last batch is left out.
    """
    batches = list(zip(nats.split(rows), lengths.split(rows), strict=True))
    full = [batch for batch in batches if len(batch[0]) == rows] or batches
    losses = [float(nats.sum()) / (len(nats) * int(lengths.max())) for nats, lengths in full]
    return sum(losses) / len(losses)
