"""Heads with a matrix as their state: what stands around the recurrence, and each kind of it."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import ClassVar, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from ...grammar.vocabulary.matrix_states.linear_recurrences import GATE_RANK, GATE_TEMPERATURE
from ...grammar.vocabulary.spec import Settings, as_bool, as_int, as_word
from ..core.block import Block, Context, register_block
from ..core.initialisation import Initialisable, Linear
from .chunked_recurrence import run_in_chunks, run_vector_decays
from .convolutions import zero_masked

NORM_EPSILON, KEY_EPSILON = 1e-5, 1e-6
"""What is added to the mean square of what a head gives, and to the sum of squares of a query or a key."""

GATES = {"silu": functional.silu, "sigmoid": torch.sigmoid}


class ShortConvolution(Initialisable):
    """Each channel by its own taps, of which the last is that of the position itself, and SiLU."""

    def __init__(self, channels: int, taps: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(taps, channels))

    def initialise(self, generator: torch.Generator | None) -> None:
        """As torch's convolution of one channel: uniform up to taps^-0.5."""
        bound = len(self.weight) ** -0.5
        nn.init.uniform_(self.weight, -bound, bound, generator=generator)

    def forward(self, x: Tensor, past: Tensor | None) -> tuple[Tensor, Tensor]:
        """The outputs at x (batch, length, channels) behind `past`, and what is then past."""
        taps, length = len(self.weight), x.shape[1]
        seen = functional.pad(x, (0, 0, taps - 1, 0)) if past is None else torch.cat([past, x], 1)
        y = seen[:, :length] * self.weight[0]
        for place in range(1, taps):
            y = y + seen[:, place : place + length] * self.weight[place]
        return functional.silu(y), seen[:, length:]


