"""Convolutions along the sequence: the shared core, `conv` and `highway_conv`."""

from __future__ import annotations

from typing import Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..grammar.vocabulary import Settings, whole, word
from .activation import ACTIVATIONS, hardsig
from .block import Block, Context, module
from .initial import Drawn, glorot


def correlate(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Slide (outputs, taps, width) over (batch, length, width): (batch, length - taps + 1, outputs).

    A two-dimensional convolution of height one, because its channels-last form takes both as they lie in
    memory; on a CPU it is faster than `conv1d` at every size that we measured, up to 1.9 times.
    """
    image = x.transpose(1, 2).unsqueeze(2)  # (batch, width, 1, length)
    kernel = weight.transpose(1, 2).unsqueeze(2)  # (outputs, width, 1, taps)
    return functional.conv2d(image, kernel, bias).squeeze(2).transpose(1, 2)


def hide(x: Tensor, mask: Tensor | None) -> Tensor:
    """The sequences with zeros at their masked positions."""
    return x if mask is None else x.masked_fill(~mask.unsqueeze(-1), 0.0)


class Convolution(Drawn):
    """W ∗ x + b with zero padding, for one or several maps of the same input side by side.

    Causal: k - 1 positions on the left; otherwise (k - 1) // 2 on the left and the rest on the right.
    Only the taps that can touch data are computed.
    """

    def __init__(self, *, width: int, k: int, causal: bool, maps: int = 1) -> None:
        super().__init__()
        self.maps = maps
        self.left = k - 1 if causal else (k - 1) // 2
        self.right = k - 1 - self.left
        self.weight = nn.Parameter(torch.empty(maps * width, k, width))  # taps before inputs: see correlate
        self.bias = nn.Parameter(torch.empty(maps * width))

    def initialise(self, generator: torch.Generator | None) -> None:
        """Glorot uniform, each map by itself; the bias is zero."""
        _, k, width = self.weight.shape
        glorot(self.weight, k * width, k * width, generator)
        nn.init.zeros_(self.bias)

    def forward(self, x: Tensor) -> Tensor:
        """Map (batch, length, width), zero at masked positions, to (batch, length, maps * width)."""
        left, right = min(self.left, x.shape[1] - 1), min(self.right, x.shape[1] - 1)
        taps = self.weight[:, self.left - left : self.left + right + 1]
        return correlate(functional.pad(x, (0, 0, left, right)), taps, self.bias)


@module("conv")
class Conv(Block):
    """y = act(W ∗ x + b) (active memory in a Transformer; ReLU in the text, GELU in its program)."""

    def __init__(self, *, width: int, k: int, act: str, causal: bool) -> None:
        super().__init__()
        self.convolution = Convolution(width=width, k=k, causal=causal)
        self.act = ACTIVATIONS[act]

    @classmethod
    def build(cls, settings: Settings, context: Context) -> Self:
        """The block of `conv(k, act)`."""
        k, act = whole(settings, "k"), word(settings, "act")
        return cls(width=context.width, k=k, act=act, causal=context.causal)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """One convolution, one activation."""
        return self.act(self.convolution(hide(x, mask)))


@module("highway_conv")
class HighwayConv(Block):
    """a = W0 ∗ x + b0, g = hardsig(W1 ∗ x + b1), y = a⊗g + x⊗(1−g) (active memory in a Transformer)."""

    def __init__(self, *, width: int, k: int, causal: bool) -> None:
        super().__init__()
        self.convolution = Convolution(width=width, k=k, causal=causal, maps=2)  # a and g

    @classmethod
    def build(cls, settings: Settings, context: Context) -> Self:
        """The block of `highway_conv(k)`."""
        return cls(width=context.width, k=whole(settings, "k"), causal=context.causal)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """The gate closed passes the input on, open the convolution."""
        a, g = self.convolution(hide(x, mask)).chunk(2, -1)  # each (batch, length, width)
        return torch.lerp(x, a.to(x.dtype), hardsig(g).to(x.dtype))
