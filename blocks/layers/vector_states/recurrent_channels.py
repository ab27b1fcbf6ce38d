"""Channels with a state of their own: the maps, the short convolution and the gate around the recurrence."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import torch
from torch import Tensor

from ....grammar.vocabulary.spec import Settings, as_int, as_word
from ...core.block import Block, Context
from ...core.initialisation import Linear
from ..convolutions import zero_masked
from ..head_parts import ShortConvolution, gate_heads


class RecurrentChannels(Block):
    """Maps of the input, a recurrence of their channels, and a map of what it gives.

    Since nothing later is seen, padding behind a sequence moves nothing; it is zeroed, so that what stands
    there overflows nowhere.
    """

    state_is_bounded: ClassVar[bool] = True

    def __init__(
        self, settings: Settings, context: Context, channels: int, *, maps: int = 1, active: bool
    ) -> None:
        super().__init__()
        width, taps, gate = context.width, as_int(settings, "short_conv"), as_word(settings, "output_gate")
        self.channels = channels
        self.input = Linear(width, channels, bias=maps > 1, maps=maps)
        self.short_conv = ShortConvolution(maps * channels, taps, active=active) if taps else None
        self.gate_kind = gate
        self.gate = Linear(width, channels, bias=False) if gate != "none" else None
        self.output = Linear(channels, width, bias=False)

    @abstractmethod
    def recur(self, u: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return what the recurrence gives at u (batch, length, maps * channels), and its state."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return self._run(zero_masked(x, mask), None)[0]

    def step_with_grad(self, x: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Read a piece; the state holds the convolution's past, then the state of the recurrence."""
        y, past, kept = self._run(x, state)
        return y, kept if past is None else torch.cat([past.flatten(1), kept], 1)

    def _run(self, x: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor | None, Tensor]:
        u, past = self.input(x), None
        if self.short_conv is not None:
            numbers = (len(self.short_conv.weight) - 1) * u.shape[2]
            if state is not None:
                past, state = state[:, :numbers].unflatten(1, (-1, u.shape[2])), state[:, numbers:]
            u, past = self.short_conv(u, past)
        y, kept = self.recur(u, state)
        if self.gate is not None:
            y = gate_heads(y.unsqueeze(2), None, self.gate(x), self.gate_kind)
        return self.output(y), past, kept
