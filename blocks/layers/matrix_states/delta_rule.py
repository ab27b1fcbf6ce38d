"""Recurrent blocks of the delta rule.

The value stored under a key moves towards a new value. The blocks are computed in chunks of positions. `kda`
has a decay for each key channel; `rwkv7` writes at other keys than it removes. The writes of a chunk's
positions depend on each other by a unit triangular system, which is solved once per chunk (Yang et al. 2024,
section 3.2; Yang, Kautz and Hatamizadeh 2025, section 3.3).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from ....grammar.vocabulary.spec import Settings, as_bool, as_int
from ...core.block import BuildError, Context, register_block
from ...core.initialisation import Initialisable, Linear, WeightRole, roles
from ...core.operations import at_least_single
from ..head_parts import inverse_norm
from .chunked_recurrence import (
    LEAST_LOG_DECAY,
    MAX_VECTOR_CHUNK_LENGTH,
    join_chunks,
    pairwise_decay,
    split_chunks,
)
from .recurrent_heads import KEY_EPSILON, HeadRates, LinearRecurrence, draw_rates, draw_step_offsets

MAX_DELTA_CHUNK_LENGTH = 32
"""The maximum chunk length; longer sequences are split into chunks of nearly equal size."""


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
    """Run the recurrence of DeltaRule in chunks.

    Return the outputs (batch, length, heads, values) and, with `keep`, the last state.

    - q is (batch, length, heads, keys).
    - k and v are (batch, length, heads, writes, keys or values); each position makes its writes one by one.
    - `beta` is (batch, length, heads, writes).
    - `log_decay` is (batch, length, heads) and applies before the first write of a position.

    Without a `state`, the recurrence begins at zero.
    """
    # a chunk has one row for each write, so several writes per position leave room for fewer positions
    length, writes, most = q.shape[1], k.shape[3], max(1, MAX_DELTA_CHUNK_LENGTH // k.shape[3])
    q = split_chunks(q, most)  # (chunks, batch, heads, size, keys)
    k, v, beta = (_split_writes(each, most) for each in (k, v, beta.unsqueeze(-1)))  # size * writes rows
    scaled = k * beta
    triangle, weights = scaled @ k.transpose(-1, -2), q @ k.transpose(-1, -2)
    total = grown = None
    if log_decay is None:
        weights = _hide_later(weights, writes)
    else:
        total = split_chunks(at_least_single(log_decay).unsqueeze(-1), most).cumsum(-2)
        total = total.repeat_interleave(writes, -2)
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
    """Split (batch, length, heads, writes, width) into chunks with a row for each write."""
    chunks = split_chunks(x.flatten(3), most)
    return chunks.unflatten(-1, x.shape[3:]).flatten(-3, -2)


def _hide_later(weights: Tensor, writes: int) -> Tensor:
    """Set the weights (…, size, size * writes) of writes after the query's position to zero."""
    if writes == 1:
        return weights.tril()
    rows, columns = weights.shape[-2:]
    place = torch.arange(columns, device=weights.device) // writes
    return weights.masked_fill(place > torch.arange(rows, device=weights.device)[:, None], 0.0)


def solve_unit_triangle(triangle: Tensor, wanted: Tensor, read: Tensor) -> tuple[Tensor, Tensor]:
    """Solve two systems with the same unit lower triangular matrix T.

    They are T x = `wanted` and T x = `read`. T has ones on its diagonal and `triangle` below it. Both
    solutions are (…, size, ·).
    """
    solved = torch.linalg.solve_triangular(
        at_least_single(triangle),
        at_least_single(torch.cat([wanted, read], -1)),
        upper=False,
        unitriangular=True,
    )
    return solved[..., : wanted.shape[-1]], solved[..., wanted.shape[-1] :]


def _next_state(k: Tensor, new: Tensor, total: Tensor | None, state: Tensor | None) -> Tensor:
    """Return the decayed state before the chunk, plus Σ k_t new_tᵀ; `total` sums up log decays."""
    if total is None:
        written = at_least_single(k.transpose(-1, -2) @ new)
        return written if state is None else state + written
    end = total[..., -1:, :]
    written = at_least_single((k * (end - total).exp()).transpose(-1, -2) @ new)
    return written if state is None else state * end.exp() + written


