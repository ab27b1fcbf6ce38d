"""Pools, which reduce a sequence to one vector, and a faster way to compute them.

The faster way computes `activation >> pool` on linearly mapped inputs. A map of a few input columns to the
width, an activation and a pool are bound by memory, not by arithmetic. For a long batch the activations alone
take gigabytes. This module computes pieces in one buffer, and computes them again in its own backward pass.
So it never holds a tensor of size length × width.

A rectifier, leaky or not, is linear on both sides of 0: h = act'(z) z, z = W x. So for any weights α_t

Σ α_t h_t = W · S, S = Σ α_t act'(z_t) x_t, d(Σ α_t h_t)/dW = S,

and S has as many numbers for each row and unit as there are input columns: the sum of x, and its sum where z
is positive. The result equals the result of the separate modules up to rounding.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Self

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.functional import leaky_relu

from ...grammar.vocabulary.spec import Settings
from ..core.attention_maps import record_weights
from ..core.block import Block, Context, register_block
from ..core.initialisation import Initialisable, Linear, WeightRole, roles
from ..core.operations import ACTIVATIONS, SavedContext, has_tangent, without_autocast
from ..core.residual_stack import PoolingLayer, ResidualStack, Sublayer
from .convolutions import zero_masked
from .feedforward import Activation


class AttentionScore(Initialisable):
    """The score of each position in an attention pool, tanh(w · x + b).

    At first w is drawn from N(0, 1 / width) and b is zero, as in the program of Raffel and Ellis 2016.
    """

    weight_roles = roles(weight=WeightRole.MATRIX, bias=WeightRole.BIAS)

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(1, width))
        self.bias = nn.Parameter(torch.empty(1))

    def initialise(self, generator: torch.Generator | None) -> None:
        nn.init.normal_(self.weight, std=self.weight.shape[1] ** -0.5, generator=generator)
        nn.init.zeros_(self.bias)

    def forward(self, x: Tensor) -> Tensor:
        return torch.tanh(functional.linear(x, self.weight, self.bias)).squeeze(-1)


@register_block("attention_pool")
class AttentionPool(Block):
    """Block `attention_pool`: y = Σ α_t x_t, α = softmax(tanh(w · x_t + b)) (Raffel and Ellis 2016)."""

    def __init__(self, settings: Settings, context: Context) -> None:
        super().__init__()
        self.score = AttentionScore(context.width)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        scores = self.score(x)  # (batch, length)
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.inf)
        weights = scores.softmax(-1).unsqueeze(1)
        record_weights(weights.unsqueeze(1))
        return (weights @ zero_masked(x, mask)).squeeze(1)


@register_block("mean_pool")
class MeanPool(Block):
    """Block `mean_pool`: y = Σ x_t / T over the T valid positions."""

    @classmethod
    def build(cls, settings: Settings, context: Context) -> Self:
        return cls()

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        if mask is None:
            return x.mean(1)
        return zero_masked(x, mask).sum(1) / mask.sum(1, keepdim=True)


@register_block("last")
class Last(Block):
    """Block `last`: y = x_T, where T is the last valid position of each row."""

    @classmethod
    def build(cls, settings: Settings, context: Context) -> Self:
        return cls()

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        if mask is None:
            return x[:, -1].clone()  # a view would keep the whole sequence alive in training
        place = (mask.sum(1) - 1).view(-1, 1, 1).expand(-1, 1, x.shape[-1])
        return x.gather(1, place).squeeze(1)


_MAX_BUFFER_CPU, _MAX_BUFFER_ACCELERATOR = 2**17, 2**27
"""The maximum size of the buffer: half of a second-level cache, or 512 MiB on an accelerator."""

_NEGATIVE_SLOPES = {ACTIVATIONS["relu"]: 0.0, ACTIVATIONS["leaky_relu"]: 0.01}
"""Slopes below 0 of the activations that are the identity above 0."""


def try_fused_pooling(
    entry: Linear, body: ResidualStack, inputs: Tensor, mask: Tensor | None
) -> Tensor | None:
    """Compute body(entry(inputs), mask) faster; return None if this is not possible.

    The result is (batch, 1, width).

    The method needs a body that begins with `activation >> pool`.

    Return None in these cases, in which the caller applies the modules one after another:

    - The body begins with other parts, or the activation is not a rectifier.
    - A norm, a dropout or a residual sum is between the parts.
    - The inputs need a gradient, or a weight has a forward-mode derivative.
    - The activations are small.
    """
    if len(body.order) < 2 or inputs.requires_grad or entry.bias is None:
        return None
    first, second = (body.layers[place] for place in body.order[:2])
    alone = isinstance(first, Sublayer) and first.norm is None and first.dropout is None
    if not alone or not isinstance(first.part, Activation) or not isinstance(second, PoolingLayer):
        return None
    below = _NEGATIVE_SLOPES.get(first.part.act)
    if below is None:
        return None
    is_small = inputs.shape[:2].numel() * entry.out_features <= _MAX_BUFFER_CPU
    if is_small or has_tangent(inputs, *entry.parameters(), *second.parameters()):
        return None
    x = torch.cat([inputs, inputs.new_ones(inputs.shape[:2]).unsqueeze(-1)], -1)
    x = zero_masked(x, mask)  # also in the column of ones, which weights the sums
    weight = torch.cat([entry.weight, entry.bias[:, None]], 1)
    with without_autocast(x.device):  # sums over thousands of positions keep the precision of the inputs
        match second.part:
            case AttentionPool(score=score):
                y = _FusedAttentionPool.apply(
                    x, weight, torch.cat([score.weight, score.bias[:, None]], 1), below
                )
            case MeanPool():
                y = _FusedMeanPool.apply(x, weight, below)
            case _:
                return None
    y = y.unsqueeze(1)
    for place in body.order[2:]:
        y = body.layers[place](y)
    return y


class _Chunk(NamedTuple):
    """Some rows of a batch, or some time steps of one row, with their products z = W x."""

    rows: slice
    times: slice
    z: Tensor  # (rows, times, width)

    def of(self, numbers: Tensor) -> Tensor:
        return numbers[self.rows, self.times]

    def add_positive_sums(self, sums: Tensor, across: Tensor, weights: Tensor) -> None:
        """Add Σ α x over the time steps with z > 0 to `sums` (batch, columns, width), overwriting z.

        x is `across` (batch, columns, length), and the weights α are `weights` (rows, times).
        """
        sums[self.rows].baddbmm_(across[self.rows, :, self.times] * weights.unsqueeze(1), self.z.gt_(0))


def _iter_chunks(x: Tensor, weight: Tensor) -> Iterator[_Chunk]:
    """Yield x (batch, length, columns) in chunks with z = W x. All chunks share one buffer for z."""
    batch, length, _ = x.shape
    width = len(weight)
    most = max(1, (_MAX_BUFFER_CPU if x.device.type == "cpu" else _MAX_BUFFER_ACCELERATOR) // width)
    rows, times = max(1, most // length), min(length, most)
    buffer, map_ = x.new_empty(rows * times, width), weight.T.contiguous()
    for row in range(0, batch, rows):
        for time in range(0, length, times):
            part = x[row : row + rows, time : time + times]
            z = torch.mm(part.flatten(0, 1), map_, out=buffer[: part.shape[:2].numel()])
            yield _Chunk(slice(row, row + rows), slice(time, time + times), z.view(*part.shape[:2], width))


def _slopes(across: Tensor, weights: Tensor, above: Tensor, negative_slope: float) -> Tensor:
    """Return Σ α x · act′(z) over all time steps, (batch, columns, width).

    x is `across` (batch, columns, length), α is `weights` (batch, length), and `above` is Σ α x where z > 0,
    where act′ is 1; elsewhere it is `negative_slope`.
    """
    everywhere = torch.bmm(across, weights.unsqueeze(-1))
    return torch.add(negative_slope * everywhere, above, alpha=1 - negative_slope)


class _FusedAttentionPool(torch.autograd.Function):
    """The attention pool of h = act(W x): Σ α_t h_t with α = softmax(e) and e = tanh(w · h + b).

    Since e is at most 1, exp(e) needs no stabilisation.
    """

    @staticmethod
    def forward(ctx: SavedContext, x: Tensor, weight: Tensor, score: Tensor, negative_slope: float) -> Tensor:
        """Map (batch, length, columns) to (batch, width). The last column of x is 1, or 0 where masked."""
        ahead, bias, across = score[:, :-1], score[0, -1:], x.mT.contiguous()
        scores, parts = (x.new_empty(x.shape[:2]) for _ in range(2))
        above = x.new_zeros(*across.shape[:2], len(weight))
        for piece in _iter_chunks(x, weight):
            e, p = piece.of(scores), piece.of(parts)
            h = leaky_relu(piece.z, negative_slope, inplace=True).flatten(0, 1)
            torch.addmm(bias, h, ahead.T, out=e.view(-1, 1)).tanh_()
            torch.exp(e, out=p)
            piece.add_positive_sums(above, across, p)
        parts *= across[:, -1]
        total = parts.sum(1, keepdim=True)
        shares = parts.div_(total)
        slopes = _slopes(across, shares, above.div_(total.unsqueeze(-1)), negative_slope)
        y = torch.einsum("bcw,wc->bw", slopes, weight)
        ctx.save_for_backward(x, across, weight, score, scores, shares, slopes, y)
        ctx.negative_slope = negative_slope
        return y

    @staticmethod
    def backward(ctx: SavedContext, gradient: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore -- one output
        """Return gradients, that of h_t being α_t g + α_t (1 − e_t²) (g · h_t − g · y) w.

        If they must be differentiable again, they are computed by plain operations.
        """
        x, across, weight, score, scores, shares, slopes, y = ctx.saved_tensors
        if torch.is_grad_enabled():
            with without_autocast(x.device):
                return None, *_plain_gradients(x, weight, score, ctx.negative_slope, gradient), None
        ahead = score[:, :-1]
        above, level = torch.zeros_like(slopes), -(gradient * y).sum(1).view(-1, 1, 1)
        u = shares * (1 - scores.square())
        for piece in _iter_chunks(x, weight):
            h = leaky_relu(piece.z, ctx.negative_slope, inplace=True)
            change = torch.baddbmm(level[piece.rows], gradient[piece.rows].unsqueeze(1), h.mT).squeeze(1)
            piece.add_positive_sums(above, across, piece.of(u).mul_(change))
        by_u = _slopes(across, u, above, ctx.negative_slope)
        by_weight = torch.einsum("bw,bcw->wc", gradient, slopes) + (by_u.sum(0) * ahead).T
        by_score = torch.einsum("bcw,wc->w", by_u, weight)
        return None, by_weight, torch.cat([by_score, u.sum().view(1)]).unsqueeze(0), None


def _plain_gradients(
    x: Tensor, weight: Tensor, score: Tensor, negative_slope: float, gradient: Tensor
) -> Sequence[Tensor | None]:
    """Return the gradients of an attention pool's weight and score, which can be differentiated again."""
    weight, score = weight.view_as(weight), score.view_as(score)  # views, since one may depend on the other
    h = leaky_relu(x @ weight.T, negative_slope)
    e = torch.tanh(functional.linear(h, score[:, :-1], score[0, -1:])).squeeze(-1)
    shares = e.masked_fill(x[..., -1] == 0, -torch.inf).softmax(-1)
    y = (shares.unsqueeze(1) @ h).squeeze(1)
    needed = [each for each in (weight, score) if each.requires_grad]
    found = iter(torch.autograd.grad(y, needed, gradient, create_graph=True))
    return [next(found) if each.requires_grad else None for each in (weight, score)]


class _FusedMeanPool(torch.autograd.Function):
    """The mean pool of h = act(W x), Σ h_t / T."""

    @staticmethod
    def forward(ctx: SavedContext, x: Tensor, weight: Tensor, negative_slope: float) -> Tensor:
        across = x.mT.contiguous()
        shares = across[:, -1] / across[:, -1].sum(1, keepdim=True)
        above = x.new_zeros(*across.shape[:2], len(weight))
        for piece in _iter_chunks(x, weight):
            piece.add_positive_sums(above, across, piece.of(shares))
        slopes = _slopes(across, shares, above, negative_slope)
        ctx.save_for_backward(slopes)
        return torch.einsum("bcw,wc->bw", slopes, weight)

    @staticmethod
    def backward(ctx: SavedContext, gradient: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore -- one output
        (slopes,) = ctx.saved_tensors
        return None, torch.einsum("bw,bcw->wc", gradient, slopes), None