class HeadNorm(nn.Module):
    """Each head divided by its root mean square; the gains begin at one (Zhang and Sennrich 2019)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, y: Tensor) -> Tensor:
        """(…, width) to the same."""
        return y * (y.square().mean(-1, keepdim=True) + NORM_EPSILON).rsqrt() * self.weight


class LinearRecurrence(Block):
    """Maps to queries, keys and values, a recurrence of each head by itself, and a map of what heads give.

    Keys and queries have as many heads as values, or one that is shared by all and `shared_keys` wide.
    Since nothing later is seen, padding behind a sequence moves nothing; it is zeroed, so that what stands
    there overflows nowhere.
    """

    state_is_bounded: ClassVar[bool] = True

    def __init__(self, settings: Settings, context: Context, *, shared_keys: int | None = None) -> None:
        super().__init__()
        config, width, std = context.config, context.width, context.config.attention_std
        self.heads, self.head_width = as_int(settings, "heads"), as_int(settings, "head_width")
        inner, taps = self.heads * self.head_width, as_int(settings, "short_conv")
        gate = as_word(settings, "output_gate")
        if shared_keys is None:
            self.key_heads, self.key_width = self.heads, self.head_width
            self.qkv = Linear(width, inner, bias=False, maps=3, std=std)
        else:
            self.key_heads, self.key_width = 1, shared_keys
            self.qkv = Linear(width, 2 * shared_keys + inner, bias=False, std=std)
        self.short_conv = ShortConvolution(self.qkv.out_features, taps) if taps else None
        self.normalises_keys = as_word(settings, "qk_norm") == "l2"
        self.norm = HeadNorm(self.head_width) if as_word(settings, "head_norm") == "rms" else None
        self.gate_kind = gate
        self.gate = Linear(width, inner, bias=False, std=std) if gate != "none" else None
        self.output = Linear(inner, width, bias=False, std=config.attention_output_std)

    @classmethod
    def build(cls, settings: Settings, context: Context) -> Self:
        """The block with these settings."""
        return cls(settings, context)

    @abstractmethod
    def recur(
        self, x: Tensor, qk: Tensor, v: Tensor, state: Tensor | None, *, keep: bool
    ) -> tuple[Tensor, Tensor | None]:
        """What heads give, (batch, length, heads, head_width), and the state then, if to `keep`.

        x is the input, qk (batch, length, 2, key_heads, key_width), v (batch, length, heads, head_width), and
        a state (batch, heads, key_width, …).
        """

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """All positions; the mask changes nothing at valid ones."""
        return self._run(zero_masked(x, mask), None, keep=False)[0]

    def step_with_grad(self, x: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """The state is (batch, numbers): the past of the convolution, then what the recurrence keeps."""
        return self._run(x, state, keep=True)

    def _run(self, x: Tensor, state: Tensor | None, *, keep: bool) -> tuple[Tensor, Tensor | None]:
        qkv, past = self.qkv(x), None
        if self.short_conv is not None:
            numbers = (len(self.short_conv.weight) - 1) * qkv.shape[2]
            if state is not None:
                past = state[:, :numbers].unflatten(1, (-1, qkv.shape[2]))
                state = state[:, numbers:]
            qkv, past = self.short_conv(qkv, past)
        keys = 2 * self.key_heads * self.key_width
        qk = qkv[..., :keys].unflatten(2, (2, self.key_heads, -1))
        v = qkv[..., keys:].unflatten(2, (self.heads, -1))
        if self.normalises_keys:
            qk = qk * (qk.square().sum(-1, keepdim=True) + KEY_EPSILON).rsqrt()
        before = None if state is None else state.unflatten(1, (self.heads, self.key_width, -1))
        y, kept = self.recur(x, qk, v, before, keep=keep)
        if kept is not None:
            kept = kept.flatten(1) if past is None else torch.cat([past.flatten(1), kept.flatten(1)], 1)
        return self._merge(y, x), kept

    def _merge(self, y: Tensor, x: Tensor) -> Tensor:
        """The output of what the heads give at x."""
        y = (y if self.norm is None else self.norm(y)).flatten(2)
        if self.gate is not None:
            y = y * GATES[self.gate_kind](self.gate(x))
        return self.output(y)


@register_block("linear_attn")
class LinearAttention(LinearRecurrence):
    """S_t = S_{t−1} + φ(k_t) v_tᵀ, read by φ(q_t), over the same sum of keys (Katharopoulos et al. 2020)."""

    epsilon: ClassVar[float] = 1e-6

    def __init__(self, settings: Settings, context: Context) -> None:
        super().__init__(settings, context)
        self.feature = as_word(settings, "feature")

    def recur(
        self, x: Tensor, qk: Tensor, v: Tensor, state: Tensor | None, *, keep: bool
    ) -> tuple[Tensor, Tensor | None]:
        """A value of one beside the others adds the keys up."""
        q, k = self.features(qk).unbind(2)
        y, last = run_in_chunks(q, k, functional.pad(v, (0, 1), value=1.0), None, state, keep=keep)
        return y[..., :-1] / (y[..., -1:] + self.epsilon), last

    def features(self, x: Tensor) -> Tensor:
        """Numbers that are not negative."""
        return functional.elu(x) + 1.0 if self.feature == "elu" else x.clamp(min=0.0)


@register_block("retention")
class Retention(LinearRecurrence):
    """S_t = γ_h S_{t−1} + k_t v_tᵀ, queries and keys rotated by their place (Sun et al. 2023, equation 5).

    A state stands rotated so that the next position is the first one: no position is counted, however long
    the stream.
    """

    def __init__(self, settings: Settings, context: Context) -> None:
        super().__init__(settings, context)
        self.rotate = as_bool(settings, "rotate")

    def recur(
        self, x: Tensor, qk: Tensor, v: Tensor, state: Tensor | None, *, keep: bool
    ) -> tuple[Tensor, Tensor | None]:
        """Turned and scaled queries and keys, and one decay for each head."""
        length = x.shape[1]
        angles = 1e4 ** -(_count(0, self.head_width, x, step=2) / self.head_width)
        if self.rotate:
            qk = _rotate(qk, (_count(0, length, x)[:, None] * angles)[:, None, None])
        q, k = qk.unbind(2)
        log_decay = torch.log1p(-(2.0 ** (-5.0 - _count(0, self.heads, x))))
        log_decay = log_decay.to(v.dtype).expand(1, length, -1)
        y, last = run_in_chunks(q * self.head_width**-0.5, k, v, log_decay, state, keep=keep)
        if last is not None and self.rotate:
            last = _rotate(last.transpose(-1, -2), -length * angles).transpose(-1, -2)
        return y, last


def _count(low: int, high: int, x: Tensor, *, step: int = 1) -> Tensor:
    """Whole numbers where x is, in double precision."""
    return torch.arange(low, high, step, device=x.device, dtype=torch.float64)


def _rotate(x: Tensor, angles: Tensor) -> Tensor:
    """Each two neighbours of (…, width) turned by an angle of (…, width / 2)."""
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    even, odd = x[..., ::2], x[..., 1::2]
    return torch.stack([even * cos - odd * sin, even * sin + odd * cos], -1).flatten(-2)


@register_block("gla")
class GatedLinearAttention(LinearRecurrence):
    """S_t = diag(α_t) S_{t−1} + k_t v_tᵀ, α_t = σ(W₂ W₁ x_t + b)^(1/16) (Yang et al. 2024, section 4)."""

    def __init__(self, settings: Settings, context: Context) -> None:
        super().__init__(settings, context)
        inner = self.heads * self.head_width
        self.decay = nn.Sequential(
            Linear(context.width, GATE_RANK, bias=False), Linear(GATE_RANK, inner, bias=True)
        )

    def recur(
        self, x: Tensor, qk: Tensor, v: Tensor, state: Tensor | None, *, keep: bool
    ) -> tuple[Tensor, Tensor | None]:
        """A decay for each channel of the keys."""
        log_decay = -functional.softplus(-self.decay(x).to(v.dtype)) / GATE_TEMPERATURE
        q, k = qk.unbind(2)
        log_decay = log_decay.unflatten(2, (self.heads, -1))
        return run_vector_decays(q * self.head_width**-0.5, k, v, log_decay, state, keep=keep)


class HeadRates(Initialisable):
    """How fast each head forgets: −exp(A) · softplus(W x + b), a logarithm (Gu and Dao 2023, section 3.6).

    A begins as the logarithm of a number drawn from 1 to 16, and softplus(b) log-uniform from 0.001 to 0.1.
    """

    def __init__(self, width: int, heads: int, std: float | None) -> None:
        super().__init__()
        self.map = Linear(width, heads, bias=False, std=std)
        self.log_rate = nn.Parameter(torch.empty(heads))
        self.step_offset = nn.Parameter(torch.empty(heads))

    def initialise(self, generator: torch.Generator | None) -> None:
        """Draw the rates and the steps; the map is drawn by itself."""
        with torch.no_grad():
            self.log_rate.uniform_(1.0, 16.0, generator=generator).log_()
            steps = self.step_offset.uniform_(math.log(1e-3), math.log(0.1), generator=generator).exp_()
            steps.add_(torch.log(-torch.expm1(-steps)))  # the inverse of softplus

    def steps(self, x: Tensor) -> Tensor:
        """How much time each position takes, (batch, length, heads)."""
        return functional.softplus(self.map(x) + self.step_offset)

    def log_decays(self, steps: Tensor) -> Tensor:
        """The logarithms of the decays over so much time."""
        return -(steps * self.log_rate.exp())

    def forward(self, x: Tensor) -> Tensor:
        """The logarithms of the decays, (batch, length, heads)."""
        return self.log_decays(self.steps(x))


@register_block("ssd")
class StateSpaceDuality(LinearRecurrence):
    """S_t = exp(−exp(A_h) Δ_t) S_{t−1} + Δ_t k_t v_tᵀ, keys and queries shared by heads (Dao and Gu 2024)."""

    def __init__(self, settings: Settings, context: Context) -> None:
        super().__init__(settings, context, shared_keys=as_int(settings, "state"))
        self.rates = HeadRates(context.width, self.heads, context.config.attention_std)
        self.skip = nn.Parameter(torch.ones(self.heads))

    def recur(
        self, x: Tensor, qk: Tensor, v: Tensor, state: Tensor | None, *, keep: bool
    ) -> tuple[Tensor, Tensor | None]:
        """A step of each head scales what is written and what is forgotten; values are also passed on."""
        steps = self.rates.steps(x)
        q, k = qk.unbind(2)
        written = v * steps.unsqueeze(-1)
        y, last = run_in_chunks(q, k, written, self.rates.log_decays(steps), state, keep=keep)
        return y + v * self.skip.unsqueeze(-1), last