@register_block("delta")
@register_block("delta_product")
class DeltaRule(LinearRecurrence):
    """Block `delta`: the value stored under a key moves towards its new value (Yang et al. 2024).

    S_t = a_t (I − β_t k_t k_tᵀ) S_{t−1} + β_t k_t v_tᵀ (a_t: Yang et al. 2025). In the block `delta_product`
    each position writes `n` keys and values, one after the other (Siems et al. 2025).
    """

    def __init__(self, settings: Settings, context: Context) -> None:
        super().__init__(settings, context, writes=as_int(settings, "n") if "n" in settings else 1)
        std = context.config.settings.attention_std
        self.beta = Linear(context.width, self.heads, bias=False, maps=self.writes, std=std)
        self.rates = HeadRates(context.width, self.heads, std) if as_bool(settings, "gate") else None
        self.most = 2.0 if as_bool(settings, "negative") else 1.0

    def recur(
        self, x: Tensor, qk: Tensor, v: Tensor, state: Tensor | None, *, keep: bool
    ) -> tuple[Tensor, Tensor | None]:
        beta = torch.sigmoid(self.beta(x).to(v.dtype)) * self.most
        log_decay = None if self.rates is None else self.rates(x)
        q, k = qk[:, :, 0] * self.head_width**-0.5, qk[:, :, 1:].transpose(2, 3)
        v, beta = (each.unflatten(2, (self.writes, self.heads)).transpose(2, 3) for each in (v, beta))
        return run_delta_rule(q, k, v, beta, log_decay=log_decay, state=state, keep=keep)


RWKV_RANK = 32
"""The rank of the maps to the decays and the learning rates of `rwkv7`."""


def run_vector_delta(
    q: Tensor,
    read: Tensor,
    p: Tensor,
    log_decay: Tensor,
    *,
    values: Tensor | None = None,
    written: tuple[Tensor, Tensor] | None = None,
    state: Tensor | None = None,
    keep: bool = True,
) -> tuple[Tensor, Tensor | None]:
    """Run a delta rule with a separate decay for each key channel.

    Return the outputs (batch, length, heads, values) and, with `keep`, the last state.

    - With `values` c: S_t = diag(α_t) S_{t−1} + p_t (c_t − r_tᵀ diag(α_t) S_{t−1}).
    - With `written` keys k and values v: S_t = diag(α_t) S_{t−1} − p_t r_tᵀ S_{t−1} + k_t v_tᵀ.

    All arguments are (batch, length, heads, ·). Within a chunk the writes are divided by decays. So the
    logarithms of these decays must add up to at least about −80.
    """
    length = q.shape[1]
    q, read, p, steps = (split_chunks(each, MAX_VECTOR_CHUNK_LENGTH) for each in (q, read, p, log_decay))
    total = at_least_single(steps).cumsum(-2)
    grown, shrunk = total.exp(), (-total).exp()
    q, p = q * grown, p * shrunk
    read = read * (grown if written is None else (total - steps).exp())
    added = None
    if written is None:
        assert values is not None
        wanted, weights = split_chunks(values, MAX_VECTOR_CHUNK_LENGTH), (q @ p.transpose(-1, -2)).tril()
    else:
        k, v = (split_chunks(each, MAX_VECTOR_CHUNK_LENGTH) for each in written)
        k = k * shrunk
        wanted, weights = -((read @ k.transpose(-1, -2)).tril(-1) @ v), (q @ p.transpose(-1, -2)).tril()
        count = len(k) if keep else len(k) - 1
        added = (q @ k.transpose(-1, -2)).tril() @ v, k[:count].transpose(-1, -2) @ v[:count]
    new, erased = solve_unit_triangle(read @ p.transpose(-1, -2), wanted, read)
    outputs: list[Tensor] = []
    for place in range(len(q)):
        moved = new[place] if state is None else new[place] - erased[place] @ state
        y = weights[place] @ moved
        y = y if added is None else y + added[0][place]
        outputs.append(y if state is None else y + q[place] @ state)
        if keep or place < len(q) - 1:
            held = at_least_single(p[place].transpose(-1, -2) @ moved)
            held = held if added is None else held + added[1][place]
            held = held if state is None else held + state
            state = held * grown[place, ..., -1:, :].transpose(-1, -2)
    return join_chunks(torch.stack(outputs), length), state if keep else None


class ChannelRates(Initialisable):
    """Map from the input to the log decay of each channel.

    It is −exp(A_h) · softplus(W₂ W₁ x + b), at least −5. A and b are initialised as in `HeadRates`.
    """

    weight_roles = roles(log_rate=WeightRole.RATE, step_offset=WeightRole.RATE)

    def __init__(self, width: int, heads: int, head_width: int) -> None:
        super().__init__()
        self.map = nn.Sequential(
            Linear(width, head_width, bias=False), Linear(head_width, heads * head_width, bias=False)
        )
        self.log_rate = nn.Parameter(torch.empty(heads, 1))
        self.step_offset = nn.Parameter(torch.empty(heads, head_width))

    def initialise(self, generator: torch.Generator | None) -> None:
        draw_rates(self.log_rate, generator)
        draw_step_offsets(self.step_offset, generator)

    def forward(self, x: Tensor) -> Tensor:
        """Return the logarithm of each channel's decay, (batch, length, heads, head_width).

        Raise BuildError in float16, whose range is too small for the decays of a chunk.
        """
        mapped = self.map(x).unflatten(2, self.step_offset.shape)
        if mapped.dtype == torch.float16:
            raise BuildError("expected bfloat16, float32 or float64 for decays, got float16: use bfloat16")
        return -(functional.softplus(mapped + self.step_offset) * self.log_rate.exp()).clamp(
            max=-LEAST_LOG_DECAY
        )


