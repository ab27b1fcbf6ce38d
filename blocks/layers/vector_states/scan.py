"""h_t = a_t ⊗ h_{t−1} + b_t for all positions, in pieces of about the root of the length.

Within all pieces at once one position follows the other, then one piece the other. Nothing is divided, so
that decays may be as strong as they like.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx

from ...core.torch_modes import one_gradient_at_a_time


class _SavedScan(FunctionCtx):
    """What a scan saves for its gradient."""

    saved_tensors: tuple[Tensor, Tensor]


class DiagonalScan(torch.autograd.Function):
    """The states of all positions; saved are decays and states, and the gradient is a scan as well."""

    generate_vmap_rule = True

    @staticmethod
    def forward(decay: Tensor, added: Tensor) -> Tensor:
        """The states (batch, length, …) of decays and of what is added, of that shape."""
        return _scan(decay, added)

    @staticmethod
    def setup_context(ctx: _SavedScan, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        """Keep what the gradient needs."""
        ctx.save_for_backward(inputs[0], output)

    @staticmethod
    @one_gradient_at_a_time
    def backward(ctx: _SavedScan, grad: Tensor) -> tuple[Tensor, Tensor]:  # pyright: ignore -- one output
        """The gradient of what is added, a scan from the end, is by the state that of a decay."""
        decay, states = ctx.saved_tensors
        later = torch.cat([decay[:, 1:], torch.zeros_like(decay[:, :1])], 1)
        worth = DiagonalScan.apply(later.flip(1), grad.flip(1)).flip(1)
        before = torch.cat([torch.zeros_like(states[:, :1]), states[:, :-1]], 1)
        return worth * before, worth


def scan(decay: Tensor, added: Tensor, state: Tensor | None = None) -> Tensor:
    """h_t = decay_t ⊗ h_{t−1} + added_t, each (batch, length, …), from a `state` (batch, …) or from zero."""
    if state is not None:
        first = added[:, :1] + decay[:, :1] * state.unsqueeze(1)
        added = torch.cat([first, added[:, 1:]], 1)
    return DiagonalScan.apply(decay, added)


def _scan(decay: Tensor, added: Tensor) -> Tensor:
    length = decay.shape[1]
    size = math.isqrt(length - 1) + 1 if length > 1 else 1
    count = -(-length // size)
    missing = count * size - length
    decays, inputs = (_pad(each, missing).unflatten(1, (count, size)) for each in (decay, added))
    steps = zip(decays.unbind(2), inputs.unbind(2), strict=True)
    state = torch.zeros_like(inputs[:, :, 0])
    local: list[Tensor] = []
    for kept, new in steps:  # each (batch, pieces, …)
        state = torch.addcmul(new, kept, state)
        local.append(state)
    if count == 1:
        return torch.stack(local, 2).flatten(1, 2)
    left = decays.cumprod(2)
    before = [torch.zeros_like(state[:, 0])]
    for kept, new in zip(left[:, :-1, -1].unbind(1), state[:, :-1].unbind(1), strict=True):
        before.append(torch.addcmul(new, kept, before[-1]))
    found = torch.addcmul(torch.stack(local, 2), left, torch.stack(before, 1).unsqueeze(2))
    return found.flatten(1, 2)[:, :length].contiguous()


def _pad(x: Tensor, missing: int) -> Tensor:
    """The same with zeros behind the end of each sequence."""
    return torch.cat([x, x.new_zeros(x.shape[0], missing, *x.shape[2:])], 1) if missing else x
