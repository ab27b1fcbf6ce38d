"""The blocks whose channels each decay by themselves, computed by a scan."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from ....grammar.vocabulary.spec import Settings, as_int, as_word
from ...core.block import Context, register_block
from ...core.initialisation import Initialisable, glorot
from ...core.weight_roles import WeightRole, roles
from .recurrent_channels import RecurrentChannels
from .scan import scan

RATE_POWER = 8.0
"""What the gate of `rg_lru` is multiplied by in the exponent of its decays."""


@register_block("min_gru")
class MinGRU(RecurrentChannels):
    """h_t = (1−z_t)⊗h_{t−1} + z_t⊗g(W_h x_t + b_h), z_t = σ(W_z x_t + b_z) (Feng et al. 2024)."""

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
    """Separate maps of groups of channels, with biases."""

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
        """Split the groups and the maps within them, biases by map."""
        return tensor.unbind() if name == "bias" else _split_groups(tensor, self.maps)

    def forward(self, u: Tensor) -> Tensor:
        """Map (batch, length, channels) to (maps, batch, length, channels)."""
        groups = u.flatten(0, 1).unflatten(1, (len(self.weight), -1)).transpose(0, 1)
        mapped = torch.bmm(groups, self.weight)  # (groups, batch * length, maps * width)
        parted = mapped.unflatten(2, (self.maps, -1)).permute(2, 1, 0, 3).flatten(2)
        return parted.unflatten(1, u.shape[:2]) + self.bias[:, None, None]


def _split_groups(tensor: Tensor, maps: int) -> list[Tensor]:
    return [part for group in tensor.unbind() for part in group.chunk(maps, -1)]


class DecayRates(Initialisable):
    """Λ of `rg_lru`, drawn so that σ(Λ)^8 is uniform from 0.9 to 0.999."""

    weight_roles = roles(weight=WeightRole.RATE)

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(channels))

    def initialise(self, generator: torch.Generator | None) -> None:
        """Draw the decays, and take their inverse."""
        with torch.no_grad():
            decay = self.weight.uniform_(0.9, 0.999, generator=generator).pow_(1.0 / RATE_POWER)
            decay.logit_()


@register_block("rg_lru")
class RealGatedLinearRecurrence(RecurrentChannels):
    """h_t = a_t⊗h_{t−1} + √(1−a_t²)⊗i_t⊗u_t, a_t = σ(Λ)^(8 r_t) (De et al. 2024, equations 1 to 4)."""

    def __init__(self, settings: Settings, context: Context) -> None:
        heads, head_width = as_int(settings, "heads"), as_int(settings, "head_width")
        super().__init__(settings, context, heads * head_width, active=False)
        self.gates = BlockMaps(heads, head_width, maps=2)
        self.rates = DecayRates(self.channels)

    def recur(self, u: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor]:
        """Scale what is added so that states stay as large as what is read."""
        r, i = torch.sigmoid(self.gates(u).to(self.rates.weight.dtype)).unbind(0)
        log_decay = -RATE_POWER * functional.softplus(-self.rates.weight) * r
        added = torch.sqrt(-torch.expm1(2.0 * log_decay)) * i * u
        h = scan(log_decay.exp(), added, state)
        return h, h[:, -1]
