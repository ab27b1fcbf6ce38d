"""Heads with a matrix as their state: what stands around the recurrence, and each kind of it."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from ...grammar.vocabulary.spec import Settings, as_int, as_word
from ..core.block import Block, Context, register_block
from ..core.initialisation import Initialisable, Linear
from .chunked_recurrence import run_in_chunks

NORM_EPSILON = 1e-5
"""What is added to the mean square of a head."""

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

    Since nothing later is seen, padding behind a sequence needs no mask.
    """

    state_is_bounded: ClassVar[bool] = True

    def __init__(self, settings: Settings, context: Context) -> None:
        super().__init__()
        config, width = context.config, context.width
        self.heads, self.head_width = as_int(settings, "heads"), as_int(settings, "head_width")
        inner, taps = self.heads * self.head_width, as_int(settings, "short_conv")
        gate = as_word(settings, "output_gate")
        self.qkv = Linear(width, inner, bias=False, maps=3, std=config.attention_std)
        self.short_conv = ShortConvolution(3 * inner, taps) if taps else None
        self.norm = HeadNorm(self.head_width) if as_word(settings, "head_norm") == "rms" else None
        self.gate_kind = gate
        self.gate = Linear(width, inner, bias=False, std=config.attention_std) if gate != "none" else None
        self.output = Linear(inner, width, bias=False, std=config.attention_output_std)

    @classmethod
    def build(cls, settings: Settings, context: Context) -> Self:
        """The block with these settings."""
        return cls(settings, context)

    @abstractmethod
    def recur(
        self, x: Tensor, qkv: Tensor, state: Tensor | None, *, keep: bool
    ) -> tuple[Tensor, Tensor | None]:
        """What heads give, (batch, length, heads, head_width), and the state (batch, …) then, if to `keep`.

        x is the input; qkv is (batch, length, 3, heads, head_width). The state may come as (batch, numbers).
        """

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """All positions; the mask changes nothing at valid ones."""
        return self._run(x, None, keep=False)[0]

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
        y, kept = self.recur(x, qkv.unflatten(2, (3, self.heads, -1)), state, keep=keep)
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
        self, x: Tensor, qkv: Tensor, state: Tensor | None, *, keep: bool
    ) -> tuple[Tensor, Tensor | None]:
        """A value of one beside the others adds the keys up."""
        q, k = self.features(qkv[:, :, :2]).unbind(2)
        v = functional.pad(qkv[:, :, 2], (0, 1), value=1.0)
        before = None if state is None else state.unflatten(1, (self.heads, self.head_width, -1))
        y, last = run_in_chunks(q, k, v, None, before, keep=keep)
        return y[..., :-1] / (y[..., -1:] + self.epsilon), last

    def features(self, x: Tensor) -> Tensor:
        """Numbers that are not negative."""
        return functional.elu(x) + 1.0 if self.feature == "elu" else x.clamp(min=0.0)
