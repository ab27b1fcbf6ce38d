"""Endless sequences, read in pieces: what the blocks of a model keep from one piece to the next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional

from .block import Block


@dataclass(frozen=True, slots=True)
class StreamState:
    """The position of a batch of streams, and the state of each block there.

    `block_states` has an entry for every application of a block, in order; it is empty at first.
    """

    past_length: int = 0
    block_states: tuple[Tensor | None, ...] = ()


def split_streams(streams: Sequence[StreamState], parts: int) -> list[StreamState]:
    """Split the states of a batch into `parts`, as `tensor_split` splits tensors."""
    if len(streams) == parts:
        return list(streams)
    first, columns = streams[0], zip(*(stream.block_states for stream in streams), strict=True)
    together = [
        None if column[0] is None else torch.cat([each for each in column if each is not None])
        for column in columns
    ]
    split = [(None,) * parts if each is None else each.tensor_split(parts) for each in together]
    if not split:
        return [first] * parts
    return [StreamState(first.past_length, states) for states in zip(*split, strict=True)]


class StreamChunk:
    """The next piece of a batch of streams on its way through a model, with the states of its blocks.

    Gradients pass through states only `with_grad`; a state may then grow with the sequence. With
    `zero_past` zero vectors fill the past of each block up to its context length.
    """

    def __init__(
        self, block_states: tuple[Tensor | None, ...], *, with_grad: bool = False, zero_past: bool = False
    ) -> None:
        self._before = block_states
        self._kept: list[Tensor | None] = []
        self._with_grad = with_grad
        self._zero_past = zero_past

    def apply(self, block: Block, x: Tensor) -> Tensor:
        """Apply a block at x (batch, length, width), from x and what it has kept."""
        kept = self._before[len(self._kept)] if self._before else None
        if self._zero_past and block.context_length:
            kept = x[:, :0] if kept is None else kept
            kept = functional.pad(kept, (0, 0, max(0, block.context_length - kept.shape[1]), 0))
        y, keep = (block.step_with_grad if self._with_grad else block.step)(x, kept)
        self._kept.append(keep)
        return y

    def repeatable(self) -> Callable[[], StreamChunk]:
        """Return a function that makes a chunk with the states that this one has left to hand on."""
        ahead = self._before[len(self._kept) :]
        return partial(StreamChunk, ahead, with_grad=self._with_grad, zero_past=self._zero_past)

    def next_states(self) -> tuple[Tensor | None, ...]:
        """Return the states for the next chunk, once all blocks have been applied."""
        return tuple(self._kept)
