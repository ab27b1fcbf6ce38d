"""The parts of stacked models that have weights: each takes the rows of all models, one behind the other.

A module here stands for as many of one kind, with weights of the same names, (models, …), and maps
(models · batch, …) as each of those maps (batch, …).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..core.correlation import stacked_correlate
from ..core.initialisation import Embedding, Linear
from ..core.linear_maps import stacked_linear
from ..layers.attention import SelfAttention
from ..layers.convolutions import Convolution, LearnedPadding, PersistentConv
from ..layers.head_parts import NORM_EPSILON, HeadNorm
from ..models.adaptive_softmax import TiedLinear
from .short_attention import is_short, short_attention
from .stacked_weights import stack_weights
from .standardise import standardise


def stacked_parameter(weights: Sequence[Tensor]) -> nn.Parameter:
    """The weights of all models as one."""
    return nn.Parameter(stack_weights(weights), requires_grad=weights[0].requires_grad)


class StackedLinear(nn.Module):
    """Linear maps; one of fewer outputs has those behind them as impossible, at minus infinity."""

    impossible: Tensor | None

    def __init__(self, maps: Sequence[Linear | TiedLinear]) -> None:
        super().__init__()
        self.weight = stacked_parameter([each.weight for each in maps])
        biases = [each.bias for each in maps if each.bias is not None]
        self.bias = stacked_parameter(biases) if biases else None
        outputs = [len(each.weight) for each in maps]
        self.impossible = None
        if min(outputs) < max(outputs):
            places = torch.arange(max(outputs), device=self.weight.device)
            self.impossible = places >= torch.tensor(outputs, device=self.weight.device)[:, None]

    def forward(self, x: Tensor) -> Tensor:
        """(models · batch, …, inputs) to (models · batch, …, outputs)."""
        rows, bias = x.reshape(len(self.weight), -1, x.shape[-1]), self.bias
        if self.impossible is not None:
            added = self.impossible.new_zeros(self.impossible.shape, dtype=x.dtype) if bias is None else bias
            bias = added.masked_fill(self.impossible, -torch.inf)
        y = stacked_linear(rows, self.weight, bias)
        return y.view(*x.shape[:-1], y.shape[-1])


class StackedEmbedding(nn.Module):
    """Embeddings, of as many symbols as the largest has."""

    def __init__(self, embeddings: Sequence[Embedding]) -> None:
        super().__init__()
        self.weight = stacked_parameter([each.weight for each in embeddings])

    def forward(self, symbols: Tensor) -> Tensor:
        """(models · batch, …) to (models · batch, …, width)."""
        models, count, _ = self.weight.shape
        first = count * torch.arange(models, device=symbols.device)
        places = (symbols.view(models, -1) + first.unsqueeze(1)).view_as(symbols)
        return functional.embedding(places, self.weight.flatten(0, 1))


class StackedLayerNorm(nn.Module):
    """Layer normalisations over the width."""

    def __init__(self, norms: Sequence[nn.LayerNorm]) -> None:
        super().__init__()
        self.eps = norms[0].eps
        self.weight = stacked_parameter([each.weight for each in norms])
        self.bias = stacked_parameter([each.bias for each in norms])

    def forward(self, x: Tensor) -> Tensor:
        """(models · batch, …, width) to the same."""
        rows = standardise(x, self.eps).view(len(self.weight), -1, x.shape[-1])
        return torch.addcmul(self.bias.unsqueeze(1), rows, self.weight.unsqueeze(1)).view_as(x)


class StackedGain(nn.Module):
    """Root-mean-square norms, of a whole width or of heads."""

    def __init__(self, norms: Sequence[nn.RMSNorm | HeadNorm]) -> None:
        super().__init__()
        first = norms[0]
        self.eps = NORM_EPSILON if isinstance(first, HeadNorm) else first.eps
        self.weight = stacked_parameter([each.weight for each in norms])

    def forward(self, x: Tensor) -> Tensor:
        """(models · batch, …, width) to the same."""
        rows = functional.rms_norm(x, x.shape[-1:], eps=self.eps).reshape(len(self.weight), -1, x.shape[-1])
        return (rows * self.weight.unsqueeze(1)).view_as(x)


class StackedConvolution(nn.Module):
    """Convolutions along the sequence, by the weights of each model."""

    def __init__(self, convolutions: Sequence[Convolution]) -> None:
        super().__init__()
        self.left, self.right = convolutions[0].left, convolutions[0].right
        self.use_frequencies = convolutions[0].use_frequencies
        self.weight = stacked_parameter([each.weight for each in convolutions])
        self.bias = stacked_parameter([each.bias for each in convolutions])

    def forward(self, x: Tensor) -> Tensor:
        """(models · batch, length, width), zero around it, to (models · batch, length, outputs)."""
        left, right = min(self.left, x.shape[1] - 1), min(self.right, x.shape[1] - 1)
        return self.correlate(x, self.weight[:, :, self.left - left : self.left + right + 1], left, right)

    def correlate(self, x: Tensor, taps: Tensor, left: int = 0, right: int = 0) -> Tensor:
        """Slide (models, outputs, taps, width) over (models · batch, length, width), and add the biases."""
        return stacked_correlate(
            x, taps, self.bias, left=left, right=right, by_frequencies=self.use_frequencies
        )


class StackedPadding(nn.Module):
    """The rows that stand before and after sequences, for each model its own."""

    def __init__(self, paddings: Sequence[LearnedPadding]) -> None:
        super().__init__()
        lefts = [each.left for each in paddings if each.left is not None]
        rights = [each.right for each in paddings if each.right is not None]
        self.left = stacked_parameter(lefts) if lefts else None
        self.right = stacked_parameter(rights) if rights else None

    def forward(self, x: Tensor) -> Tensor:
        """(models · batch, length, width) with the rows around it."""
        parts: list[Tensor] = []
        for rows in (self.left, x, self.right):
            if rows is not None:
                parts.append(rows if rows is x else rows.repeat_interleave(len(x) // len(rows), 0))
        return torch.cat(parts, 1)


class StackedPersistentConv(PersistentConv):
    """Convolutions whose padding is learnt, of sequences of one length."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """(models · batch, length, width) to the same."""
        convolution, padding = cast("nn.Module", self.convolution), cast("nn.Module", self.padding)
        assert mask is None and isinstance(convolution, StackedConvolution), "as they were made"
        return self.act(convolution.correlate(padding(x), convolution.weight))


class StackedSelfAttention(SelfAttention):
    """Self-attention that is computed on a CPU as `short_attention` does, where that is faster."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """(models · batch, length, width) to the same."""
        is_plain = mask is None and self.bias is None and not self.causal and not self.cap
        if not is_plain or x.device.type != "cpu" or not is_short(x.shape[1], self._head_width):
            return super().forward(x, mask)
        if self.kv_heads == self.heads and self.query_norm is None and not self.turns:
            qkv = self.qkv(x).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        else:
            q, k, v = self._map(x, 0)
            qkv = torch.stack([q, self._for_queries(k), self._for_queries(v)])
        factors = self.dropout.draw(torch.Size([*qkv.shape[1:4], x.shape[1]]), x)
        return self._merge(short_attention(qkv, self._head_width**-0.5 / self.temperature, factors))

    @property
    def _head_width(self) -> int:
        """The numbers of a head: the output's map is from all heads."""
        return self.output.weight.shape[-1] // self.heads
