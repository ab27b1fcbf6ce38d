"""Recurrent blocks with a state for each channel."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from ....grammar.vocabulary.spec import Settings, as_bool, as_int, as_word
from ...core.block import Block, Context, register_block
from ...core.initialisation import Initialisable, Linear, WeightRole, glorot, roles
from ..convolutions import zero_masked
from ..head_parts import HeadNorm, ShortConvolution, gate_heads
from ..matrix_states.recurrent_heads import draw_step_offsets
from .scans import read_states, scan


class RecurrentChannels(Block):
    """Base class of blocks that run a recurrence on channels.

    Linear maps come before and after the recurrence. The block is causal, so padding after a sequence has no
    effect; it is zeroed, so that it cannot overflow.
    """

    state_is_bounded: ClassVar[bool] = True

    def __init__(
        self, settings: Settings, context: Context, channels: int, *, maps: int = 1, active: bool
    ) -> None:
        super().__init__()
        width, taps, gate = context.width, as_int(settings, "short_conv"), as_word(settings, "output_gate")
        self.channels = channels
        self.input = Linear(width, channels, bias=maps > 1, maps=maps)
        self.short_conv = ShortConvolution(maps * channels, taps, active=active) if taps else None
        self.gate_kind = gate
        self.gate = Linear(width, channels, bias=False) if gate != "none" else None
        self.output = Linear(channels, width, bias=False)

    @abstractmethod
    def recur(self, u: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return the outputs of the recurrence at u (batch, length, maps * channels), and the new state."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return self._run(zero_masked(x, mask), None)[0]

    def step_with_grad(self, x: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Return the outputs for a piece of a sequence, and the new state.

        The state holds the past inputs of the short convolution, if there is one, and then the state of the
        recurrence.
        """
        y, past, kept = self._run(x, state)
        return y, kept if past is None else torch.cat([past.flatten(1), kept], 1)

    def _run(self, x: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor | None, Tensor]:
        u, past = self.input(x), None
        if self.short_conv is not None:
            past, state = self.short_conv.split_state(state)
            u, past = self.short_conv(u, past)
        y, kept = self.recur(u, state)
        if self.gate is not None:
            y = gate_heads(y.unsqueeze(2), None, self.gate(x), self.gate_kind)
        return self.output(y), past, kept


RATE_POWER = 8.0
"""The gate's factor in the exponent of `rg_lru`'s decays."""


@register_block("min_gru")
class MinGRU(RecurrentChannels):
    """Block `min_gru`: gated recurrent units whose gates depend only on the input (Feng et al. 2024).

    h_t = (1−z_t)⊙h_{t−1} + z_t⊙g(W_h x_t + b_h), z_t = σ(W_z x_t + b_z).
    """

    def __init__(self, settings: Settings, context: Context) -> None:
        super().__init__(settings, context, as_int(settings, "channels"), maps=2, active=False)
        self.positive = as_word(settings, "candidate") == "positive"

    def recur(self, u: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor]:
        gate, candidate = u.to(self.output.weight.dtype).chunk(2, -1)
        if self.positive:
            candidate = torch.where(candidate >= 0.0, candidate + 0.5, torch.sigmoid(candidate))
        share = torch.sigmoid(gate)
        h = scan(1.0 - share, share * candidate, state)
        return h, h[:, -1]


class BlockMaps(Initialisable):
    """Linear maps with biases, separate for each group of channels."""

    weight_roles = roles(weight=WeightRole.MATRIX, bias=WeightRole.BIAS)

    def __init__(self, groups: int, width: int, *, maps: int) -> None:
        super().__init__()
        self.maps = maps
        self.weight = nn.Parameter(torch.empty(groups, width, maps * width))
        self.bias = nn.Parameter(torch.empty(maps, groups * width))

    def initialise(self, generator: torch.Generator | None) -> None:
        width = self.weight.shape[1]
        glorot(self.weight, width, width, generator)
        nn.init.zeros_(self.bias)

    def fan_in(self, weight: nn.Parameter) -> int:
        return weight.shape[1]

    def split_maps(self, name: str, tensor: Tensor) -> Sequence[Tensor]:
        """Split a tensor of a weight's shape into views, one for each linear map.

        `weight` gives one matrix for each group and map, and `bias` one row for each map.
        """
        if name == "bias":
            return tensor.unbind()
        return [part for group in tensor.unbind() for part in group.chunk(self.maps, -1)]

    def forward(self, u: Tensor) -> Tensor:
        """Map (batch, length, channels) to (maps, batch, length, channels)."""
        groups = u.flatten(0, 1).unflatten(1, (len(self.weight), -1)).transpose(0, 1)
        mapped = torch.bmm(groups, self.weight)  # (groups, batch * length, maps * width)
        parted = mapped.unflatten(2, (self.maps, -1)).permute(2, 1, 0, 3).flatten(2)
        return parted.unflatten(1, u.shape[:2]) + self.bias[:, None, None]


