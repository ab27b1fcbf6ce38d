"""What heads and recurrences have in common: norms, turns, short convolutions and gates."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..core.initialisation import Initialisable

GATES: dict[str, Callable[[Tensor], Tensor]] = {
    "silu": functional.silu,
    "sigmoid": torch.sigmoid,
    "gelu": functional.gelu,
}
"""What a gate makes of a map of the input."""

NORM_EPSILON = 1e-5
"""What is added to the mean square of a head."""


class ShortConvolution(Initialisable):
    """Each channel by its own taps, of which the last is that of the position; SiLU behind it if `active`."""

    def __init__(self, channels: int, taps: int, *, active: bool = True) -> None:
        super().__init__()
        self.active = active
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
        return functional.silu(y) if self.active else y, seen[:, length:]


class HeadNorm(nn.Module):
    """Each head divided by its root mean square; the gains begin at one (Zhang and Sennrich 2019)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, y: Tensor) -> Tensor:
        """(…, width) to the same."""
        return y * (y.square().mean(-1, keepdim=True) + NORM_EPSILON).rsqrt() * self.weight


def turn(x: Tensor, angles: Tensor) -> Tensor:
    """Each two neighbours of (…, width) turned by an angle of (…, width / 2)."""
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    even, odd = x[..., ::2], x[..., 1::2]
    return torch.stack([even * cos - odd * sin, even * sin + odd * cos], -1).flatten(-2)
