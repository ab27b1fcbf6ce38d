"""Recurrent blocks whose state is a sum of products of keys and values.

Decays or gates may reduce older products.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from ....grammar.vocabulary.spec import Settings, as_bool, as_int, as_word
from ...core.block import Context, register_block
from ...core.initialisation import Initialisable, Linear, WeightRole, roles
from ...core.operations import at_least_single
from ..head_parts import turn
from .chunked_recurrence import (
    LEAST_LOG_DECAY,
    add_states,
    join_chunks,
    longest_chunk,
    propagate_states,
    rescale,
    run_in_chunks,
    run_vector_decays,
    split_chunks,
)
from .recurrent_heads import HeadRates, LinearRecurrence

GATE_RANK, GATE_TEMPERATURE = 16, 16.0
"""The rank of the maps to the decays of `gla`, and the degree of the root that is taken of them."""


@register_block("linear_attn")
class LinearAttention(LinearRecurrence):
    """Block `linear_attn`: attention with features φ instead of a softmax (Katharopoulos et al. 2020).

    S_t = S_{t−1} + φ(k_t) v_tᵀ, y_t = S_tᵀ φ(q_t) / (φ(q_t)ᵀ Σ_{s≤t} φ(k_s)).
    """

    epsilon: ClassVar[float] = 1e-6

    def __init__(self, settings: Settings, context: Context) -> None:
        super().__init__(settings, context)
        self.feature = as_word(settings, "feature")

    def recur(
        self, x: Tensor, qk: Tensor, v: Tensor, state: Tensor | None, *, keep: bool
    ) -> tuple[Tensor, Tensor | None]:
        q, k = self.features(qk).unbind(2)
        y, last = run_in_chunks(q, k, functional.pad(v, (0, 1), value=1.0), None, state, keep=keep)
        return y[..., :-1] / (y[..., -1:] + self.epsilon), last

    def features(self, x: Tensor) -> Tensor:
        """Return the features φ(x) of queries or keys x. No feature is negative."""
        return functional.elu(x) + 1.0 if self.feature == "elu" else x.clamp(min=0.0)


@register_block("retention")
class Retention(LinearRecurrence):
    """Block `retention`: S_t = γ_h S_{t−1} + k_t v_tᵀ, with a fixed decay γ_h for each head.

    Queries and keys are rotated by angles that depend on the position. Sun et al. 2023, equation 5. The state
    is rotated back, so that the next position counts as the first one and positions need no numbers, however
    long a stream is.
    """

    def __init__(self, settings: Settings, context: Context) -> None:
        super().__init__(settings, context)
        self.rotate = as_bool(settings, "rotate")

    def recur(
        self, x: Tensor, qk: Tensor, v: Tensor, state: Tensor | None, *, keep: bool
    ) -> tuple[Tensor, Tensor | None]:
        length = x.shape[1]
        angles = 1e4 ** -(_arange(0, self.head_width, x, step=2) / self.head_width)
        if self.rotate:
            qk = turn(qk, (_arange(0, length, x)[:, None] * angles)[:, None, None])
        q, k = qk.unbind(2)
        log_decay = torch.log1p(-(2.0 ** (-5.0 - _arange(0, self.heads, x))))
        log_decay = log_decay.to(v.dtype).expand(1, length, -1)
        y, last = run_in_chunks(q * self.head_width**-0.5, k, v, log_decay, state, keep=keep)
        if last is not None and self.rotate:
            last = turn(last.transpose(-1, -2), -length * angles).transpose(-1, -2)
        return y, last


def _arange(low: int, high: int, x: Tensor, *, step: int = 1) -> Tensor:
    return torch.arange(low, high, step, device=x.device, dtype=torch.float64)


@register_block("gla")
class GatedLinearAttention(LinearRecurrence):
    """Block `gla`: linear attention with a decay for each key channel (Yang et al. 2024).

    S_t = diag(α_t) S_{t−1} + k_t v_tᵀ, α_t = σ(W₂ W₁ x_t + b)^(1/16), at least e⁻⁵.
    """

    def __init__(self, settings: Settings, context: Context) -> None:
        super().__init__(settings, context)
        inner = self.heads * self.head_width
        self.decay = nn.Sequential(
            Linear(context.width, GATE_RANK, bias=False), Linear(GATE_RANK, inner, bias=True)
        )

    def recur(
        self, x: Tensor, qk: Tensor, v: Tensor, state: Tensor | None, *, keep: bool
    ) -> tuple[Tensor, Tensor | None]:
        lost = functional.softplus(-self.decay(x).to(v.dtype)) / GATE_TEMPERATURE
        log_decay = -lost.clamp(max=-LEAST_LOG_DECAY)
        q, k = qk.unbind(2)
        log_decay = log_decay.unflatten(2, (self.heads, -1))
        return run_vector_decays(q * self.head_width**-0.5, k, v, log_decay, state, keep=keep)


@register_block("ssd")
class StateSpaceDuality(LinearRecurrence):
    """Block `ssd`: the recurrence of Mamba-2, where heads share keys and queries (Dao and Gu 2024).

    S_t = exp(−exp(A_h) Δ_t) S_{t−1} + Δ_t k_t v_tᵀ.
    """

    weight_roles = roles(skip=WeightRole.GAIN)

    def __init__(self, settings: Settings, context: Context) -> None:
        super().__init__(settings, context, shared_keys=as_int(settings, "state"))
        self.rates = HeadRates(context.width, self.heads, context.config.settings.attention_std)
        self.skip = nn.Parameter(torch.ones(self.heads))

    def recur(
        self, x: Tensor, qk: Tensor, v: Tensor, state: Tensor | None, *, keep: bool
    ) -> tuple[Tensor, Tensor | None]:
        steps = self.rates.steps(x)
        q, k = qk.unbind(2)  # (batch, length, 1, state), the same for all heads
        written, log_decay = v * steps.unsqueeze(-1), self.rates.log_decays(steps)
        y, last = run_in_chunks(q, k, written, log_decay, state, keep=keep)
        return v * self.skip.unsqueeze(-1) + y, last


class ExponentialGates(Initialisable):
    """Map from the input to the logarithms of each `mlstm` head's input gate and forget gate.

    The forget gate is a sigmoid with offsets evenly spaced from 3 to 6, or an exponential with offsets 0; the
    input gate's offsets are drawn as N(0, 0.1²).
    """

    weight_roles = roles(input_offset=WeightRole.BIAS, forget_offset=WeightRole.BIAS)

    def __init__(self, width: int, heads: int, std: float | None, *, bounded: bool) -> None:
        super().__init__()
        self.bounded = bounded
        self.map = Linear(width, heads, bias=False, maps=2, std=std)
        self.input_offset = nn.Parameter(torch.empty(heads))
        self.forget_offset = nn.Parameter(torch.empty(heads))

    def initialise(self, generator: torch.Generator | None) -> None:
        nn.init.normal_(self.input_offset, std=0.1, generator=generator)
        with torch.no_grad():
            begin = torch.linspace(3.0, 6.0, len(self.forget_offset))
            self.forget_offset.copy_(begin if self.bounded else torch.zeros_like(begin))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the logarithms of the input gates and forget gates, (batch, length, heads) each."""
        written, forgotten = self.map(x).chunk(2, -1)
        log_input, raw = written + self.input_offset, forgotten + self.forget_offset
        return log_input, functional.logsigmoid(raw) if self.bounded else raw


