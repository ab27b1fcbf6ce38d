"""The numbers by which attention compares positions: those in turn, or some of a longer range at random."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from ...grammar.model_config import ModelConfig
from ...grammar.positions import RandomisedPairs
from ..core.block import BuildError
from ..core.random_positions import draw_positions


class PairPositions(nn.Module):
    """Where positions stand, for what turns by it, and how far apart they are, for biases by distance.

    At random there are others for each batch in training, the same ones afterwards, and each sequence has
    those of its own length, which its mask (batch, length) tells (Ruoss et al. 2023).
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.name, kind = config.position, config.position_kind
        self.count = kind.count if isinstance(kind, RandomisedPairs) else None

    def angles(self, x: Tensor, width: int, *, start: int = 0, mask: Tensor | None = None) -> Tensor:
        """Those of x (batch, length, …) from `start` on, (length, width / 2), of rates from 1 to 10⁻⁴.

        At random of sequences with a mask (batch, length, width / 2).
        """
        rates = 1e4 ** -(torch.arange(0, width, 2, device=x.device, dtype=torch.float64) / width)
        length = x.shape[1]
        self.check(start, length)
        if self.count is None:
            places = torch.arange(start, start + length, device=x.device)
        else:
            places = self._draw(self.count, x, mask)
        return places.double().unsqueeze(-1) * rates

    def distances(self, queries: int, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """From all of x to the left up to all queries to the right, of which the last stands at the end of x.

        At random of sequences with a mask (batch, distances), else (distances,).
        """
        keys = x.shape[1]
        distances = torch.arange(keys - 1, -queries, -1, device=x.device)
        self.check(keys - queries, keys)
        if self.count is None:
            return distances
        others = self._draw(self.count - 1, x[:, 1:], None if mask is None else mask[:, 1:]) + 1
        return functional.pad(others, (1, 0))[..., distances.abs()] * distances.sign()

    def _draw(self, count: int, x: Tensor, mask: Tensor | None) -> Tensor:
        """As many of 0 … count − 1 as sequences are long, in their order."""
        lengths = None if mask is None else mask.sum(1)
        return draw_positions(count, x.shape[1], lengths, device=x.device, training=self.training)

    def check(self, start: int, length: int) -> None:
        """Raise BuildError at random for a piece of a sequence of unknown length, and for a longer one."""
        if self.count is None:
            return
        if start:
            raise BuildError(f"expected whole sequences with {self.name} positions, got one from {start} on")
        if length > self.count:
            raise BuildError(f"expected at most {self.count} positions with {self.name}, got {length}")
