"""The element-wise functions that recipes name, and the gate of the gated convolutions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": functional.relu,
    "gelu": functional.gelu,
    "gelu_tanh": partial(functional.gelu, approximate="tanh"),
    "tanh": torch.tanh,
    "leaky_relu": functional.leaky_relu,
}


def saturating_sigmoid(x: Tensor) -> Tensor:
    """Return clip(1.2 sigmoid(x) - 0.1, 0, 1), a gate that can close and open fully."""
    return (1.2 * torch.sigmoid(x) - 0.1).clamp(0.0, 1.0)
