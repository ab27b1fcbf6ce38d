"""Endless sequences, read in pieces: what the blocks of a model keep from one piece to the next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from .block import Block


@dataclass(frozen=True, slots=True)
class StreamState:
    """Where a batch of streams stands: how many positions have passed, and what each block keeps of them.

    `block_states` has an entry for every application of a block, in their order; it is empty at first.
    """

    past_length: int = 0
    block_states: tuple[Tensor | None, ...] = ()


class StreamChunk:
    """The next piece of a batch of streams on its way through a model, from one StreamState to the next."""

    def __init__(self, state: StreamState) -> None:
        self._before: Sequence[Tensor | None] = state.block_states
        self._kept: list[Tensor | None] = []

    def apply(self, block: Block, x: Tensor) -> Tensor:
        """The outputs of a block at x (batch, length, width), from x and what it has kept."""
        kept = self._before[len(self._kept)] if self._before else None
        y, keep = block.step(x, kept)
        self._kept.append(keep)
        return y

    def next_states(self) -> tuple[Tensor | None, ...]:
        """What the blocks keep for the piece after this one, once all of them have been applied."""
        return tuple(self._kept)
