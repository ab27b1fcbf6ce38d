"""A text as endless rows: each row goes on where its last block ended."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from ...corpora import DataError
from .batches import ScoredBatch, StreamBatch


def blocks_per_pass(tokens: Tensor, *, batch_size: int, context: int) -> int:
    """Return how many blocks each row has before all rows begin anew; DataError if there are none."""
    blocks = (len(tokens) - 1) // batch_size // context
    if not blocks:
        raise DataError(
            f"expected at least {batch_size * context + 1:,} tokens for {batch_size} rows, "
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
    """Endless blocks of rows from the block number `position` on, which is all that resuming needs.

    The text is cut into `batch_size` equal consecutive rows, so a token is a target at most once in a pass.
    The first token and the end of a row that does not fill a block are never targets. All passes but the
    first begin as many tokens later as `offsets`, at its beginning, draws below a block (the program of
    Sukhbaatar et al. 2019).
    """
    blocks_per_pass(tokens, batch_size=batch_size, context=context)  # there is one at least
    row = (len(tokens) - 1) // batch_size  # targets
    starts, skipped = torch.arange(batch_size) * row, position
    for offset in _offsets(min(context, row - context + 1), offsets):
        blocks = (row - offset) // context
        for place in range(min(skipped, blocks), blocks):
            text = _rows(tokens, (starts + offset + place * context).tolist(), context + 1)
            yield StreamBatch(text[:, :-1], text[:, 1:], reset=place == 0)
        skipped -= min(skipped, blocks)


def _offsets(most: int, generator: torch.Generator | None) -> Iterator[int]:
    """Yield where each pass begins: the first at 0, the others so too or anywhere below `most`."""
    yield 0
    while True:
        yield 0 if generator is None else int(torch.randint(most, (), generator=generator))


def iter_stream_eval(
    tokens: Tensor, *, batch_size: int, context: int, warm_up: int = 0
) -> Iterator[ScoredBatch]:
    """Blocks in which each token of a text except the first is scored exactly once.

    Rows overlap: each but the first begins `warm_up` tokens before its first scored token, so that every
    token is predicted from at least that many, or from all there are. With one row, or a warm-up of the
    model's reach, the scores equal those of one pass over the whole text. The last row is padded with
    tokens that are not scored.
    """
    scores = len(tokens) - 1
    if scores < 1:
        raise DataError(f"expected at least 2 tokens, got {len(tokens)}")
    stride = -(-max(scores - warm_up, 0) // batch_size) or 1  # tokens scored in each row but the first
    starts = [row * stride for row in range(batch_size)]
    first = torch.tensor([0, *(start + warm_up for start in starts[1:])])[:, None]  # inputs scored from here
    for offset in range(0, stride + warm_up, context):
        text = _rows(tokens, [start + offset for start in starts], context + 1)
        places = torch.tensor(starts)[:, None] + torch.arange(offset, offset + context)  # batch, block
        last = torch.tensor(starts)[:, None] + stride + warm_up
        scored = (places >= first) & (places < last) & (places < scores)
        yield ScoredBatch(text[:, :-1], text[:, 1:], scored, reset=offset == 0)


def _rows(tokens: Tensor, starts: list[int], length: int) -> Tensor:
    """Slices of equal length as rows of int64, 0 beyond the end."""
    rows = torch.zeros(len(starts), length, dtype=torch.int64)
    for row, start in enumerate(starts):
        text = tokens[start : start + length]
        rows[row, : len(text)] = text
    return rows
