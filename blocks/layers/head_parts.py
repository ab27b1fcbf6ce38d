"""Parts that attention heads and recurrences share: norms, rotations, short convolutions and gates."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..core.initialisation import Initialisable, WeightRole, roles

GATES: dict[str, Callable[[Tensor], Tensor]] = {
    "silu": functional.silu,
    "sigmoid": torch.sigmoid,
    "gelu": functional.gelu,
}
"""The activations that turn a linear map of the input into a gate, by their names."""

NORM_EPSILON = 1e-5
"""The constant added to the mean square of a head."""


class ShortConvolution(Initialisable):
    """A causal convolution of each channel with its own taps (kernel values).

    The last tap reads the current position. SiLU follows if `active`.
    """

    weight_roles = roles(weight=WeightRole.FILTER)

    def __init__(self, channels: int, taps: int, *, active: bool = True) -> None:
        super().__init__()
        self.active = active
        self.weight = nn.Parameter(torch.empty(taps, channels))

    def initialise(self, generator: torch.Generator | None) -> None:
        """Draw the taps uniformly within ±taps^-0.5, like torch's convolution of one channel."""
        bound = len(self.weight) ** -0.5
        nn.init.uniform_(self.weight, -bound, bound, generator=generator)

    def forward(self, x: Tensor, past: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return the outputs at x (batch, length, channels), and the next `past`.

        The next `past` is the last inputs, to pass with the next piece.
        """
        before, length, x = len(self.weight) - 1, x.shape[1], x.to(self.weight.dtype)
        seen = x if past is None else torch.cat([past.to(x.dtype), x], 1)
        y = _convolve(seen, self.weight, length)
        missing = before if torch.compiler.is_exporting() else max(0, before - seen.shape[1])
        kept = functional.pad(seen, (0, 0, missing, 0)) if missing else seen
        return functional.silu(y) if self.active else y, kept[:, kept.shape[1] - before :]


def _convolve(x: Tensor, weight: Tensor, length: int) -> Tensor:
    """Convolve x, padded with zeros on the left, and return the last `length` outputs."""
    if torch.compiler.is_exporting():  # zeros in front, so that each tap sees positions at every length
        x = functional.pad(x, (0, 0, len(weight) - 1, 0))
    positions, first = x.shape[1], x.shape[1] - length
    y = x[:, first:] * weight[-1]
    for lag in range(1, len(weight)):
        seen = slice(max(0, first - lag), max(0, positions - lag))
        seeing = slice(min(length, max(0, lag - first)), length)
        y[:, seeing].add_(x[:, seen] * weight[-1 - lag])
    return y


class HeadNorm(nn.Module):
    """RMS norm of each head's vector, with trainable gains that begin at 1 (Zhang and Sennrich 2019)."""

    weight_roles = roles(weight=WeightRole.NORM)

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, y: Tensor) -> Tensor:
        scale = (y.square().mean(-1, keepdim=True) + NORM_EPSILON).rsqrt()  # 1 / root mean square, (…, 1)
        return y * scale * self.weight


def turn(x: Tensor, angles: Tensor) -> Tensor:
    """Rotate each pair of neighbouring channels of x (…, width) by one of the angles (…, width / 2)."""
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    even, odd = x[..., ::2], x[..., 1::2]
    return torch.stack([even * cos - odd * sin, even * sin + odd * cos], -1).flatten(-2)


def gate_heads(y: Tensor, norm: HeadNorm | None, gate: Tensor | None, kind: str) -> Tensor:
    """Normalise the heads' outputs y (batch, length, heads, width), and multiply them by a gate.

    A step whose argument is None is skipped. Return (batch, length, heads * width). `gate` is a linear map of
    the block's input, (batch, length, heads * width), and `kind` is the activation that makes it a gate.
    """
    dtype = y.dtype if norm is None else torch.promote_types(y.dtype, norm.weight.dtype)
    y = y.to(dtype)
    y = y if norm is None else norm(y)
    if gate is not None:
        y = y * GATES[kind](gate.to(dtype).view(y.shape))
    return y.flatten(2)
