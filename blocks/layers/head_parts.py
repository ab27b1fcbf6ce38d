"""Parts that attention heads and recurrences share: norms, rotations, short convolutions and gates.

Convolution and gate have custom gradients, which keep their inputs and recompute the rest; on a CPU this is
faster than keeping it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..core.initialisation import Initialisable, WeightRole, roles
from ..core.operations import SavedContext

GATES: dict[str, Callable[[Tensor], Tensor]] = {
    "silu": functional.silu,
    "sigmoid": torch.sigmoid,
    "gelu": functional.gelu,
}
"""The activations that turn a linear map of the input into a gate, by their names."""


def _silu_gradient(grad_silu: Tensor, x: Tensor) -> Tensor:
    """Return the gradient of SiLU, computed by operations that can be differentiated again.

    Torch's own gradient cannot be differentiated.
    """
    if not torch.is_grad_enabled():
        return torch.ops.aten.silu_backward(grad_silu, x)
    share = torch.sigmoid(x)
    return grad_silu * share * (1.0 + x * (1.0 - share))


_GATE_GRADIENTS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "silu": _silu_gradient,
    "sigmoid": lambda grad_gate, x: torch.ops.aten.sigmoid_backward(grad_gate, torch.sigmoid(x)),
    "gelu": torch.ops.aten.gelu_backward,
}
"""Functions that return the gradient of a gate's input from the gradient of the gate."""

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
        y = _Convolution.apply(length, self.active, seen, self.weight)
        missing = before if torch.compiler.is_exporting() else max(0, before - seen.shape[1])
        kept = functional.pad(seen, (0, 0, missing, 0)) if missing else seen
        return y, kept[:, kept.shape[1] - before :]


class _Convolution(torch.autograd.Function):
    """Autograd function: a causal convolution of each channel, followed by SiLU if `active`."""

    generate_vmap_rule = True

    @staticmethod
    def forward(length: int, active: bool, x: Tensor, weight: Tensor) -> Tensor:
        """Convolve x (batch, positions, channels) with (taps, channels); return the last `length` outputs."""
        y = _convolve(x, weight, length)
        return functional.silu(y) if active else y

    @staticmethod
    def setup_context(ctx: SavedContext, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.length, ctx.active = inputs[:2]
        ctx.save_for_backward(*inputs[2:])

    @staticmethod
    def backward(ctx: SavedContext, grad_y: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore -- one output
        x, weight = ctx.saved_tensors
        length = grad_y.shape[1]
        if ctx.active:
            grad_y = _silu_gradient(grad_y, _convolve(x, weight, length))
        grad_x = functional.pad(grad_y * weight[-1], (0, 0, x.shape[1] - length, 0))
        grad_weight: list[Tensor] = []
        for lag, seen, seeing in _lags(x.shape[1], length, len(weight)):
            if lag:
                grad_x[:, seen].add_(grad_y[:, seeing] * weight[-1 - lag])
            grad_weight.append((grad_y[:, seeing] * x[:, seen]).sum((0, 1)))
        return None, None, grad_x, torch.stack(grad_weight[::-1])


def _lags(positions: int, length: int, taps: int) -> list[tuple[int, slice, slice]]:
    """Return the lag of each tap, with its slices of inputs and outputs.

    The tap multiplies the inputs in the first slice for the outputs in the second one.
    """
    first = positions - length
    return [
        (
            lag,
            slice(max(0, first - lag), max(0, positions - lag)),
            slice(min(length, max(0, lag - first)), length),
        )
        for lag in range(taps)
    ]


def _convolve(x: Tensor, weight: Tensor, length: int) -> Tensor:
    """Convolve x, padded with zeros on the left, and return the last `length` outputs."""
    if torch.compiler.is_exporting():  # zeros in front, so that each tap sees positions at every length
        x = functional.pad(x, (0, 0, len(weight) - 1, 0))
    y = x[:, x.shape[1] - length :] * weight[-1]
    for lag, seen, seeing in _lags(x.shape[1], length, len(weight))[1:]:
        y[:, seeing].add_(x[:, seen] * weight[-1 - lag])
    return y


class HeadNorm(nn.Module):
    """RMS norm of each head's vector, with trainable gains that begin at 1 (Zhang and Sennrich 2019)."""

    weight_roles = roles(weight=WeightRole.NORM)

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, y: Tensor) -> Tensor:
        return y * _inverse_scale(y) * self.weight


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
    if gate is None:
        return (y if norm is None else norm(y)).flatten(2)
    weight = None if norm is None else norm.weight
    dtype = y.dtype if weight is None else torch.promote_types(y.dtype, weight.dtype)
    gate = gate.to(dtype).view(y.shape)
    return _GatedHeads.apply(kind, y.to(dtype), gate, weight).flatten(2)


class _GatedHeads(torch.autograd.Function):
    """Autograd function: an optional RMS norm of heads' outputs, times a gate."""

    generate_vmap_rule = True

    @staticmethod
    def forward(kind: str, y: Tensor, gate: Tensor, weight: Tensor | None) -> Tensor:
        """Return y (…, width) times the activated gate (…, width).

        If `weight` holds gains (width), y is normalised first.
        """
        opened = GATES[kind](gate)
        return opened * y if weight is None else opened * weight * y * _inverse_scale(y)

    @staticmethod
    def setup_context(ctx: SavedContext, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.kind = inputs[0]
        ctx.save_for_backward(*inputs[1:])

    @staticmethod
    def backward(ctx: SavedContext, grad_product: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore -- one output
        y, gate, weight = ctx.saved_tensors
        grad_opened, grad_y = grad_product * y, grad_product * GATES[ctx.kind](gate)
        if weight is None:
            return None, grad_y, _GATE_GRADIENTS[ctx.kind](grad_opened, gate), None
        scale = _inverse_scale(y)
        grad_gate = _GATE_GRADIENTS[ctx.kind](grad_opened * scale * weight, gate)
        unit = y * scale
        along = grad_y * unit
        grad_unit = grad_y * weight - unit * ((along @ weight) / y.shape[-1]).unsqueeze(-1)
        return None, grad_unit * scale, grad_gate, along.flatten(0, -2).sum(0)


def _inverse_scale(y: Tensor) -> Tensor:
    """Return the factor that normalises each head's vector: 1 / root mean square, (…, 1)."""
    return (y.square().mean(-1, keepdim=True) + NORM_EPSILON).rsqrt()
