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

    def split_state(self, state: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
        """Split a block's flat state (batch, numbers) into the `past` of this convolution, and the rest."""
        if state is None:
            return None, None
        taps, channels = self.weight.shape
        return state[:, : (taps - 1) * channels].unflatten(1, (-1, channels)), state[
            :, (taps - 1) * channels :
        ]

    def forward(self, x: Tensor, past: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return the outputs at x (batch, length, channels), and the next `past`.

        `past` is the last inputs before x, one fewer than taps; None for zeros.
        """
        before, length, x = len(self.weight) - 1, x.shape[1], x.to(self.weight.dtype)
        seen = functional.pad(x, (0, 0, before, 0)) if past is None else torch.cat([past.to(x.dtype), x], 1)
        y = seen[:, before:] * self.weight[-1]
        for lag in range(1, before + 1):
            y = y + seen[:, before - lag : before - lag + length] * self.weight[-1 - lag]
        return functional.silu(y) if self.active else y, seen[:, length:]


class HeadNorm(nn.Module):
    """RMS norm of each head's vector, with trainable gains that begin at 1 (Zhang and Sennrich 2019)."""

    weight_roles = roles(weight=WeightRole.NORM)

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, y: Tensor) -> Tensor:
        return y * inverse_norm(y, NORM_EPSILON, mean=True) * self.weight


def inverse_norm(x: Tensor, epsilon: float, *, mean: bool = False) -> Tensor:
    """Return 1 / √(Σ x² + ε) for each vector of x (…, width), or 1 / √(Σ x² / width + ε) with `mean`; (…, 1).

    For a float16 it is computed in single precision, because its gradient would overflow at short vectors.
    """
    exact = x.float() if x.dtype == torch.float16 else x
    squares = exact.square()
    total = squares.mean(-1, keepdim=True) if mean else squares.sum(-1, keepdim=True)
    found = (total + epsilon).rsqrt()
    return found if exact is x else found.to(x.dtype)


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
    y = y if norm is None else norm(y)
    if gate is not None:
        y = y * GATES[kind](gate.to(y.dtype).view(y.shape))
    return y.flatten(2)