@register_block("kda")
class KimiDeltaAttention(LinearRecurrence):
    """Block `kda`: the delta rule with a decay for each key channel (Kimi Team 2025, equation 1).

    S_t = (I − β_t k_t k_tᵀ) diag(α_t) S_{t−1} + β_t k_t v_tᵀ.
    """

    def __init__(self, settings: Settings, context: Context) -> None:
        super().__init__(settings, context)
        self.beta = Linear(context.width, self.heads, bias=False, std=context.config.settings.attention_std)
        self.rates = ChannelRates(context.width, self.heads, self.head_width)

    def recur(
        self, x: Tensor, qk: Tensor, v: Tensor, state: Tensor | None, *, keep: bool
    ) -> tuple[Tensor, Tensor | None]:
        beta = torch.sigmoid(self.beta(x).to(v.dtype)).unsqueeze(-1)
        q, k = qk.unbind(2)
        q, log_decay = q * self.head_width**-0.5, self.rates(x)
        return run_vector_delta(q, k * beta, k, log_decay, values=v * beta, state=state, keep=keep)


class RwkvGates(Initialisable):
    """The decays, learning rates and key weights of `rwkv7`.

    The decays and learning rates of each channel are computed from the input. The weights of keys, `removal`,
    `replacement` and `bonus`, are trained numbers for each channel. Initial decays range from slow to fast
    over the channels, as in the program of the authors.
    """

    weight_roles = roles(
        decay_offset=WeightRole.RATE,
        rate_offset=WeightRole.RATE,
        removal=WeightRole.GAIN,
        replacement=WeightRole.GAIN,
        bonus=WeightRole.GAIN,
    )

    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.decay_in, self.decay_out = (
            Linear(width, RWKV_RANK, bias=False),
            Linear(RWKV_RANK, inner, bias=False),
        )
        self.rate_in, self.rate_out = (
            Linear(width, RWKV_RANK, bias=False),
            Linear(RWKV_RANK, inner, bias=False),
        )
        self.decay_offset = nn.Parameter(torch.empty(inner))
        self.rate_offset = nn.Parameter(torch.empty(inner))
        self.removal = nn.Parameter(torch.empty(inner))
        self.replacement = nn.Parameter(torch.empty(inner))
        self.bonus = nn.Parameter(torch.empty(inner))

    def initialise(self, generator: torch.Generator | None) -> None:
        """Draw `bonus` from N(0, 0.1²), and set the others; the linear maps draw their own weights."""
        nn.init.normal_(self.bonus, std=0.1, generator=generator)
        nn.init.zeros_(self.rate_offset)
        nn.init.constant_(self.removal, 0.85)
        nn.init.ones_(self.replacement)
        with torch.no_grad():
            self.decay_offset.copy_(torch.linspace(-6.5, -1.5, len(self.decay_offset)))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the log decays and the learning rates, (batch, length, inner) each."""
        decay = self.decay_out(torch.tanh(self.decay_in(x))) + self.decay_offset
        rate = self.rate_out(self.rate_in(x)) + self.rate_offset
        return -math.exp(-0.5) * torch.sigmoid(decay), torch.sigmoid(rate)


@register_block("rwkv7")
class Rwkv7(LinearRecurrence):
    """Block `rwkv7`: a delta rule that removes at one key and writes at another (Peng et al. 2025).

    S_t = (diag(w_t) − (a_t ⊙ κ_t) κ_tᵀ) S_{t−1} + k̃_t v_tᵀ, equations 13 to 20.
    """

    def __init__(self, settings: Settings, context: Context) -> None:
        super().__init__(settings, context)
        self.gates = RwkvGates(context.width, self.heads * self.head_width)

    def recur(
        self, x: Tensor, qk: Tensor, v: Tensor, state: Tensor | None, *, keep: bool
    ) -> tuple[Tensor, Tensor | None]:
        q, k = qk.unbind(2)
        gates = self.gates
        log_decay, rate = (each.to(x.dtype).unflatten(2, (self.heads, -1)) for each in gates(x))
        removal, replacement, bonus = (
            each.unflatten(0, (self.heads, -1)) for each in (gates.removal, gates.replacement, gates.bonus)
        )
        removed = k * removal
        removed = removed * inverse_norm(removed, KEY_EPSILON)
        k = k * (1.0 + (rate - 1.0) * replacement)
        taken, written = removed * rate, (k, v)
        y, last = run_vector_delta(q, removed, taken, log_decay, written=written, state=state, keep=keep)
        # the bonus: each position also reads its own value with separate weights
        return y + (q * k * bonus).sum(-1, keepdim=True) * v, last