def run_stabilised(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    log_input: Tensor,
    log_forget: Tensor,
    state: tuple[Tensor, Tensor] | None = None,
    keep: bool = True,
) -> tuple[Tensor, Tensor, tuple[Tensor, Tensor] | None]:
    """Run the recurrence of MatrixLSTM in chunks, without overflow.

    Return the outputs (batch, length, heads, values), their stabilisers and, with `keep`, the last state. q
    and k are (batch, length, heads, keys), v (batch, length, heads, values), the gates (batch, length,
    heads). A state is the memory (batch, heads, keys, values) and its stabiliser (batch, heads). Outputs and
    memory are divided by the exponential of the stabiliser.
    """
    length, most_positions = q.shape[1], longest_chunk(q.shape[3])
    q, k, v = (split_chunks(each, most_positions) for each in (q, k, v))  # (chunks, batch, heads, size, ·)
    gates = at_least_single(torch.stack([log_forget, log_input], -1))
    forgotten, written = split_chunks(gates, most_positions).unbind(-1)  # (chunks, batch, heads, size)
    total = forgotten.cumsum(-1)
    pairs = _pairs(total, written)
    left = total[..., -1:] - total + written  # log weight of each write at the end of its chunk
    with torch.no_grad():  # stabilisers cancel in the result, so they need no gradient
        all_stable = _stabilisers(total[..., -1], left.amax(-1), None if state is None else state[1])
        before, behind = all_stable[:-1], all_stable[1:]
        most = torch.maximum(pairs.amax(-1), before.unsqueeze(-1) + total)
    within = rescale(q @ k.transpose(-1, -2), (pairs - most.unsqueeze(-1)).exp()) @ v
    count = len(q) if keep else len(q) - 1
    shares = (left[:count] - behind[:count].unsqueeze(-1)).exp().unsqueeze(-1)
    added = rescale(k[:count], shares).transpose(-1, -2) @ v[:count]
    kept = before[:count] + total[:count, ..., -1] - behind[:count]
    states, last = propagate_states(
        added, kept[..., None, None], None if state is None else state[0], keep=keep
    )
    first = len(q) - len(states)
    read = (before[first:].unsqueeze(-1) + total[first:] - most[first:]).exp()
    within = add_states(within, q[first:] * read.unsqueeze(-1), states)
    stabiliser = join_chunks(most.unsqueeze(-1), length).squeeze(-1)
    return join_chunks(within, length), stabiliser, None if last is None else (last, behind[-1])


