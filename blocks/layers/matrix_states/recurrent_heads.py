"""Linear maps, short convolutions, norms and gates of blocks with a matrix state for each head."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from ....grammar.vocabulary.spec import Settings, as_int, as_word
from ...core.block import Block, Context
from ...core.initialisation import Initialisable, Linear, WeightRole, roles
from ...core.operations import products_in_half
from ..convolutions import zero_masked
from ..head_parts import HeadNorm, ShortConvolution, gate_heads, inverse_norm

KEY_EPSILON = 1e-6
"""The constant added to the sum of squares of a query or key."""


class LinearRecurrence(Block):
    """Base class of blocks that run a recurrence on keys and values.

    Each head has its own recurrence, which queries read; a linear map joins the heads' outputs. Keys and
    queries have as many heads as values, or a single shared one of width `shared_keys`. A position has as
    many keys and values as it `writes`. Padding follows a sequence and cannot change it; it is zeroed, so
    that it cannot overflow.

    With 16-bit weights, running sums are in single precision, as under autocast.
    """

    state_is_bounded: ClassVar[bool] = True

    def __init__(
        self, settings: Settings, context: Context, *, shared_keys: int | None = None, writes: int = 1
    ) -> None:
        super().__init__()
        config, width, std = context.config, context.width, context.config.settings.attention_std
        self.heads, self.head_width = as_int(settings, "heads"), as_int(settings, "head_width")
        inner, taps = self.heads * self.head_width, as_int(settings, "short_conv")
        gate = as_word(settings, "output_gate")
        if shared_keys is None:
            self.key_heads, self.key_width = self.heads, self.head_width
            self.qkv = Linear(width, inner, bias=False, maps=1 + 2 * writes, std=std)
        else:
            self.key_heads, self.key_width = 1, shared_keys
            sizes = (shared_keys, shared_keys, inner)
            self.qkv = Linear(width, sizes, bias=False, drawn_as_one=True, std=std)
        self.writes = writes
        self.short_conv = ShortConvolution(self.qkv.out_features, taps) if taps else None
        self.normalises_keys = as_word(settings, "qk_norm") == "l2"
        self.norm = HeadNorm(self.head_width) if as_word(settings, "head_norm") == "rms" else None
        self.gate_kind = gate
        self.gate = Linear(width, inner, bias=False, std=std) if gate != "none" else None
        self.output = Linear(inner, width, bias=False, std=config.settings.attention_output_std)

    @abstractmethod
    def recur(
        self, x: Tensor, qk: Tensor, v: Tensor, state: Tensor | None, *, keep: bool
    ) -> tuple[Tensor, Tensor | None]:
        """Return the heads' outputs (batch, length, heads, head_width) and, with `keep`, the final state.

        x is the input, qk (batch, length, 1 + writes, key_heads, key_width), v (batch, length, writes *
        heads, head_width), and the state is the result of `split_state`.
        """

    def split_state(self, state: Tensor) -> Tensor:
        """Reshape the flat state of the recurrence, (batch, numbers), to (batch, heads, key_width, …)."""
        return state.unflatten(1, (self.heads, self.key_width, -1))

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        with products_in_half(x):
            return self._run(zero_masked(x, mask), None, keep=False)[0]

    def step_with_grad(self, x: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Return the outputs for a piece of a sequence, and the new state.

        The state holds the past inputs of the short convolution, if there is one, and then the state of the
        recurrence.
        """
        with products_in_half(x):
            return self._run(x, state, keep=True)

    def _run(self, x: Tensor, state: Tensor | None, *, keep: bool) -> tuple[Tensor, Tensor | None]:
        qkv, past = self.qkv(x), None
        if self.short_conv is not None:
            past, state = self.short_conv.split_state(state)
            qkv, past = self.short_conv(qkv, past)
        keys = (1 + self.writes) * self.key_heads * self.key_width
        qk, v = qkv.split([keys, qkv.shape[2] - keys], 2)
        qk, v = qk.unflatten(2, (1 + self.writes, self.key_heads, -1)), v.unflatten(2, (-1, self.head_width))
        if self.normalises_keys:
            qk = qk * inverse_norm(qk, KEY_EPSILON)
        before = None if state is None else self.split_state(state)
        y, kept = self.recur(x, qk, v, before, keep=keep)
        if kept is not None:
            kept = kept.flatten(1) if past is None else torch.cat([past.flatten(1), kept.flatten(1)], 1)
        return self._merge(y, x), kept

    def _merge(self, y: Tensor, x: Tensor) -> Tensor:
        gate = None if self.gate is None else self.gate(x)
        return self.output(gate_heads(y, self.norm, gate, self.gate_kind))


def draw_rates(log_rate: Tensor, generator: torch.Generator | None) -> None:
    """Fill `log_rate` with logarithms of numbers drawn uniformly from 1 to 16."""
    with torch.no_grad():
        log_rate.uniform_(1.0, 16.0, generator=generator).log_()


def draw_step_offsets(offset: Tensor, generator: torch.Generator | None) -> None:
    """Fill `offset` with values whose softplus is log-uniform from 0.001 to 0.1."""
    with torch.no_grad():
        steps = offset.uniform_(math.log(1e-3), math.log(0.1), generator=generator).exp_()
        steps.add_(torch.log(-torch.expm1(-steps)))  # the inverse of softplus


class HeadRates(Initialisable):
    """The log decay of each head: −exp(A) · softplus(W x + b) (Gu and Dao 2023, section 3.6).

    A is the logarithm of a number drawn from 1 to 16, and softplus(b) is log-uniform from 0.001 to 0.1.
    """

    weight_roles = roles(log_rate=WeightRole.RATE, step_offset=WeightRole.RATE)

    def __init__(self, width: int, heads: int, std: float | None) -> None:
        super().__init__()
        self.map = Linear(width, heads, bias=False, std=std)
        self.log_rate = nn.Parameter(torch.empty(heads))
        self.step_offset = nn.Parameter(torch.empty(heads))

    def initialise(self, generator: torch.Generator | None) -> None:
        draw_rates(self.log_rate, generator)
        draw_step_offsets(self.step_offset, generator)

    def steps(self, x: Tensor) -> Tensor:
        """Return the step size of each position, (batch, length, heads)."""
        return functional.softplus(self.map(x) + self.step_offset)

    def log_decays(self, steps: Tensor) -> Tensor:
        """Return the log decays for these step sizes."""
        return -(steps * self.log_rate.exp())

    def forward(self, x: Tensor) -> Tensor:
        """Return the log decays, (batch, length, heads)."""
        return self.log_decays(self.steps(x))
