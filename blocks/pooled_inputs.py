"""`activation >> pool` on linearly mapped inputs, in pieces that stay in a processor's cache.

A map of a few input columns to the width, an activation and a pool move far more numbers than they
calculate: of a long batch the activations alone are gigabytes. Here they are made piece by piece in one
buffer, and again for the backward pass, which is written out, so that nothing of the sequences' length and
the model's width is ever held. The result is that of the modules one after another, but for rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx

from .activation import ACTIVATIONS
from .feedforward import Activation
from .initial import Linear
from .pools import AttentionPool, MeanPool
from .stack import Pooled, Residual, Sublayer

_NUMBERS_CPU, _NUMBERS_ELSE = 2**17, 2**27
"""So many numbers are in the buffer at most: half of a second-level cache, or 512 MiB of an accelerator."""

_aten: Any = torch.ops.aten


@dataclass(frozen=True, slots=True, kw_only=True)
class _Act:
    """An activation in place, and its backward pass from what it gave: (gradient, output, out)."""

    forward: Callable[[Tensor], Tensor]
    backward: Callable[[Tensor, Tensor, Tensor], Tensor]


_ACTS = {
    ACTIVATIONS["relu"]: _Act(
        forward=torch.relu_,
        backward=lambda g, y, out: _aten.threshold_backward.grad_input(g, y, 0, grad_input=out),
    ),
    ACTIVATIONS["tanh"]: _Act(
        forward=torch.tanh_,
        backward=lambda g, y, out: _aten.tanh_backward.grad_input(g, y, grad_input=out),
    ),
    ACTIVATIONS["leaky_relu"]: _Act(
        forward=nn.functional.leaky_relu_,
        backward=lambda g, y, out: _aten.leaky_relu_backward.grad_input(g, y, 0.01, True, grad_input=out),
    ),
}
"""Those whose derivative can be taken from what they give."""


def pooled_inputs(entry: Linear, body: Residual, inputs: Tensor, mask: Tensor | None) -> Tensor | None:
    """body(entry(inputs), mask), (batch, 1, width), of a body that begins `activation >> pool`.

    None of any other, or where a norm or a residual sum stands between, inputs need a gradient, or all of it
    is small: then the modules are to be applied one after another.
    """
    if len(body.order) < 2 or inputs.requires_grad or entry.bias is None:
        return None
    first, second = (body.layers[place] for place in body.order[:2])
    act = _act_of(first)
    if act is None or not isinstance(second, Pooled):
        return None
    if inputs.shape[:2].numel() * entry.out_features <= _NUMBERS_CPU:
        return None
    x, weight = _with_ones(inputs, mask), torch.cat([entry.weight, entry.bias[:, None]], 1)
    match second.part:
        case AttentionPool(score=score):
            y = _Attended.apply(x, weight, torch.cat([score.weight, score.bias[:, None]], 1), act)
        case MeanPool():
            y = _Averaged.apply(x, weight, act)
        case _:
            return None
    y = y.unsqueeze(1)
    for place in body.order[2:]:
        y = body.layers[place](y)
    return y


def _act_of(layer: nn.Module) -> _Act | None:
    """The activation of a sub-layer that is nothing else."""
    if not isinstance(layer, Sublayer) or layer.norm is not None or layer.dropout is not None:
        return None
    return _ACTS.get(layer.part.act) if isinstance(layer.part, Activation) else None


def _with_ones(inputs: Tensor, mask: Tensor | None) -> Tensor:
    """The inputs with a column of ones, which tells valid positions too: what is masked is zero."""
    x = torch.cat([inputs, inputs.new_ones(inputs.shape[:2]).unsqueeze(-1)], -1)
    return x if mask is None else x.masked_fill(~mask.unsqueeze(-1), 0.0)


class _Piece(NamedTuple):
    """Some rows of a batch, or some times of one row: h = act(W x) there, and room for its gradient."""

    rows: slice
    places: slice  # among all positions of all rows
    x: Tensor  # (places, columns)
    h: Tensor  # (places, width)
    spare: Tensor

    def by_row(self, flat: Tensor) -> Tensor:
        """(places, …) to (rows, times, …)."""
        return flat.unflatten(0, (self.rows.stop - self.rows.start, -1))


def _pieces(x: Tensor, weight: Tensor, act: _Act, *, spare: bool) -> Iterator[_Piece]:
    """A batch (batch, length, columns) in pieces, each of which overwrites the one before."""
    batch, length, columns = x.shape
    width = len(weight)
    most = max(1, (_NUMBERS_CPU if x.device.type == "cpu" else _NUMBERS_ELSE) // width)
    rows, times = max(1, most // length), min(length, most)
    buffers = [x.new_empty(rows * times, width) for _ in range(1 + spare)]
    flat, across = x.view(-1, columns), weight.T.contiguous()
    for row in range(0, batch, rows):
        last = min(row + rows, batch)
        for begin in range(row * length, last * length, rows * times):
            places = slice(begin, min(begin + rows * times, last * length))
            part = flat[places]
            h, room = (buffers[which][: len(part)] for which in (0, -1))
            yield _Piece(slice(row, last), places, part, act.forward(torch.mm(part, across, out=h)), room)


class _Kept(FunctionCtx):
    """What the backward passes find."""

    act: _Act
    saved_tensors: tuple[Tensor, ...]
    needs_input_grad: tuple[bool, ...]


class _Attended(torch.autograd.Function):
    """Σ α_t h_t of h = act(W x), α = softmax(e), e = tanh(w · h + b).

    No e is above 1, so that exp(e) needs no greatest e.
    """

    @staticmethod
    def forward(ctx: _Kept, x: Tensor, weight: Tensor, score: Tensor, act: _Act) -> Tensor:
        """(batch, length, columns) to (batch, width); the last column of x is 1, or 0 where masked."""
        ahead, bias = score[:, :-1], score[0, -1:]
        scores, parts = (x.new_empty(x.shape[:2].numel(), 1) for _ in range(2))
        y, valid = x.new_zeros(len(x), len(weight)), x[..., -1].reshape(-1, 1)
        for piece in _pieces(x, weight, act, spare=False):
            e, p = scores[piece.places], parts[piece.places]
            torch.addmm(bias, piece.h, ahead.T, out=e).tanh_()
            torch.exp(e, out=p).mul_(valid[piece.places])
            y[piece.rows] += torch.bmm(piece.by_row(p).mT, piece.by_row(piece.h)).squeeze(1)
        total = parts.view(x.shape[:2]).sum(1, keepdim=True)
        y /= total
        shares = parts.view(x.shape[:2]).div_(total)
        ctx.save_for_backward(x, weight, ahead, scores.view(x.shape[:2]), shares, y)
        ctx.act = act
        return y

    @staticmethod
    def backward(ctx: _Kept, gradient: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore -- one output
        """dL/dh_t = α_t g + u_t w, u_t = α_t (1 − e_t²) (g · h_t − g · y)."""
        x, weight, ahead, scores, shares, y = ctx.saved_tensors
        by_weight, by_score = torch.zeros_like(weight.T), torch.zeros_like(ahead)
        sides = torch.stack([gradient, ahead.expand_as(gradient)], 1)  # (batch, 2, width)
        level = -(gradient * y).sum(1).view(-1, 1, 1)
        factors = (shares * (1 - scores.square())).flatten()
        pairs = torch.stack([shares, shares]).flatten(1)  # α, and what becomes u
        for piece in _pieces(x, weight, ctx.act, spare=True):
            h, pair = piece.h, pairs[:, piece.places]
            slope = torch.baddbmm(level[piece.rows], piece.by_row(h), gradient[piece.rows].unsqueeze(-1))
            torch.mul(slope.flatten(), factors[piece.places], out=pair[1])
            by_score += pair[1:] @ h
            torch.bmm(piece.by_row(pair.T), sides[piece.rows], out=piece.by_row(piece.spare))
            by_weight += piece.x.T @ ctx.act.backward(piece.spare, h, piece.spare)
        return None, by_weight.T, torch.cat([by_score, pairs[1:].sum(1, keepdim=True)], 1), None


class _Averaged(torch.autograd.Function):
    """Σ h_t / T of h = act(W x).

    dL/dW = g ⊗ Σ act'(z_t) x_t / T in each row: the sum does not hang on g, and is made in the forward pass.
    """

    @staticmethod
    def forward(ctx: _Kept, x: Tensor, weight: Tensor, act: _Act) -> Tensor:
        """(batch, length, columns) to (batch, width); the last column is 1, or 0 where masked."""
        shares = (x[..., -1:] / x[..., -1:].sum(1, keepdim=True)).flatten(0, 1)
        shared = x.flatten(0, 1) * shares
        y = x.new_zeros(len(x), 1, len(weight))
        slopes = x.new_zeros(len(x), x.shape[-1], len(weight))
        learns, one = ctx.needs_input_grad[1], x.new_ones(())
        for piece in _pieces(x, weight, act, spare=learns):
            share, h = piece.by_row(shares[piece.places]), piece.by_row(piece.h)
            y[piece.rows] += torch.bmm(share.mT, h)
            if learns:
                slope = piece.by_row(act.backward(one.expand_as(piece.h), piece.h, piece.spare))
                slopes[piece.rows] += torch.bmm(piece.by_row(shared[piece.places]).mT, slope)
        ctx.save_for_backward(slopes)
        return y.squeeze(1)

    @staticmethod
    def backward(ctx: _Kept, gradient: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore -- one output
        """The slopes of each row, weighted by its gradient."""
        (slopes,) = ctx.saved_tensors  # (batch, columns, width)
        return None, torch.einsum("bw,bcw->wc", gradient, slopes), None
