"""Batches of a text: endless streams of blocks, or whole lines."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import pad

from ....studies.text.units import plural
from ...core.process import derive_seed
from ...corpora.files import DataError
from ..token_files import Split, iter_shuffled


class StreamBatch(NamedTuple):
    """A batch with one block of text in each row.

    Inputs and targets are both (batch, block), int64. Every target is scored. `reset` is true at the start of
    the rows, where the model must clear its state.
    """

    inputs: Tensor
    targets: Tensor
    reset: bool


class ScoredBatch(NamedTuple):
    """A batch of blocks of text in which only some targets are scored.

    Each row has one block. Inputs, targets and the mask `scored` are all (batch, block).
    """

    inputs: Tensor
    targets: Tensor
    scored: Tensor  # bool


class LineBatch(NamedTuple):
    """A batch of whole lines, padded with 0.

    Inputs and targets are (batch, max length), lengths (batch,), int64. Row i is scored at its first
    `lengths[i]` positions. `words` counts the words of all rows, and `numbers` (batch,) has the lines'
    indices in their split.
    """

    inputs: Tensor
    targets: Tensor
    lengths: Tensor
    words: int
    numbers: Tensor


_ROWS_AT_ONCE = 1_000_000  # rows whose sources are counted at once to resume a mixture

LINE_START = 0
"""The token before the first token of a line."""


def iter_line_batches(
    split: Split, *, batch_size: int, max_length: int, seed: int, position: int = 0
) -> Iterator[LineBatch]:
    """Yield batches of whole lines without end, from batch number `position` on.

    The order of each pass depends on the seed and the number of the pass. An incomplete last batch is
    dropped, as are empty lines and lines of more than `max_length` tokens, not counting the end mark.
    """
    fitting = _fitting(split, max_length)
    if len(fitting) < batch_size:
        raise DataError(
            f"expected at least {batch_size} lines of 1 to {max_length} tokens, got {len(fitting)}"
        )
    for rows in iter_shuffled(fitting, batch_size=batch_size, seed=seed, what="lines", position=position):
        yield _batch(split, rows)


def iter_line_eval(split: Split, *, batch_size: int, max_length: int) -> Iterator[LineBatch]:
    """Yield batches that together have each line once, ordered by length.

    Lines that are empty or too long are left out. The last batch may be smaller.
    """
    fitting = _fitting(split, max_length)
    order = fitting[torch.argsort(split.line_lengths[fitting], stable=True)].tolist()
    for place in range(0, len(order), batch_size):
        yield _batch(split, order[place : place + batch_size])


def _fitting(split: Split, max_length: int) -> Tensor:
    lengths = split.line_lengths
    return torch.nonzero((lengths > 1) & (lengths <= max_length + 1)).flatten()


def _batch(split: Split, chosen: Sequence[int]) -> LineBatch:
    targets, lengths = split.padded_lines(chosen)
    beyond = torch.arange(targets.shape[1]) >= lengths[:, None]  # batch, max length
    inputs = pad(targets, (1, -1), value=LINE_START).masked_fill(beyond, 0)
    numbers = torch.tensor(chosen)
    return LineBatch(inputs, targets, lengths, words=int(split.line_words[numbers].sum()), numbers=numbers)


def blocks_per_pass(tokens: Tensor, *, batch_size: int, context: int) -> int:
    """Return the number of blocks in each row when a text is cut into parallel rows.

    The text is cut into `batch_size` rows of equal length. A block has `context` tokens. Raise DataError for
    a text that is too short.
    """
    blocks = (len(tokens) - 1) // batch_size // context
    if not blocks:
        raise DataError(
            f"expected at least {batch_size * context + 1:,} tokens for {plural(batch_size, 'row')}, "
            f"got {len(tokens):,}"
        )
    return blocks


def iter_stream_batches(
    tokens: Tensor,
    *,
    batch_size: int,
    context: int,
    position: int = 0,
    offsets: torch.Generator | None = None,
) -> Iterator[StreamBatch]:
    """Yield batches of a text stream without end, from batch number `position` on.

    The text is cut into `batch_size` equal consecutive rows, so a token is a target at most once in a pass.
    The first token and the end of a row that does not fill a block are never targets. Each pass after the
    first starts at a random offset of less than a block, drawn from `offsets` (the program of Sukhbaatar et
    al. 2019).
    """
    blocks_per_pass(tokens, batch_size=batch_size, context=context)  # raises if there is none
    row = (len(tokens) - 1) // batch_size  # targets
    starts, skipped = torch.arange(batch_size) * row, position
    # even the largest offset leaves one block in each row
    for offset in _offsets(min(context, row - context + 1), offsets):
        blocks = (row - offset) // context
        for place in range(min(skipped, blocks), blocks):
            text = _rows(tokens, (starts + offset + place * context).tolist(), context + 1)
            yield StreamBatch(text[:, :-1], text[:, 1:], reset=place == 0)
        skipped -= min(skipped, blocks)


# multiples of this number modulo 1 are spread almost evenly, in any run of consecutive multiples
_GOLDEN = (math.sqrt(5) - 1) / 2


def iter_packed_batches(
    sources: Sequence[tuple[float, Tensor]], *, batch_size: int, context: int, seed: int, position: int = 0
) -> Iterator[StreamBatch]:
    """Yield batches without end, whose rows are pieces of several texts.

    Each row is a piece of `context` tokens from one of the texts. `position` is the number of the first
    batch. `sources` are texts with their weights. A golden-ratio sequence assigns the rows to sources, so
    that the shares of sources in any run of rows are close to the weights. A source is read in passes: each
    takes all of its pieces once, in an order that depends on the seed and the number of the pass. A piece may
    span documents.
    """
    weights = np.array([weight for weight, _ in sources])
    bounds = np.cumsum(weights / weights.sum())[:-1]
    pieces = [blocks_per_pass(tokens, batch_size=1, context=context) for _, tokens in sources]
    drawn = np.zeros(len(sources), np.int64)
    for start in range(0, position * batch_size, _ROWS_AT_ONCE):
        stop = min(start + _ROWS_AT_ONCE, position * batch_size)
        drawn += np.bincount(_source_of_rows(bounds, start, stop), minlength=len(sources))
    orders: dict[int, tuple[int, Tensor]] = {}
    for number in count(position):
        rows = []
        for source in _source_of_rows(bounds, number * batch_size, (number + 1) * batch_size).tolist():
            turn, place = divmod(int(drawn[source]), pieces[source])
            if orders.get(source, (-1,))[0] != turn:
                drawing = derive_seed(seed, f"pieces of source {source} in pass {turn}")
                generator = torch.Generator().manual_seed(drawing)
                orders[source] = turn, torch.randperm(pieces[source], generator=generator)
            start = int(orders[source][1][place]) * context
            rows.append(sources[source][1][start : start + context + 1].long())
            drawn[source] += 1
        text = torch.stack(rows)
        yield StreamBatch(text[:, :-1], text[:, 1:], reset=True)


def _source_of_rows(bounds: NDArray[Any], start: int, stop: int) -> NDArray[Any]:
    """Return the index of the text from which each row is taken.

    Rows are numbered over all batches, from `start` to `stop`. `bounds` are the cumulative shares of all
    texts except the last.
    """
    return np.searchsorted(bounds, np.arange(start, stop) * _GOLDEN % 1.0, side="right")


def iter_packed_eval(tokens: Tensor, *, batch_size: int, context: int) -> Iterator[ScoredBatch]:
    """Yield a text in separate pieces of `context` tokens, like the pieces in training.

    Each token of the text except the first is scored once. A token is predicted from the tokens before it in
    its piece. The first input of a piece is the last token of the previous piece. The last row is padded.
    """
    scores = len(tokens) - 1
    if scores < 1:
        raise DataError(f"expected at least 2 tokens, got {len(tokens)}")
    starts = list(range(0, scores, context))
    for place in range(0, len(starts), batch_size):
        chosen = starts[place : place + batch_size]
        text = _rows(tokens, chosen, context + 1)
        scored = torch.tensor(chosen)[:, None] + torch.arange(context) < scores
        yield ScoredBatch(text[:, :-1], text[:, 1:], scored)


def _offsets(most: int, generator: torch.Generator | None) -> Iterator[int]:
    yield 0
    while True:
        yield 0 if generator is None else int(torch.randint(most, (), generator=generator))


def iter_stream_eval(
    tokens: Tensor, *, batch_size: int, context: int, warm_up: int = 0
) -> Iterator[ScoredBatch]:
    """Yield blocks that together score each token of a text exactly once.

    Only the first token is not scored.

    Rows overlap: each row after the first begins `warm_up` tokens before its first scored token. With one
    row, or a warm-up of the model's reach, the scores equal the scores of one pass over the whole text, if
    the model adds no position vectors. The last row is padded with tokens that are not scored.
    """
    scores = len(tokens) - 1
    if scores < 1:
        raise DataError(f"expected at least 2 tokens, got {len(tokens)}")
    stride = -(-max(scores - warm_up, 0) // batch_size) or 1  # tokens scored in each row but the first
    starts = [row * stride for row in range(batch_size)]
    first = torch.tensor([0, *(start + warm_up for start in starts[1:])])[:, None]  # the first scored input
    for offset in range(0, stride + warm_up, context):
        text = _rows(tokens, [start + offset for start in starts], context + 1)
        places = torch.tensor(starts)[:, None] + torch.arange(offset, offset + context)  # batch, block
        last = torch.tensor(starts)[:, None] + stride + warm_up
        scored = (places >= first) & (places < last) & (places < scores)
        yield ScoredBatch(text[:, :-1], text[:, 1:], scored)


def _rows(tokens: Tensor, starts: list[int], length: int) -> Tensor:
    """Return the pieces of a text that begin at `starts`, as int64 rows of `length`, padded with 0."""
    rows = torch.zeros(len(starts), length, dtype=torch.int64)
    for row, start in enumerate(starts):
        text = tokens[start : start + length]
        rows[row, : len(text)] = text
    return rows
