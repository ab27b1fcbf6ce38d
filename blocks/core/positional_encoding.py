"""How positions are told apart: the sinusoidal timing signal, and the modules of plug-ins."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from ...grammar.model_config import ModelConfig
from ...grammar.positions import POSITIONS, PluginPosition
from .block import BuildError, told_by_name


class PositionalEncoding(nn.Module):
    """Vectors by position, in front of a body."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.name, self.kind = config.position, POSITIONS[config.position]
        self.vectors: nn.Module | None = None
        if isinstance(self.kind, PluginPosition):
            with told_by_name(POSITIONS, config.position):
                self.vectors = self.kind.build(config.d_model)

    def forward(self, x: Tensor, start: int = 0) -> tuple[Tensor, Tensor | None]:
        """The sum of x (batch, length, width) and the vectors from position `start` on.

        With it come those vectors, (length, width), if sub-layers get them as well.
        """
        if self.name == "none":
            return x, None
        signal = self._signal(x, start)
        return x + signal, signal if self.kind.before_mixers else None

    def _signal(self, x: Tensor, start: int) -> Tensor:
        length = x.shape[1]
        if self.vectors is None:
            return sinusoidal_encoding(length, x.shape[2], like=x, start=start)
        if self.kind.longest is not None and start + length > self.kind.longest:
            raise BuildError(
                f"expected at most {self.kind.longest} positions with {self.name}, got {start + length}"
            )
        return self.vectors(torch.arange(start, start + length, device=x.device)).to(x.dtype)


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