class DecayRates(Initialisable):
    """The decay rates Λ of `rg_lru`, drawn so that σ(Λ)^8 is uniform from 0.9 to 0.999."""

    weight_roles = roles(weight=WeightRole.RATE)

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(channels))

    def initialise(self, generator: torch.Generator | None) -> None:
        """Draw σ(Λ)^8 uniformly, and compute Λ by the inverse sigmoid."""
        with torch.no_grad():
            decay = self.weight.uniform_(0.9, 0.999, generator=generator).pow_(1.0 / RATE_POWER)
            decay.logit_()


@register_block("rg_lru")
class RealGatedLinearRecurrence(RecurrentChannels):
    """Block `rg_lru`: channels decay at learned rates, scaled by a gate (De et al. 2024, equations 1 to 4).

    h_t = a_t⊙h_{t−1} + √(1−a_t²)⊙i_t⊙u_t, a_t = σ(Λ)^(8 r_t).
    """

    def __init__(self, settings: Settings, context: Context) -> None:
        heads, head_width = as_int(settings, "heads"), as_int(settings, "head_width")
        super().__init__(settings, context, heads * head_width, active=False)
        self.gates = BlockMaps(heads, head_width, maps=2)
        self.rates = DecayRates(self.channels)

    def recur(self, u: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor]:
        """Run the recurrence on inputs scaled by √(1−a_t²). So states have the same variance as inputs."""
        r, i = torch.sigmoid(self.gates(u).to(self.rates.weight.dtype)).unbind(0)
        log_decay = -RATE_POWER * functional.softplus(-self.rates.weight) * r
        # expm1 computes 1 − a² without cancellation where the decay a is near 1
        added = torch.sqrt(-torch.expm1(2.0 * log_decay)) * i * u
        h = scan(log_decay.exp(), added, state)
        return h, h[:, -1]


RANK_DIVISOR = 16
"""The rank of the maps to the step sizes is the model's width divided by this, rounded up."""


class SelectiveRates(Initialisable):
    """The parameters of a selective state space: decay rates, offsets of step sizes, skip connection.

    The rates are initialised as 1, 2, 3 and so on, and the skip connection as 1. The softplus of the offsets
    is log-uniform from 0.001 to 0.1.
    """

    weight_roles = roles(log_rate=WeightRole.RATE, step_offset=WeightRole.RATE, skip=WeightRole.GAIN)

    def __init__(self, channels: int, state: int) -> None:
        super().__init__()
        self.log_rate = nn.Parameter(torch.empty(channels, state))
        self.step_offset = nn.Parameter(torch.empty(channels))
        self.skip = nn.Parameter(torch.empty(channels))

    def initialise(self, generator: torch.Generator | None) -> None:
        with torch.no_grad():
            self.log_rate.copy_(torch.arange(1, self.log_rate.shape[1] + 1).log().expand_as(self.log_rate))
        draw_step_offsets(self.step_offset, generator)
        nn.init.ones_(self.skip)


