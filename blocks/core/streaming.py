"""Endless sequences, read in pieces: what the blocks of a model keep from one piece to the next."""

from __future__ import annotations

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
    """The next piece of a batch of streams on its way through a model, with what its blocks have kept.

    Gradients pass through what is kept only `with_grad`; a state may then grow with the sequence.
    """

    def __init__(self, block_states: tuple[Tensor | None, ...], *, with_grad: bool = False) -> None:
        self._before = block_states
        self._kept: list[Tensor | None] = []
        self._with_grad = with_grad

    def apply(self, block: Block, x: Tensor) -> Tensor:
        """The outputs of a block at x (batch, length, width), from x and what it has kept."""
        kept = self._before[len(self._kept)] if self._before else None
        y, keep = (block.step_with_grad if self._with_grad else block.step)(x, kept)
        self._kept.append(keep)
        return y

    def next_states(self) -> tuple[Tensor | None, ...]:
        """What the blocks keep for the piece after this one, once all of them have been applied."""
        return tuple(self._kept)
