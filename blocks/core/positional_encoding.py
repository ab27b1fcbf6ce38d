"""The sinusoidal timing signal."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

from ...grammar.model_config import ModelConfig


def add_timing(x: Tensor, config: ModelConfig, *, start: int = 0) -> tuple[Tensor, Tensor | None]:
    """The sum of x (batch, length, width) and the signal from position `start` on; that signal, if any."""
    if config.position == "none":
        return x, None
    signal = sinusoidal_encoding(x.shape[1], x.shape[2], like=x, start=start)
    return x + signal, signal


def sinusoidal_encoding(length: int, width: int, *, like: Tensor, start: int = 0) -> Tensor:
    """The signal (length, width) in the type of `like`, from position `start` on: sin, then cos channels.

    Timescales are geometric from 1 to 10^4 (Vaswani et al. 2017, as tensor2tensor lays it out); an odd width
    leaves its last channel zero.
    """
    scales = width // 2
    step = math.log(1e4) / max(scales - 1, 1)
    exact = torch.promote_types(like.dtype, torch.float32)
    rates = torch.exp(-step * torch.arange(scales, device=like.device, dtype=exact))
    angles = (
        torch.arange(start, start + length, device=like.device, dtype=exact)[:, None] * rates
    )  # (length, scales)
    return functional.pad(torch.cat([angles.sin(), angles.cos()], 1), (0, width % 2)).to(like.dtype)