@register_block("mamba")
class SelectiveStateSpace(RecurrentChannels):
    """Block `mamba`: a selective state space (Gu and Dao 2023, algorithm 2).

    h_t = a_t ⊙ h_{t−1} + (Δ_t ⊙ u_t) B_tᵀ, read by C_t. a_t = exp(−exp(A) Δ_t) or, if `negative`,
    2 exp(−exp(A) Δ_t) − 1 (Grazzi et al. 2025).
    """

    def __init__(self, settings: Settings, context: Context) -> None:
        super().__init__(settings, context, as_int(settings, "channels"), active=True)
        self.state, self.rank = as_int(settings, "state"), -(-context.width // RANK_DIVISOR)
        self.negative = as_bool(settings, "negative")
        self.selection = Linear(
            self.channels, (self.rank, self.state, self.state), bias=False, drawn_as_one=True
        )
        self.steps = Linear(self.rank, self.channels, bias=False)
        self.rates = SelectiveRates(self.channels, self.state)

    def recur(self, u: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor]:
        rates = self.rates
        low, k, q = self.selection(u).split([self.rank, self.state, self.state], -1)
        steps = functional.softplus(self.steps(low) + rates.step_offset)
        before = None if state is None else state.unflatten(1, (self.channels, self.state))
        read, last = read_states(steps, u, -rates.log_rate.exp(), k, q, state=before, negative=self.negative)
        return read + rates.skip * u, last.flatten(1)


class HeadTransitions(Initialisable):
    """The maps from a head's previous output to its gates.

    Each head has four gates. The offsets of a sigmoid forget gate are evenly spaced from 3 to 6 over the
    heads, the others are 0.
    """

    weight_roles = roles(weight=WeightRole.MATRIX, offset=WeightRole.BIAS)

    def __init__(self, heads: int, width: int, *, bounded: bool) -> None:
        super().__init__()
        self.bounded = bounded
        self.weight = nn.Parameter(torch.empty(heads, width, 4 * width))
        self.offset = nn.Parameter(torch.empty(heads, 4 * width))

    def initialise(self, generator: torch.Generator | None) -> None:
        heads, width, _ = self.weight.shape
        glorot(self.weight, width, width, generator)
        nn.init.zeros_(self.offset)
        if self.bounded:
            with torch.no_grad():
                self.offset[:, 2 * width : 3 * width] = torch.linspace(3.0, 6.0, heads).unsqueeze(-1)

    def fan_in(self, weight: nn.Parameter) -> int:
        return weight.shape[1]

    def split_maps(self, name: str, tensor: Tensor) -> Sequence[Tensor]:
        return [part for head in tensor.unbind() for part in head.chunk(4, -1)]


@register_block("slstm")
class ScalarLSTM(Block):
    """Block `slstm`: the scalar memory of the xLSTM, with exponential gates (Beck et al. 2024).

    c_t = f_t⊙c_{t−1} + i_t⊙z_t, n_t = f_t⊙n_{t−1} + i_t, h_t = o_t⊙c_t / n_t. The gates depend on x_t and
    h_{t−1}.

    The sums are divided by the exponential of a stabiliser, the largest log weight so far, which cancels in
    their quotient.
    """

    state_is_bounded = True
    loops_over_positions = True

    def __init__(self, settings: Settings, context: Context) -> None:
        super().__init__()
        self.heads, self.head_width = as_int(settings, "heads"), as_int(settings, "head_width")
        self.bounded = as_word(settings, "forget") == "sigmoid"
        inner, width = self.heads * self.head_width, context.width
        self.input = Linear(width, inner, bias=False, maps=4)
        self.transitions = HeadTransitions(self.heads, self.head_width, bounded=self.bounded)
        self.norm = HeadNorm(self.head_width) if as_word(settings, "head_norm") == "rms" else None
        self.output = Linear(inner, width, bias=False)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Compute all positions; since the block is causal, the mask has no effect on valid positions."""
        return self.step_with_grad(zero_masked(x, mask), None)[0]

    def step_with_grad(self, x: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return the outputs for a piece of a sequence, and the new state (batch, 4, heads, head_width).

        The state's four parts are the output h, the sums c and n, and the stabiliser.
        """
        mapped = self.input(x).unflatten(2, (4, self.heads, -1)).permute(1, 3, 0, 2, 4).flatten(3)
        mapped = mapped + self.transitions.offset.unsqueeze(1)  # (length, heads, batch, 4 * head_width)
        if state is None:
            h = c = n = torch.zeros_like(mapped[0, ..., : self.head_width])
            m = torch.full_like(h, -torch.inf)
        else:
            h, c, n, m = state.permute(1, 2, 0, 3).unbind(0)
        outputs: list[Tensor] = []
        for each in mapped.unbind(0):
            h, c, n, m = self._step(each, h, c, n, m)
            outputs.append(h)
        y = torch.stack(outputs).permute(2, 0, 1, 3)  # (batch, length, heads, head_width)
        kept = torch.stack([h, c, n, m]).permute(2, 0, 1, 3)
        return self.output((y if self.norm is None else self.norm(y)).flatten(2)), kept

    def _step(self, mapped: Tensor, *state: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        h, c, n, m = state
        z, i, f, o = (mapped + torch.bmm(h, self.transitions.weight)).to(c.dtype).chunk(4, -1)
        log_forget = functional.logsigmoid(f) if self.bounded else f
        with torch.no_grad():  # the stabiliser cancels in the output, so it needs no gradient
            most = torch.maximum(log_forget + m, i)
        kept, written = (log_forget + (m - most)).exp(), (i - most).exp()
        c = kept * c + written * torch.tanh(z)
        n = kept * n + written
        return torch.sigmoid(o) * (c / n), c, n, most
