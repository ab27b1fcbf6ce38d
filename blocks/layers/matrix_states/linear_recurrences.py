"""Heads whose state is a sum of keys times values, plain or decaying, with or without gates."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from ....grammar.vocabulary.spec import Settings, as_bool, as_int, as_word
from ...core.block import Context, register_block
from ...core.initialisation import Linear, WeightRole, roles
from ..head_parts import turn
from .chunked_recurrence import LEAST_LOG_DECAY, run_in_chunks, run_vector_decays
from .recurrent_heads import HeadRates, LinearRecurrence
from .shared_key_sums import sum_with_shared_keys

GATE_RANK, GATE_TEMPERATURE = 16, 16.0
"""The rank of the maps to the decays of `gla`, and the root that is taken of them."""


@register_block("linear_attn")
class LinearAttention(LinearRecurrence):
    """S_t = S_{t−1} + φ(k_t) v_tᵀ, read by φ(q_t), divided by the sum of keys (Katharopoulos et al. 2020)."""

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
        """Return non-negative features."""
        return functional.elu(x) + 1.0 if self.feature == "elu" else x.clamp(min=0.0)


@register_block("retention")
class Retention(LinearRecurrence):
    """S_t = γ_h S_{t−1} + k_t v_tᵀ, queries and keys rotated by position (Sun et al.

    2023, equation 5). A state is rotated so that the next position is the first one: no position is counted,
    however long the stream.
    """

    def __init__(self, settings: Settings, context: Context) -> None:
        super().__init__(settings, context)
        self.rotate = as_bool(settings, "rotate")

    def recur(
        self, x: Tensor, qk: Tensor, v: Tensor, state: Tensor | None, *, keep: bool
    ) -> tuple[Tensor, Tensor | None]:
        length = x.shape[1]
        angles = 1e4 ** -(_count(0, self.head_width, x, step=2) / self.head_width)
        if self.rotate:
            qk = turn(qk, (_count(0, length, x)[:, None] * angles)[:, None, None])
        q, k = qk.unbind(2)
        log_decay = torch.log1p(-(2.0 ** (-5.0 - _count(0, self.heads, x))))
        log_decay = log_decay.to(v.dtype).expand(1, length, -1)
        y, last = run_in_chunks(q * self.head_width**-0.5, k, v, log_decay, state, keep=keep)
        if last is not None and self.rotate:
            last = turn(last.transpose(-1, -2), -length * angles).transpose(-1, -2)
        return y, last


def _count(low: int, high: int, x: Tensor, *, step: int = 1) -> Tensor:
    """Return whole numbers on the device of x, in double precision."""
    return torch.arange(low, high, step, device=x.device, dtype=torch.float64)


@register_block("gla")
class GatedLinearAttention(LinearRecurrence):
    """S_t = diag(α_t) S_{t−1} + k_t v_tᵀ, α_t = σ(W₂ W₁ x_t + b)^(1/16), at least e⁻⁵ (Yang et al. 2024)."""

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
    """S_t = exp(−exp(A_h) Δ_t) S_{t−1} + Δ_t k_t v_tᵀ, keys and queries shared by heads (Dao and Gu 2024)."""

    weight_roles = roles(skip=WeightRole.GAIN)

    def __init__(self, settings: Settings, context: Context) -> None:
        super().__init__(settings, context, shared_keys=as_int(settings, "state"))
        self.rates = HeadRates(context.width, self.heads, context.config.attention_std)
        self.skip = nn.Parameter(torch.ones(self.heads))

    def recur(
        self, x: Tensor, qk: Tensor, v: Tensor, state: Tensor | None, *, keep: bool
    ) -> tuple[Tensor, Tensor | None]:
        """Scale writes and decays by a step size for each head; values also bypass the state."""
        steps = self.rates.steps(x)
        q, k = qk[:, :, 0, 0], qk[:, :, 1, 0]
        log_decay, skip = self.rates.log_decays(steps), self.skip[None, None]
        return sum_with_shared_keys(
            q, k, v, steps=steps, log_decay=log_decay, skip=skip, state=state, keep=keep
        )
