"""Scans, which compute all states of the recurrence h_t = a_t ⊙ h_{t−1} + b_t.

A scan returns all states. If only outputs are needed, they are read from the states, which are not all
stored.

The scan uses pieces of about the square root of the length. It steps through the positions of all pieces at
once, and then through the pieces. Nothing is divided, so decays may be arbitrarily strong. For states that
are only read, the state after each piece is kept; the backward pass recomputes the others. On a CPU pieces
are short and have few sequences, so that they stay in its caches; positions are computed one by one. On an
accelerator pieces are longer and have more sequences; a scan computes them in fewer steps.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ...core.operations import SavedContext, has_tangent, without_autocast

PIECE, HELD = 16, 2**20
"""On a CPU: the positions of a piece, and the maximum state size of a piece with several sequences."""

ACCELERATED_PIECE = 128
"""The positions of a piece on an accelerator, where each step is a separate kernel."""

ACCELERATED_HELD = 2**23
"""The maximum state size of a piece on an accelerator; a gradient holds twelve times as many numbers."""


class DiagonalScan(torch.autograd.Function):
    """Autograd function that computes all states of a recurrence by a scan.

    It saves decays and states. Its backward pass is also a scan.
    """

    @staticmethod
    def forward(decay: Tensor, added: Tensor) -> Tensor:
        """Return the states (batch, length, …), given decays and summands of the same shape."""
        return _scan(decay, added)

    @staticmethod
    def setup_context(ctx: SavedContext, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        ctx.save_for_backward(inputs[0], output)

    @staticmethod
    def backward(ctx: SavedContext, grad: Tensor) -> tuple[Tensor, Tensor]:  # pyright: ignore -- one output
        """Return the gradients of decays and summands.

        That of the summands is a scan in reverse order. That of the decays is its product with the states.
        """
        decay, states = ctx.saved_tensors
        later = torch.cat([decay[:, 1:], torch.zeros_like(decay[:, :1])], 1)
        grad_states = DiagonalScan.apply(later.flip(1), grad.flip(1)).flip(1)
        before = torch.cat([torch.zeros_like(states[:, :1]), states[:, :-1]], 1)
        return grad_states * before, grad_states


def scan(decay: Tensor, added: Tensor, state: Tensor | None = None) -> Tensor:
    """Return all states h_t = decay_t ⊙ h_{t−1} + added_t, (batch, length, …).

    The initial state is `state` (batch, …) or zero.
    """
    if state is not None:
        first = added[:, :1] + decay[:, :1] * state.unsqueeze(1)
        added = torch.cat([first, added[:, 1:]], 1)
    return _scan(decay, added) if has_tangent(decay, added) else DiagonalScan.apply(decay, added)


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
    return torch.cat([x, x.new_zeros(x.shape[0], missing, *x.shape[2:])], 1) if missing else x


class SelectiveRead(torch.autograd.Function):
    """Autograd function that runs a selective state space, and returns its outputs y.

    y_t = h_t q_t with h_t = a_t ⊙ h_{t−1} + (Δ_t ⊙ u_t) k_tᵀ, a_t = exp(Δ_t ⊙ rates).

    With `negative`, decays are twice that minus 1 (Grazzi et al. 2025, section 4.2).
    """

    @staticmethod
    def forward(negative: bool, *given: Tensor) -> tuple[Tensor, Tensor]:
        """Return the outputs y, and the state after each piece of the sequence.

        Δ and u are (batch, length, channels), rates (channels, state), k and q (batch, length, state).
        `before` is the initial state (batch, channels, state). Return y, shaped like u, and the states
        (batch, pieces, channels, state).
        """
        steps, u, rates, k, q, before = given
        reads: list[Tensor] = []
        ends = [before]
        for piece in _pieces(steps, u, k, q):
            h = _states(_decays(piece[0], rates, negative), piece[0] * piece[1], piece[2], ends[-1])
            reads.append((h @ piece[3].unsqueeze(-1)).squeeze(-1))
            ends.append(h[:, -1].clone())  # a view would keep all states of the piece alive
        return torch.cat(reads, 1), torch.stack(ends[1:], 1)

    @staticmethod
    def setup_context(
        ctx: SavedContext, inputs: tuple[bool, *tuple[Tensor, ...]], output: tuple[Tensor, Tensor]
    ) -> None:
        ctx.negative, *given = inputs
        ctx.save_for_backward(*given, output[1])

    @staticmethod
    def backward(  # pyright: ignore -- two outputs
        ctx: SavedContext, grad_reads: Tensor, grad_ends: Tensor
    ) -> tuple[Tensor | None, ...]:
        """Return the gradients of the inputs, computed piece by piece from the end of the sequence."""
        steps, u, rates, k, q, before, ends = ctx.saved_tensors
        grad_state, grad_rates = torch.zeros_like(before), torch.zeros_like(rates)
        pieces = list(_pieces(steps, u, k, q, grad_reads))
        found: list[tuple[Tensor, ...]] = []
        for place in reversed(range(len(pieces))):
            first = ends[:, place - 1] if place else before
            grad_after = grad_state + grad_ends[:, place]
            grads, grad_piece, grad_state = _piece_gradient(
                pieces[place], rates, first, grad_after, ctx.negative
            )
            found.append(grads)
            grad_rates = grad_rates + grad_piece
        grad_steps, grad_u, grad_k, grad_q = (torch.cat(each[::-1], 1) for each in zip(*found, strict=True))
        return None, grad_steps, grad_u, grad_rates, grad_k, grad_q, grad_state


def _piece_gradient(
    piece: tuple[Tensor, ...], rates: Tensor, first: Tensor, grad_after: Tensor, negative: bool
) -> tuple[tuple[Tensor, ...], Tensor, Tensor]:
    """Return the gradients of a piece's steps, u, k and q, of the rates, and of the state before it.

    `first` is that state, and `grad_after` the gradient of the state after the piece.
    """
    steps, u, k, q, grad_reads = piece
    decay = _decays(steps, rates, negative)
    h = _states(decay, steps * u, k, first)
    grad_q = (grad_reads.unsqueeze(2) @ h).squeeze(2)
    grad_h = _state_gradients(decay, grad_reads, q, grad_after)
    grad_written = (grad_h @ k.unsqueeze(-1)).squeeze(-1)
    grad_k = ((steps * u).unsqueeze(2) @ grad_h).squeeze(2)
    grad_past = grad_h * decay
    grad_exponent = grad_past + grad_h if negative else grad_past  # the derivative 2 exp(…) is decay + 1
    del decay, grad_h  # each is as large as all states of the piece
    past = torch.cat([first.unsqueeze(1), h[:, :-1]], 1)
    del h
    grad_exponent = grad_exponent * past
    grad_steps = torch.addcmul((grad_exponent * rates).sum(-1), grad_written, u)
    grad_rates = (grad_exponent * steps.unsqueeze(-1)).sum((0, 1))
    return (grad_steps, grad_written * steps, grad_k, grad_q), grad_rates, grad_past[:, 0].clone()


def read_states(
    steps: Tensor, u: Tensor, rates: Tensor, k: Tensor, q: Tensor, *, state: Tensor | None, negative: bool
) -> tuple[Tensor, Tensor]:
    """Run a selective state space, and return all outputs and the last state.

    It begins at `state` or zero. Rates are at most 0; decays are from 0 to 1, or from −1 if `negative`. The
    computation is in the precision of the steps, even under autocast.
    """
    u, k, q = (each.to(steps.dtype) for each in (u, k, q))
    if state is None:
        state = steps.new_zeros(1).expand(steps.shape[0], *rates.shape)
    read = SelectiveRead.forward if has_tangent(steps, u, rates, k, q, state) else SelectiveRead.apply
    with without_autocast(steps.device):
        parts = [
            read(negative, *part[:2], rates, *part[2:])
            for part in _sequences(rates.numel(), steps, u, k, q, state)
        ]
    reads, ends = zip(*parts, strict=True)
    return torch.cat(reads), torch.cat([each[:, -1] for each in ends])


def _sequences(states: int, *rows: Tensor) -> zip[tuple[Tensor, ...]]:
    """Yield parts of tensors (batch, …), each of the sequences that are computed together."""
    positions = min(rows[0].shape[1], ACCELERATED_PIECE)
    most = max(1, ACCELERATED_HELD // max(1, positions * states))
    together = max(1, HELD // (PIECE * states)) if rows[0].device.type in ("cpu", "meta") else most
    return zip(*(each.split(together) for each in rows), strict=True)


def _pieces(*rows: Tensor) -> zip[tuple[Tensor, ...]]:
    size = PIECE if rows[0].device.type in ("cpu", "meta") else ACCELERATED_PIECE
    return zip(*(each.split(size, 1) for each in rows), strict=True)


def _decays(steps: Tensor, rates: Tensor, negative: bool) -> Tensor:
    decay = (steps.unsqueeze(-1) * rates).exp()
    return 2 * decay - 1 if negative else decay


def _states(decay: Tensor, written: Tensor, k: Tensor, before: Tensor) -> Tensor:
    """Return the states of a piece; each position adds the product of its value `written` and its key."""
    if decay.shape[1] > PIECE:
        return scan(decay, written.unsqueeze(-1) * k.unsqueeze(2), before)
    found: list[Tensor] = []
    for kept, value, key in zip(decay.unbind(1), written.unbind(1), k.unbind(1), strict=True):
        before = torch.addcmul(kept * before, value.unsqueeze(-1), key.unsqueeze(1))
        found.append(before)
    return torch.stack(found, 1)


def _state_gradients(decay: Tensor, grad_reads: Tensor, q: Tensor, grad_after: Tensor) -> Tensor:
    """Return the gradients of the states, from those of the outputs and of the state after them."""
    if decay.shape[1] > PIECE:
        grad = grad_reads.unsqueeze(-1) * q.unsqueeze(2)
        grad = torch.cat([grad[:, :-1], (grad[:, -1] + grad_after).unsqueeze(1)], 1)
        later = torch.cat([decay[:, 1:], torch.zeros_like(decay[:, :1])], 1)
        return scan(later.flip(1), grad.flip(1)).flip(1)
    found: list[Tensor] = []
    rows = zip(decay.unbind(1), grad_reads.unbind(1), q.unbind(1), strict=True)
    for kept, grad, query in reversed(list(rows)):
        found.append(torch.addcmul(grad_after, grad.unsqueeze(-1), query.unsqueeze(1)))
        grad_after = kept * found[-1]
    return torch.stack(found[::-1], 1)
