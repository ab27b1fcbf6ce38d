"""The decoder of a bottleneck: it says what stood at each position, of the vector of the last one alone."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from ...grammar import ModelConfig
from ..core.initialisation import Linear
from ..core.normalisation import build_norm
from ..core.positional_encoding import sinusoidal_encoding


class BottleneckDecoder(nn.Module):
    """y_t = gelu(W₂ norm(gelu(W₁ norm(x_last + p_t)))), p_t the sinusoids of position t (Poli et al. 2024).

    It follows the auto-encoder of MAD's program; the last norm and the output layer come after it.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        width = config.d_model
        self.norms = nn.ModuleList(build_norm(config) for _ in range(2))
        self.maps = nn.ModuleList(Linear(width, width, bias=True) for _ in range(2))

    def forward(self, x: Tensor, lengths: Tensor | None) -> Tensor:
        """Map (batch, length, width) to the same; only the last valid position is read."""
        batch, length, width = x.shape
        rows = torch.arange(batch, device=x.device)
        code = x[:, -1] if lengths is None else x[rows, lengths - 1]
        y = code.unsqueeze(1) + sinusoidal_encoding(length, width, like=x)
        for norm, linear in zip(self.norms, self.maps, strict=True):
            y = functional.gelu(linear(norm(y)))
        return y
