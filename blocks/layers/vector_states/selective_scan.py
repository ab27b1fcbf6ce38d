"""`mamba`: channels with several numbers each as their state, computed anew for a gradient."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from ....grammar.vocabulary.spec import Settings, as_bool, as_int
from ...core.block import Context, register_block
from ...core.initialisation import Initialisable, Linear
from ...core.weight_roles import WeightRole, roles
from ..matrix_states.recurrent_heads import draw_step_offsets
from .recurrent_channels import RecurrentChannels
from .scan import read_states

RANK_DIVISOR = 16
"""The maps to the steps meet at the width of the model over this, rounded up."""


class SelectiveRates(Initialisable):
    """The decay rates of each channel's numbers, the offsets of its steps, and the skip past its state.

    The rates are initialised as 1, 2, 3 and so on, softplus of the offsets log-uniform from 0.001 to 0.1,
    the skip as 1.
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
    """h_t = a_t ⊗ h_{t−1} + (Δ_t ⊗ u_t) B_tᵀ, read by C_t (Gu and Dao 2023, algorithm 2).

    a_t = exp(−exp(A) Δ_t), or 2 exp(−exp(A) Δ_t) − 1 (Grazzi et al. 2025).
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
