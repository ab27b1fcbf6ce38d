"""The convolutional gated recurrent unit, applied once."""

from __future__ import annotations

from typing import Self

import torch
from torch import Tensor

from ..grammar.vocabulary import Settings, whole
from .activation import hardsig
from .block import Block, Context, module
from .convolution import Convolution, hide


@module("cgru")
class ConvolutionalGRU(Block):
    """y = u⊗x + (1−u)⊗tanh(W0 ∗ (r⊗x) + b0), u and r = hardsig(W ∗ x + b) (Kaiser and Sutskever 2016)."""

    def __init__(self, *, width: int, k: int, causal: bool) -> None:
        super().__init__()
        self.gates = Convolution(width=width, k=k, causal=causal, maps=2)  # u and r
        self.candidate = Convolution(width=width, k=k, causal=causal)

    @classmethod
    def build(cls, settings: Settings, context: Context) -> Self:
        """The block of `cgru(k)`."""
        return cls(width=context.width, k=whole(settings, "k"), causal=context.causal)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Two convolutions in turn: the second sees what the reset gate lets through."""
        x = hide(x, mask)
        u, r = hardsig(self.gates(x)).chunk(2, -1)  # each (batch, length, width)
        return torch.lerp(torch.tanh(self.candidate(r * x)).to(x.dtype), x, u.to(x.dtype))
