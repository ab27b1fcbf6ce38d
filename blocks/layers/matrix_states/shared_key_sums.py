"""Linear recurrence whose heads share queries and keys, computed in chunks.

It is S_t = a_t S_{t−1} + Δ_t k_t v_tᵀ, y_t = q_tᵀ S_t + d v_t, as in `chunked_recurrence`, but with a custom
gradient. Products of shared queries and keys are computed once for all heads. Training keeps the summands,
the states after each chunk and the outputs, and recomputes the decays of pairs. The gradient of a log decay
needs no pairs: later outputs grow with it, and earlier writes shrink.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from ...core.operations import SavedContext
from .chunked_recurrence import chunk_shape, longest_chunk, sum_over_pairs

_LEAST_EXPONENT = -80.0
"""The lower bound of log decays. Smaller ones give denormal numbers, which are slow and add nothing."""


def sum_with_shared_keys(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    steps: Tensor,
    log_decay: Tensor,
    skip: Tensor,
    state: Tensor | None = None,
    keep: bool = True,
) -> tuple[Tensor, Tensor | None]:
    """Run this recurrence; return outputs (batch, length, heads, values) and, with `keep`, the last state.

    q and k are (batch, length, keys), v (batch, length, heads, values), `steps` Δ and `log_decay`, at most 0,
    (batch, length, heads), and `skip` d, (1, 1, heads). Without a `state` the recurrence begins at zero.
    """
    if torch.compiler.is_exporting() and state is None and not keep:
        y = sum_over_pairs(q.unsqueeze(2), k.unsqueeze(2), v * steps.unsqueeze(-1), log_decay)
        return v * skip.unsqueeze(-1) + y, None
    begin = None if state is None else state.transpose(1, 2)
    kind = v.device.type
    is_cast = torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind)
    low = torch.get_autocast_dtype(kind) if is_cast else v.dtype
    y, states = SharedKeySums.apply(keep, low, q, k, v, steps, log_decay, skip, begin)
    return y, states[-1].transpose(1, 2) if keep else None


class SharedKeySums(torch.autograd.Function):
    """Autograd function for a linear recurrence whose heads share queries and keys.

    It returns the outputs, and the state after each chunk. The state after the last chunk is returned only
    with `keep`.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(keep: bool, low: torch.dtype, *given: Any) -> tuple[Tensor, Tensor]:  # noqa: ANN401 -- tensors, and a state or None
        """Return the outputs, and the state after each chunk, (…, keys, heads, values).

        Matrix products are computed in the precision `low`.
        """
        q, k, v, steps, log_decay, skip, state = given
        chunks = _Chunks.of(q, k, log_decay, low)
        values = chunks.split(v * steps.unsqueeze(-1))
        y = (chunks.weights(chunks.pairwise_decay()) @ values).transpose(2, 3)
        count = len(y) if keep else len(y) - 1
        written = chunks.k[:count].mT @ chunks.left_values(values, count)
        states = _propagate(written.unflatten(-1, y.shape[-2:]), chunks.decay_of_chunk(), state)
        before, first = _before(states, state, len(y))
        if len(before):
            read = (chunks.q[first:] @ before.to(low).flatten(-2)).unflatten(-1, y.shape[-2:])
            y[first:].add_(read * chunks.decay_from_start(first))
        return v * skip.unsqueeze(-1) + _join(y, v.shape[1]), states

    @staticmethod
    def setup_context(ctx: SavedContext, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.low = inputs[1]
        ctx.set_materialize_grads(False)  # an unused output has the gradient None, not a tensor of zeros
        ctx.save_for_backward(*inputs[2:], *output)

    @staticmethod
    def backward(  # pyright: ignore -- two outputs
        ctx: SavedContext, grad_y: Tensor | None, grad_states: Tensor | None
    ) -> tuple[Tensor | None, ...]:
        q, k, v, steps, log_decay, skip, state, y, states = ctx.saved_tensors
        grad_y = torch.zeros_like(y) if grad_y is None else grad_y
        chunks, low, count = _Chunks.of(q, k, log_decay, ctx.low), ctx.low, len(states)
        values, grad_reads = chunks.split(v * steps.unsqueeze(-1)), chunks.split(grad_y)
        grad_q, grad_k, grad_values = _within_gradients(chunks, values, grad_reads)
        before, first = _before(states, state, len(chunks.q))
        grad_state = None
        if len(before) or count:
            grad_reads = (_by_size(grad_reads[first:]) * chunks.decay_from_start(first)).to(low).flatten(-2)
            grad_q[first:].add_(grad_reads @ before.to(low).flatten(-2).mT)
            grad_before = (chunks.q[first:].mT @ grad_reads).unflatten(-1, grad_values.shape[-2:])
            grad_state, grad_ends = _propagate_gradients(
                grad_before, grad_states, chunks.decay_of_chunk(), states, first
            )
            grad_ends = grad_ends.to(low).flatten(-2)
            grad_k[:count].add_(chunks.left_values(values, count) @ grad_ends.mT)
            grad_left = (chunks.k[:count] @ grad_ends).unflatten(-1, grad_values.shape[-2:])
            grad_values[:count].add_(grad_left * chunks.decay_to_end(count))
        grad_q, grad_k = (_join(each.unsqueeze(3), v.shape[1]).squeeze(2) for each in (grad_q, grad_k))
        grad_values = _join(grad_values, v.shape[1])
        grad_steps, passed = (grad_values * v).sum(-1), (grad_y * v).sum(-1)
        grown = (grad_y * y).sum(-1) - passed * skip - grad_steps * steps
        grad_decay = _decay_gradient(grown, grad_states, states, chunks.q.shape[2])
        grad_v = grad_values * steps.unsqueeze(-1) + grad_y * skip.unsqueeze(-1)
        grads = (grad_q, grad_k, grad_v, grad_steps, grad_decay)
        return None, None, *grads, passed.sum_to_size(skip.shape), grad_state


class _Chunks(NamedTuple):
    """Queries, keys and log decays, split into chunks of positions.

    `low` is the precision of matrix products. Queries and keys are (chunks, batch, size, keys). `total`,
    (chunks, batch, heads, size), is the log decay since the chunk's start.
    """

    q: Tensor
    k: Tensor
    total: Tensor
    low: torch.dtype

    @classmethod
    def of(cls, q: Tensor, k: Tensor, log_decay: Tensor, low: torch.dtype) -> _Chunks:
        """Split queries, keys and log decays of whole sequences into chunks."""
        size = chunk_shape(q.shape[1], longest_chunk(q.shape[2]))[1]
        q, k = (_split(part.to(low).unsqueeze(2), size).squeeze(2) for part in (q, k))
        return cls(q, k, _split(log_decay.unsqueeze(-1), size).squeeze(-1).cumsum(-1), low)

    def split(self, x: Tensor) -> Tensor:
        """Split x (batch, length, heads, width) into chunks, (chunks, batch, heads, size, width).

        The result has the precision of products.
        """
        return _split(x.to(self.low), self.q.shape[2])

    def pairwise_decay(self) -> Tensor:
        """Return the decay factor from each key to each query, (…, heads, size, size), which is at most 1."""
        exponent = self.total.unsqueeze(-1) - self.total.unsqueeze(-2)
        return exponent.clamp(_LEAST_EXPONENT, 0.0).exp()

    def weights(self, decay: Tensor) -> Tensor:
        """Return query-key products times `decay`, (…, heads, size, size); zero for keys after the query."""
        return (decay * _hide_later(self.q @ self.k.mT).unsqueeze(2)).to(self.low)

    def decay_to_end(self, count: int) -> Tensor:
        """Return the decay from each position to the end of its chunk, (…, size, heads, 1).

        The result has the first `count` chunks.
        """
        return _decay(self.total[:count, ..., -1:] - self.total[:count])

    def decay_of_chunk(self) -> Tensor:
        """Return the factor by which a state decays over each whole chunk, (…, 1, heads, 1).

        It multiplies the state before the chunk.
        """
        return _decay(self.total[..., -1:])

    def decay_from_start(self, first: int) -> Tensor:
        """Return the decay from each chunk's start to each position, (…, size, heads, 1).

        The result has the chunks from `first` on.
        """
        return _decay(self.total[first:])

    def left_values(self, values: Tensor, count: int) -> Tensor:
        """Return the values, decayed to the end of their chunk, (…, size, heads * values).

        Only the first `count` chunks are computed.
        """
        return (_by_size(values[:count]) * self.decay_to_end(count)).to(self.low).flatten(-2)


def _within_gradients(chunks: _Chunks, values: Tensor, grad_reads: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of queries, keys and values within each chunk.

    They come from pairs of positions in the same chunk.
    """
    decay = chunks.pairwise_decay()
    grad_scores = _hide_later((grad_reads @ values.mT * decay).sum(2)).to(chunks.low)
    grad_values = (chunks.weights(decay).mT @ grad_reads).transpose(2, 3)
    return grad_scores @ chunks.k, grad_scores.mT @ chunks.q, grad_values


def _decay_gradient(grown: Tensor, grad_states: Tensor | None, states: Tensor, size: int) -> Tensor:
    """Return the gradient of log decays, (batch, length, heads).

    `grown` is the gradient of the running sums of log decays, without the contribution of the states after
    chunks, which is added here.
    """
    length = grown.shape[1]
    if grad_states is not None:
        ends = (grad_states * states).sum((2, 4)).transpose(0, 1)  # (batch, chunks, heads)
        parts = functional.pad(grown, (0, 0, 0, -length % size)).unflatten(1, (-1, size))
        ends = functional.pad(ends, (0, 0, 0, parts.shape[1] - ends.shape[1])).unsqueeze(2)
        grown = torch.cat([parts[:, :, :-1], parts[:, :, -1:] + ends], 2).flatten(1, 2)
    # a log decay is part of the running sums of its own and all later positions
    return grown.flip(1).cumsum(1).flip(1)[:, :length]


def _propagate(written: Tensor, decay: Tensor, state: Tensor | None) -> Tensor:
    """Return the state after each chunk.

    `written` is what each chunk adds to the state, and `state` is the initial state.
    """
    found: list[Tensor] = []
    for place, added in enumerate(written.to(decay.dtype).unbind(0)):
        state = added if state is None else torch.addcmul(added, state, decay[place])
        found.append(state)
    return torch.stack(found) if found else written


def _propagate_gradients(
    grad_before: Tensor, grad_states: Tensor | None, decay: Tensor, states: Tensor, first: int
) -> tuple[Tensor | None, Tensor]:
    """Return the gradients of the initial state and of the state after each chunk.

    The first is None if there is no initial state. `grad_before` are the gradients that the outputs give to
    the states before chunks, from the chunk `first` on. `grad_states` are the gradients of the returned
    states.
    """
    found: list[Tensor] = []
    grad_before = grad_before.to(decay.dtype)
    for place in reversed(range(first, len(states) + 1)):  # from the last chunk to the first
        now = grad_before[place - first] if place - first < len(grad_before) else torch.zeros_like(states[0])
        if place and grad_states is not None:
            now = now + grad_states[place - 1]
        found.append(torch.addcmul(now, found[-1], decay[place]) if found else now)
    grad_state = None if first else found.pop()
    return grad_state, torch.stack(found[::-1]) if found else states


def _before(states: Tensor, state: Tensor | None, count: int) -> tuple[Tensor, int]:
    inner = states[: count - 1]
    return (inner, 1) if state is None else (torch.cat([state.unsqueeze(0), inner]), 0)


def _split(x: Tensor, size: int) -> Tensor:
    """Reshape (batch, length, heads, width) to (chunks, batch, heads, size, width), padded with zeros."""
    missing = -x.shape[1] % size
    padded = functional.pad(x, (0, 0, 0, 0, 0, missing)) if missing else x
    return padded.unflatten(1, (-1, size)).permute(1, 0, 3, 2, 4).contiguous()


def _join(x: Tensor, length: int) -> Tensor:
    """Reshape (chunks, batch, size, heads, width) to (batch, length, heads, width)."""
    return x.transpose(0, 1).flatten(1, 2)[:, :length]


def _by_size(x: Tensor) -> Tensor:
    """Reshape (…, heads, size, width) to (…, size, heads, width), as a copy."""
    return x.transpose(2, 3).contiguous()


def _hide_later(scores: Tensor) -> Tensor:
    """Set the scores (…, queries, keys) to zero, in place, where the key comes after the query."""
    return scores.mul_(torch.ones(scores.shape[-2:], dtype=scores.dtype, device=scores.device).tril())


def _decay(exponent: Tensor) -> Tensor:
    """Return exp(`exponent`), rearranged from (…, heads, size) to (…, size, heads, 1)."""
    return exponent.clamp(min=_LEAST_EXPONENT).exp().mT.unsqueeze(-1)
