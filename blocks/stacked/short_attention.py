"""Softmax attention over short sequences or by narrow heads on a CPU, with a backward pass of its own.

What products of small matrices cost depends on their layout, and a softmax over rows of few numbers takes
several times as long as their exponentials: these are divided by their sums only where values are added up.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx

from ...grammar.vocabulary.attention_window import MAX_UNFUSED_LENGTH
from ..batched_gradients import one_gradient_at_a_time

VECTOR = 16
"""Numbers of single precision in the widest vectors of a CPU; the matrices of narrower heads lie across."""

LARGEST = 46.0
"""Powers of two of scores within this need no shift: their sums, and what these divide, stay finite."""

LOG2_E = 1.4426950408889634
"""2 to the power of this is e; powers of two take a quarter of the time of exponentials on some CPUs."""


def is_short(length: int, head_width: int) -> bool:
    """Whether `short_attention` is for them: steps of narrow heads are faster with it, others no slower."""
    return length < VECTOR or (head_width < VECTOR and length <= MAX_UNFUSED_LENGTH)


def short_attention(qkv: Tensor, scale: float, factors: Tensor | None = None) -> Tensor:
    """softmax(q kᵀ · scale) v, (batch, heads, length, head_width), of q, k and v, (3, batch, …) of the same.

    The weights are multiplied by factors (batch, heads, queries, keys), those of dropout, if there are any.
    """
    return _ShortAttention.apply(qkv, scale, factors)  # pyright: ignore[reportReturnType] -- torch has no type


def slow_short_attention(qkv: Tensor, scale: float, factors: Tensor | None = None) -> Tensor:
    """As `short_attention`, by its equation."""
    q, k, v = qkv.unbind(0)
    weights = torch.softmax(q @ k.transpose(-1, -2) * scale, -1)
    return (weights if factors is None else weights * factors) @ v


class _AttentionContext(FunctionCtx):
    """What the backward pass finds."""

    scale: float
    saved_tensors: tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]


class _ShortAttention(torch.autograd.Function):
    """Every matrix has the heads of all sequences first; those of narrow heads are transposed.

    Then q, k and v are (head_width, length) and weights (keys, queries), and products change their order.
    """

    @staticmethod
    def forward(ctx: _AttentionContext, qkv: Tensor, scale: float, factors: Tensor | None) -> Tensor:
        """(3, batch, heads, length, head_width) to (batch, heads, length, head_width)."""
        across, keys = _layout(qkv)
        q, k, v = (qkv.mT if across else qkv).contiguous().flatten(1, 2).unbind(0)
        q = q * (scale * LOG2_E)
        weights = _powers_of_two(_product(k.mT, q, across=across), keys)
        inverse = weights.sum(keys, keepdim=True).reciprocal_()
        left = weights
        if factors is not None:
            factors = factors.flatten(0, 1)
            left = weights * (factors.mT if across else factors)
        y = _product(v, left, across=across).mul_(inverse)
        ctx.scale = scale
        ctx.save_for_backward(q, k, v, weights, inverse, y, left)
        heads = y.unflatten(0, qkv.shape[1:3])
        heads = heads.mT if across else heads
        return heads.transpose(1, 2).contiguous().transpose(1, 2)  # in memory as the next map takes them

    @staticmethod
    @one_gradient_at_a_time
    def backward(ctx: _AttentionContext, of_heads: Tensor) -> tuple[Tensor, None, None]:  # pyright: ignore -- one output
        """By what each query gives its weights, less the part along their sum."""
        q, k, v, weights, inverse, y, left = ctx.saved_tensors
        across, keys = _layout(of_heads)
        of_heads, sizes = (of_heads.mT if across else of_heads), of_heads.shape[:2]
        of_y = torch.empty_like(y)
        torch.mul(of_heads, inverse.unflatten(0, sizes), out=of_y.unflatten(0, sizes))
        of_scores = _product(v.mT, of_y, across=across).mul_(left)
        of_scores.addcmul_(weights, (of_y * y).sum(keys, keepdim=True), value=-1.0)
        found = q.new_empty(3, *q.shape)
        _product(k, of_scores, across=across, out=found[0])
        found[0].mul_(ctx.scale)
        _product(q, of_scores.mT, across=across, out=found[1])
        found[1].mul_(1 / LOG2_E)
        _product(of_y, left.mT, across=across, out=found[2])
        of_qkv = found.unflatten(1, sizes)
        of_qkv = of_qkv.mT if across else of_qkv
        of_qkv = of_qkv.permute(1, 3, 0, 2, 4).contiguous().permute(2, 0, 3, 1, 4)  # as the map gave them
        return of_qkv, None, None


def _layout(heads: Tensor) -> tuple[bool, int]:
    """Whether matrices of (…, length, head_width) lie across, and the axis of keys in their weights."""
    across = heads.shape[-1] < VECTOR
    return across, 1 if across else 2


def _product(a: Tensor, b: Tensor, *, across: bool, out: Tensor | None = None) -> Tensor:
    """The product a b of matrices that lie across; of others, which are transposed, its transpose b a."""
    return torch.bmm(a, b, out=out) if across else torch.bmm(b, a, out=out)


def _powers_of_two(scores: Tensor, keys: int) -> Tensor:
    """Those of scores, up to a factor for each query; the scores are overwritten."""
    least, largest = map(float, torch.aminmax(scores))
    if not (least > -LARGEST and largest < LARGEST):  # or one is not a number
        scores.sub_(scores.amax(keys, keepdim=True))
    return scores.exp2_()