def _pairs(total: Tensor, written: Tensor) -> Tensor:
    """Return the log weight of each write at each later position, (…, size, size)."""
    size = total.shape[-1]
    later = torch.ones(size, size, dtype=torch.bool, device=total.device).triu(1)
    return (total.unsqueeze(-1) + (written - total).unsqueeze(-2)).masked_fill(later, -torch.inf)


def _stabilisers(end: Tensor, written: Tensor, start: Tensor | None) -> Tensor:
    """Return the largest log weight of the states before each chunk and after the last one.

    For each chunk, `end` is the sum of its log forget gates, `written` the largest logarithm of its own
    writes.
    """
    found = [torch.full_like(end[0], -torch.inf) if start is None else start]
    for left, most in zip(end.unbind(0), written.unbind(0), strict=True):
        found.append(torch.maximum(most, left + found[-1]))
    return torch.stack(found)


@register_block("mlstm")
class MatrixLSTM(LinearRecurrence):
    """Block `mlstm`: the matrix memory of the xLSTM, with exponential gates (Beck et al. 2024).

    C_t = f_t C_{t−1} + i_t k_t v_tᵀ, y_t = C_tᵀ q_t / max(|n_tᵀ q_t|, 1).
    """

    def __init__(self, settings: Settings, context: Context) -> None:
        super().__init__(settings, context)
        std, bounded = context.config.settings.attention_std, as_word(settings, "forget") == "sigmoid"
        self.gates = ExponentialGates(context.width, self.heads, std, bounded=bounded)

    def split_state(self, state: Tensor) -> Tensor:
        """Reshape the flat state to (batch, heads, ·): the memory, the sum of keys, and the stabiliser."""
        return state.unflatten(1, (self.heads, -1))

    def recur(
        self, x: Tensor, qk: Tensor, v: Tensor, state: Tensor | None, *, keep: bool
    ) -> tuple[Tensor, Tensor | None]:
        q, k = qk.unbind(2)
        log_input, log_forget = (each.to(x.dtype) for each in self.gates(x))
        held = None
        if state is not None:
            held = (state[..., :-1].unflatten(2, (self.key_width, -1)), state[..., -1])
        y, stabiliser, last = run_stabilised(
            q,
            k * self.head_width**-0.5,
            functional.pad(v, (0, 1), value=1.0),
            log_input=log_input,
            log_forget=log_forget,
            state=held,
            keep=keep,
        )
        read = y[..., :-1] / torch.maximum(y[..., -1:].abs(), (-stabiliser).exp().unsqueeze(-1))
        read = read.to(x.dtype)
        if last is None:
            return read, None
        return read, torch.cat([last[0].flatten(2), last[1].unsqueeze(-1)], -1)
