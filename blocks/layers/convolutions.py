"""Blocks that convolve along the sequence, and the convolution that they share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from ...grammar.model_config import BiasInit
from ...grammar.vocabulary.spec import Settings, as_int, as_word
from ..core.block import Block, Context, register_block
from ..core.correlation import correlate
from ..core.initialisation import Initialisable, WeightRole, draw_bias, glorot, roles
from ..core.operations import ACTIVATIONS, saturating_sigmoid


def zero_masked(x: Tensor, mask: Tensor | None) -> Tensor:
    """Return the sequences with zeros at masked positions."""
    return x if mask is None else x.masked_fill(~mask.unsqueeze(-1), 0.0)


class Convolution(Initialisable):
    """The convolution W ∗ x + b with zero padding. With several `maps`, their weights are stacked.

    A causal convolution has k - 1 zeros on the left. Any other has (k - 1) // 2 on the left and the rest on
    the right. Only taps that can reach data are computed, except in an exported program, which must hold for
    every length. `use_frequencies = False` always uses the direct form, which is equal up to rounding. A
    causal convolution uses the frequency domain only in training mode. So outputs that are evaluated do not
    depend on later inputs, not even by rounding.
    """

    weight_roles = roles(weight=WeightRole.MATRIX, bias=WeightRole.BIAS)

    def __init__(self, *, width: int, k: int, causal: bool, bias_init: BiasInit, maps: int = 1) -> None:
        super().__init__()
        self.maps = maps
        self.bias_init: BiasInit = bias_init
        self.left = k - 1 if causal else (k - 1) // 2
        self.right = k - 1 - self.left
        self.causal = causal
        self.use_frequencies = True
        self.weight = nn.Parameter(torch.empty(maps * width, k, width))  # taps before inputs: see correlate
        self.bias = nn.Parameter(torch.empty(maps * width))

    @classmethod
    def build(cls, k: int, context: Context, *, maps: int = 1) -> Self:
        """Build a convolution of kernel width `k` for a model."""
        config = context.config
        return cls(
            width=context.width, k=k, causal=context.causal, bias_init=config.settings.bias_init, maps=maps
        )

    def initialise(self, generator: torch.Generator | None) -> None:
        _, k, width = self.weight.shape
        glorot(self.weight, k * width, k * width, generator)
        draw_bias(self.bias, self.bias_init, generator, inputs=k * width, sizes=(width,) * self.maps)

    def split_maps(self, name: str, tensor: Tensor) -> Sequence[Tensor]:
        return tensor.chunk(self.maps)

    def forward(self, x: Tensor) -> Tensor:
        """Map (batch, length, width), zero at masked positions, to (batch, length, maps * width)."""
        left, right, taps = self.left, self.right, self.weight
        if max(left, right) >= x.shape[1]:
            left, right = min(left, x.shape[1] - 1), min(right, x.shape[1] - 1)
            taps = taps[:, self.left - left : self.left + right + 1]
        by_frequencies = self.use_frequencies and (self.training or not self.causal)
        return correlate(x, taps, self.bias, left=left, right=right, by_frequencies=by_frequencies)


@register_block("conv")
class Conv(Block):
    """Block `conv`: y = act(W ∗ x + b) (Dowdell and Zhang 2019).

    The paper uses ReLU in its text and GELU in its program.
    """

    def __init__(self, settings: Settings, context: Context) -> None:
        super().__init__()
        self.convolution = Convolution.build(as_int(settings, "k"), context)
        self.act = ACTIVATIONS[as_word(settings, "act")]

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return self.act(self.convolution(zero_masked(x, mask)))


@register_block("highway_conv")
class HighwayConv(Block):
    """Block `highway_conv`: a convolution with a gate that mixes its output with its input.

    a = W0 ∗ x + b0, g = hardsig(W1 ∗ x + b1), y = a⊙g + x⊙(1−g) (Dowdell and Zhang 2019).
    """

    def __init__(self, settings: Settings, context: Context) -> None:
        super().__init__()
        self.convolution = Convolution.build(as_int(settings, "k"), context, maps=2)  # a and g

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        a, g = self.convolution(zero_masked(x, mask)).chunk(2, -1)  # each (batch, length, width)
        # autocast lowers the type of a and g, but lerp needs equal types
        return torch.lerp(x, a.to(x.dtype), saturating_sigmoid(g).to(x.dtype))


@register_block("cgru")
class ConvolutionalGRU(Block):
    """Block `cgru`: one step of a convolutional gated recurrent unit (Kaiser and Sutskever 2016).

    y = u⊙x + (1−u)⊙tanh(W0 ∗ (r⊙x) + b0), u and r = hardsig(W ∗ x + b).
    """

    def __init__(self, settings: Settings, context: Context) -> None:
        super().__init__()
        k = as_int(settings, "k")
        self.gates = Convolution.build(k, context, maps=2)  # u and r
        self.candidate = Convolution.build(k, context)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        x = zero_masked(x, mask)
        u, r = saturating_sigmoid(self.gates(x)).chunk(2, -1)  # each (batch, length, width)
        return torch.lerp(torch.tanh(self.candidate(r * x)).to(x.dtype), x, u.to(x.dtype))


class LearnedPadding(Initialisable):
    """Trainable vectors that pad every sequence on the left, on the right, or on both sides."""

    weight_roles = roles(left=WeightRole.EMBEDDING, right=WeightRole.EMBEDDING)

    def __init__(self, *, width: int, left: int, right: int) -> None:
        super().__init__()
        self.left = nn.Parameter(torch.empty(left, width)) if left else None
        self.right = nn.Parameter(torch.empty(right, width)) if right else None

    def initialise(self, generator: torch.Generator | None) -> None:
        """Draw the padding of each side by the Glorot uniform rule.

        Its number of rows counts as the inputs, and its width as the outputs.
        """
        for rows in (self.left, self.right):
            if rows is not None:
                glorot(rows, rows.shape[0], rows.shape[1], generator)


@register_block("persistent_conv")
class PersistentConv(Block):
    """Block `persistent_conv`: y = act(W ∗ x + b), padded with trainable vectors instead of zeros.

    Dowdell and Zhang 2019. The contribution of the padding does not depend on the data, so it is computed
    once for the whole batch. The padding is directly before the first and after the last valid position of
    each sequence.
    """

    def __init__(self, settings: Settings, context: Context) -> None:
        super().__init__()
        k = as_int(settings, "k")
        self.convolution = each = Convolution.build(k, context)
        self.padding = context.share(  # all blocks of one k in a model have the same padding
            f"padding of persistent_conv(k={k})",
            lambda: LearnedPadding(width=context.width, left=each.left, right=each.right),
        )
        self.act = ACTIVATIONS[as_word(settings, "act")]

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        y = self.convolution(zero_masked(x, mask))
        for added in (self._from_left(x.shape[1]), self._from_right(x.shape[1], mask)):
            if added is not None:
                y = y + added
        return self.act(y)

    def _from_left(self, length: int) -> Tensor | None:
        """Return the contribution of the left padding to the outputs, (1, length, width)."""
        rows = self.padding.left
        if rows is None:
            return None
        touched = min(len(rows), length)
        rows = functional.pad(rows, (0, 0, 0, touched - 1)).unsqueeze(0)
        taps = self.convolution.weight[:, : self.convolution.left]
        added = correlate(rows, taps, by_frequencies=False)  # (1, touched, width)
        return functional.pad(added, (0, 0, 0, length - touched))

    def _from_right(self, length: int, mask: Tensor | None) -> Tensor | None:
        """Return the contribution of the right padding to the outputs, (1 or batch, length, width)."""
        rows = self.padding.right
        if rows is None:
            return None
        touched = min(len(rows), length)
        rows = functional.pad(rows, (0, 0, touched - 1, 0)).unsqueeze(0)
        taps = self.convolution.weight[:, self.convolution.left + 1 :]
        added = correlate(rows, taps, by_frequencies=False)  # (1, touched, width)
        if mask is None:
            return functional.pad(added, (0, 0, length - touched, 0))
        # row 0: too far from the end; row `touched`: the last valid position and masked ones
        steps = torch.arange(1, length + 1, device=mask.device) - mask.sum(1, keepdim=True)
        return functional.pad(added[0], (0, 0, 1, 0))[(touched + steps).clamp(0, touched)]
