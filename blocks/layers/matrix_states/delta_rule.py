"""S_t = a_t (I − β_t k_t k_tᵀ) S_{t−1} + β_t k_t v_tᵀ for all positions: the delta rule, in chunks.

What the positions of a chunk write depends on each other by a unit triangular system, which is solved once
for each chunk (Yang et al. 2024, section 3.2; Yang, Kautz and Hatamizadeh 2025, section 3.3).
"""

from __future__ import annotations

import torch
from torch import Tensor

from ....grammar.vocabulary.spec import Settings, as_bool, as_int
from ...core.block import Context, register_block
from ...core.initialisation import Linear
from ..kernels.choice import with_kernel
from ..kernels.recurrences import delta_rule
from .chunked_recurrence import join_chunks, pairwise_decay, split_chunks
from .recurrent_heads import HeadRates, LinearRecurrence

MAX_DELTA_CHUNK_LENGTH = 32
"""A longer sequence is computed in chunks of about one size, none longer than this."""


@with_kernel(delta_rule)
def run_delta_rule(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    beta: Tensor,
    *,
    log_decay: Tensor | None = None,
    state: Tensor | None = None,
    keep: bool = True,
) -> tuple[Tensor, Tensor | None]:
    """Return outputs (batch, length, heads, values), and the last state, if to `keep`.

    q is (batch, length, heads, keys), k and v (batch, length, heads, writes, keys or values), `beta`
    (batch, length, heads, writes), one write after the other at each position, and `log_decay`, in front of
    the first, (batch, length, heads). Without a `state` it begins at zero.
    """
    length, writes, most = q.shape[1], k.shape[3], max(1, MAX_DELTA_CHUNK_LENGTH // k.shape[3])
    q = split_chunks(q, most)  # (chunks, batch, heads, size, keys)
    k, v, beta = (_split_writes(each, most) for each in (k, v, beta.unsqueeze(-1)))  # size * writes rows
    scaled = k * beta
    triangle, weights = scaled @ k.transpose(-1, -2), q @ k.transpose(-1, -2)
    total = grown = None
    if log_decay is None:
        weights = _hide_later(weights, writes)
    else:
        total = split_chunks(log_decay.unsqueeze(-1), most).cumsum(-2).repeat_interleave(writes, -2)
        decay = pairwise_decay(total.squeeze(-1))
        grown = total.exp()
        triangle, scaled = triangle * decay, scaled * grown
        weights, grown = weights * decay[..., writes - 1 :: writes, :], grown[..., ::writes, :]
    values, erased = solve_unit_triangle(triangle, v * beta, scaled)
    outputs: list[Tensor] = []
    for place in range(len(q)):
        new = values[place] if state is None else values[place] - erased[place] @ state
        y = weights[place] @ new
        if state is not None:
            y = y + (q[place] if grown is None else q[place] * grown[place]) @ state
        outputs.append(y)
        if keep or place < len(q) - 1:
            state = _next_state(k[place], new, None if total is None else total[place], state)
    return join_chunks(torch.stack(outputs), length), state if keep else None


def _split_writes(x: Tensor, most: int) -> Tensor:
    """Split (batch, length, heads, writes, width) into chunks, with a row for each write."""
    chunks = split_chunks(x.flatten(3), most)
    return chunks.unflatten(-1, x.shape[3:]).flatten(-3, -2)


def _hide_later(weights: Tensor, writes: int) -> Tensor:
    """Return the weights (…, size, size * writes) of queries, zero at what is written later."""
    if writes == 1:
        return weights.tril()
    rows, columns = weights.shape[-2:]
    place = torch.arange(columns, device=weights.device) // writes
    return weights.masked_fill(place > torch.arange(rows, device=weights.device)[:, None], 0.0)


def solve_unit_triangle(triangle: Tensor, wanted: Tensor, read: Tensor) -> tuple[Tensor, Tensor]:
    """Return T⁻¹ of both, (…, size, ·), T the `triangle` below its diagonal, with ones on it."""
    solved = torch.linalg.solve_triangular(
        _at_least_single(triangle),
        _at_least_single(torch.cat([wanted, read], -1)),
        upper=False,
        unitriangular=True,
    )
    return solved[..., : wanted.shape[-1]], solved[..., wanted.shape[-1] :]


def _at_least_single(x: Tensor) -> Tensor:
    """Return x in single precision if it is in half, which no solver takes."""
    return x.float() if x.dtype in (torch.bfloat16, torch.float16) else x


def _next_state(k: Tensor, new: Tensor, total: Tensor | None, state: Tensor | None) -> Tensor:
    """Return the state behind a chunk that wrote `new` values at its keys, (batch, heads, size, ·)."""
    if total is None:
        written = k.transpose(-1, -2) @ new
        return written if state is None else state + written
    end = total[..., -1:, :]
    written = (k * (end - total).exp()).transpose(-1, -2) @ new
    return written if state is None else state * end.exp() + written


@register_block("delta")
class DeltaRule(LinearRecurrence):
    """S_t = a_t (I − β_t k_t k_tᵀ) S_{t−1} + β_t k_t v_tᵀ (Yang et al. 2024; a_t: Yang et al. 2025)."""

    def __init__(self, settings: Settings, context: Context) -> None:
        super().__init__(settings, context, writes=self.count_writes(settings))
        std = context.config.attention_std
        self.beta = Linear(context.width, self.heads, bias=False, maps=self.writes, std=std)
        self.rates = HeadRates(context.width, self.heads, std) if as_bool(settings, "gate") else None
        self.most = 2.0 if as_bool(settings, "negative") else 1.0

    @staticmethod
    def count_writes(settings: Settings) -> int:
        """Return the number of keys that a position writes at."""
        return 1

    def recur(
        self, x: Tensor, qk: Tensor, v: Tensor, state: Tensor | None, *, keep: bool
    ) -> tuple[Tensor, Tensor | None]:
        beta = torch.sigmoid(self.beta(x).to(v.dtype)) * self.most
        log_decay = None if self.rates is None else self.rates(x)
        q, k = qk[:, :, 0] * self.head_width**-0.5, qk[:, :, 1:].transpose(2, 3)
        v, beta = (each.unflatten(2, (self.writes, self.heads)).transpose(2, 3) for each in (v, beta))
        return run_delta_rule(q, k, v, beta, log_decay=log_decay, state=state, keep=keep)


@register_block("delta_product")
class DeltaProduct(DeltaRule):
    """The delta rule with several keys and values at each position (Siems et al. 2025)."""

    @staticmethod
    def count_writes(settings: Settings) -> int:
        return as_int(settings, "n")
