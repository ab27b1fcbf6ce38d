"""How positions are told apart: by sinusoids of all in turn or of some at random, or by learned vectors."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from ...grammar.model_config import ModelConfig
from ...grammar.positions import POSITIONS, LearnedPosition, PluginPosition
from .block import BuildError, told_by_name
from .dropout import draw_keys
from .initialisation import Embedding


class PositionalEncoding(nn.Module):
    """Vectors by position, in front of a body; learned ones begin and are used as embeddings are."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.name, self.kind = config.position, config.position_kind
        self.vectors: nn.Module | None = None
        self.scale = 1.0
        if isinstance(self.kind, LearnedPosition):
            self.vectors = Embedding(self.kind.count, config.d_model, rule=config.embedding)
            self.scale = config.embedding_scale
        elif isinstance(self.kind, PluginPosition):
            with told_by_name(POSITIONS, config.position):
                self.vectors = self.kind.build(config.d_model)

    def forward(
        self, x: Tensor, start: int = 0, lengths: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """The sum of x (batch, length, width) and the vectors from position `start` on.

        With it come those vectors, (length, width) or those of each sequence, (batch, length, width), if
        sub-layers get them as well. `lengths` (batch,) tells where padding begins.
        """
        if self.name == "none":
            return x, None
        signal = self._signal(x, start, lengths)
        return x + signal, signal if self.kind.before_mixers else None

    def _signal(self, x: Tensor, start: int, lengths: Tensor | None) -> Tensor:
        (_, length, width), longest = x.shape, self.kind.longest
        if longest is not None and start + length > longest:
            raise BuildError(f"expected at most {longest} positions with {self.name}, got {start + length}")
        if self.kind.by_length:
            return self._randomised(x, start, lengths)
        if self.vectors is None:
            return sinusoidal_encoding(length, width, like=x, start=start)
        vectors = self.vectors(torch.arange(start, start + length, device=x.device)).to(x.dtype)
        return vectors if self.scale == 1.0 else vectors * self.scale

    def _randomised(self, x: Tensor, start: int, lengths: Tensor | None) -> Tensor:
        """Sinusoids of as many random positions as each sequence is long, others in each training step."""
        if start:
            raise BuildError(f"expected whole sequences with {self.name} positions, got one from {start} on")
        assert self.kind.longest is not None, "there are positions to choose from"
        count = self.kind.longest
        keys = draw_keys(count, x.device) if self.training else _fixed_keys(count, x.device)
        return sinusoids(choose_positions(keys, x.shape[1], lengths), x.shape[2], like=x)


def choose_positions(keys: Tensor, length: int, lengths: Tensor | None) -> Tensor:
    """The positions with the least keys, in their order: (length,), or of each sequence, (batch, length).

    Each sequence has as many as it is long; behind its end stands the number of all positions.
    """
    rank, places = keys.argsort().argsort(), torch.arange(len(keys), device=keys.device)
    chosen = rank < (length if lengths is None else lengths[:, None])
    return torch.where(chosen, places, len(keys)).sort(-1).values[..., :length]


def _fixed_keys(count: int, device: torch.device) -> Tensor:
    """Keys that look random and are always the same: positions by the mixing function of MurmurHash3."""
    low = 2**32 - 1
    keys = (torch.arange(1, count + 1, device=device) * 0x9E3779B1) & low
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        keys = ((keys ^ (keys >> shift)) * factor) & low
    return keys ^ (keys >> 16)


def sinusoidal_encoding(length: int, width: int, *, like: Tensor, start: int = 0) -> Tensor:
    """The signal (length, width) in the type of `like`, from position `start` on."""
    return sinusoids(torch.arange(start, start + length, device=like.device), width, like=like)


def sinusoids(places: Tensor, width: int, *, like: Tensor) -> Tensor:
    """The signal of whole numbers (…,), (…, width) in the type of `like`: sin, then cos channels.

    Timescales are geometric from 1 to 10^4 (Vaswani et al. 2017, as tensor2tensor lays it out); an odd width
    leaves its last channel zero.
    """
    scales = width // 2
    step = math.log(1e4) / max(scales - 1, 1)
    exact = torch.promote_types(like.dtype, torch.float32)
    rates = torch.exp(-step * torch.arange(scales, device=like.device, dtype=exact))
    angles = places.to(exact).unsqueeze(-1) * rates  # (…, scales)
    return functional.pad(torch.cat([angles.sin(), angles.cos()], -1), (0, width % 2)).to(like.dtype)
