"""Likelihood of texts and outputs under a model."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ...blocks import Model
from ...blocks.core.block import StreamState
from ...grammar import analyse
from ...studies.catalog.tasks import IGNORED, LanguageModelSettings
from ..data.text.batches import iter_line_eval, iter_packed_eval, iter_stream_eval
from ..data.token_files import Split
from .base import RegisteredMetrics
from .separate_documents import nll_of_documents


@dataclass(frozen=True, slots=True, kw_only=True)
class Likelihood:
    """Negative log-likelihood of a text, in nats.

    It also has the numbers of tokens, words and bytes that are covered. `bytes` counts the UTF-8 bytes of the
    original text, line ends included; it is 0 if the tokens do not determine a text. `nats_beside_text` is
    the part of tokens that are not text, such as ends of documents. A line end is a token and a word.
    Vocabularies that spell rare words have more tokens than words, so only perplexities per word can be
    compared across vocabularies.
    """

    nats: float
    tokens: int
    words: int
    bytes: int = 0
    nats_beside_text: float = 0.0

    @property
    def loss(self) -> float:
        """Return the loss in nats per token."""
        return self.nats / self.tokens

    @property
    def bits_per_token(self) -> float:
        """Return the bits per token; for character tokens these are bits per character."""
        return self.loss / math.log(2)

    @property
    def bits_per_byte(self) -> float | None:
        """Return the bits per byte of text, comparable across tokenisers.

        Return None if the text cannot be restored from its tokens.
        """
        return (self.nats - self.nats_beside_text) / math.log(2) / self.bytes if self.bytes else None

    @property
    def word_perplexity(self) -> float:
        """Return the perplexity per word: 1 if there are no words, infinity on overflow."""
        try:
            return math.exp(self.nats / max(self.words, 1))
        except OverflowError:
            return math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class TextScore(Likelihood):
    """The likelihood of a text.

    `ends` is the part that belongs to the ends of lines or documents. `padded_loss`, only for lines, is the
    mean over all positions of their batches, padding included.
    """

    ends: Likelihood
    padded_loss: float | None = None

    @property
    def without_ends(self) -> Likelihood:
        """Return the likelihood of all tokens except line ends. The model still reads line ends as inputs."""
        return Likelihood(
            nats=self.nats - self.ends.nats,
            tokens=self.tokens - self.ends.tokens,
            words=self.words - self.ends.words,
        )


@torch.no_grad()
def score_text(
    model: Model,
    split: Split,
    task: LanguageModelSettings,
    *,
    end: int,
    batch_size: int,
    device: torch.device,
    registered: RegisteredMetrics | None = None,
    parts: int = 1,
) -> TextScore:
    """Return the likelihood of a split under a model. Each token is scored at most once.

    The task's `batching` divides the text:

    - A stream is read in rows that overlap by the model's reach. This equals one pass over the whole text,
      except that positions are counted from the start of each row, as in training.
    - Packed pieces have `context` tokens, and are read without the text before them. With
      `separate_documents` a token is scored only from its own document.
    - Lines are independent sequences; empty ones, and those of more than `longest` tokens, are left out.

    `end` is the line-end symbol. Batches are computed in `parts`, but the padding of lines is counted as for
    whole batches.
    """
    total, rows = _Total(end, split.end_bytes), max(1, batch_size // parts)
    if task.by_line:
        words, sizes = 0, 0
        lines: list[tuple[Tensor, Tensor, Tensor]] = []  # for each batch: lines' numbers, nats and lengths
        for batch in iter_line_eval(split, batch_size=rows, max_length=task.longest):
            inputs, targets, lengths = (each.to(device) for each in batch[:3])
            losses = model.nll(inputs, targets, lengths).double()
            valid = torch.arange(losses.shape[1], device=device) < lengths[:, None]
            if registered is not None:
                registered.update(losses, targets, valid)
            # padding has a loss of 0, and leaving it out would change how the sum is rounded
            total.add(losses, targets.where(valid, IGNORED))
            words += batch.words
            sizes += 0 if split.line_bytes is None else int(split.line_bytes[batch.numbers].sum())
            lines.append((batch.numbers, losses.sum(1).cpu(), batch.lengths))
        numbers, losses, lengths = map(torch.cat, zip(*lines, strict=True))
        # batches group lines of similar lengths, but the padded loss needs the order of the split
        order = numbers.argsort()
        return total.score(words, sizes, _padded_loss(losses[order], lengths[order], batch_size))

    def add(losses: Tensor, targets: Tensor, scored: Tensor) -> None:
        if registered is not None:
            registered.update(losses, targets, scored)
        total.add(losses[scored], targets[scored])

    if task.batching == "stream":
        reach = analyse(model.recipe, model.config, length=1).reach.left
        # rows overlap by the reach: with this many, at most about half of what a row reads is overlap
        rows = 1 if math.isinf(reach) else len(split.tokens) // (2 * int(reach) + 2)
        rows = max(1, min(rows, batch_size))
        streams = [StreamState()] * parts
        warm_up = 0 if rows == 1 else int(reach)
        for batch in iter_stream_eval(split.tokens, batch_size=rows, context=task.context, warm_up=warm_up):
            for part, chunks in enumerate(zip(*(each.chunk(parts) for each in batch), strict=True)):
                inputs, targets, scored = (each.to(device) for each in chunks)
                losses, streams[part] = model.nll_stream(inputs, targets, streams[part])
                add(losses, targets, scored)
    else:
        for batch in iter_packed_eval(split.tokens, batch_size=rows, context=task.context):
            inputs, targets, scored = (each.to(device) for each in batch)
            if task.separate_documents:
                losses = nll_of_documents(model, *batch[:2], end=end, device=device)
            else:
                losses = model.nll(inputs, targets)
            add(losses, targets, scored)
    # the first token has no context, so it is not scored
    sizes = 0 if split.line_bytes is None else int(split.line_bytes.sum()) - split.first_bytes
    return total.score(split.words - split.first_words, sizes)


class _Total:
    """Running sums of losses and counts over a text.

    `end` is the line-end symbol. It is text if `end_bytes`, the number of its bytes, is above 0.
    """

    def __init__(self, end: int, end_bytes: int) -> None:
        self._end, self._end_bytes = end, end_bytes
        self._nats, self._tokens = [0.0, 0.0], [0, 0]  # sums over all tokens, and over ends

    def add(self, losses: Tensor, targets: Tensor) -> None:
        """Add the loss of each target to the sums. `losses` and `targets` have the same shape.

        Ignored targets must have a loss of 0.
        """
        ends = targets == self._end
        for place, (nats, counted) in enumerate([(losses, targets != IGNORED), (losses[ends], ends)]):
            self._nats[place] += float(nats.double().sum())
            self._tokens[place] += int(counted.sum())

    def score(self, words: int, sizes: int, padded_loss: float | None = None) -> TextScore:
        """Return the score of all tokens so far.

        `words` and `sizes` are the numbers of words and bytes in their text.
        """
        (nats, end_nats), (tokens, ends) = self._nats, self._tokens
        return TextScore(
            nats=nats,
            tokens=tokens,
            words=words,
            bytes=sizes,
            nats_beside_text=0.0 if self._end_bytes else end_nats,
            ends=Likelihood(nats=end_nats, tokens=ends, words=ends),
            padded_loss=padded_loss,
        )


def _padded_loss(nats: Tensor, lengths: Tensor, rows: int) -> float:
    """Return the mean loss over all positions, with padding as a loss of 0.

    It is lower than the usual loss, and needed to compare with published numbers. It is computed for batches
    of `rows` lines. The program of Dowdell and Zhang (2019) prints this number. An incomplete last batch is
    left out.
    """
    batches = list(zip(nats.split(rows), lengths.split(rows), strict=True))
    full = [batch for batch in batches if len(batch[0]) == rows] or batches
    losses = [float(nats.sum()) / (len(nats) * int(lengths.max())) for nats, lengths in full]
    return sum(losses) / len(losses)
