"""Positional encodings: sinusoids at consecutive or random positions, or learned vectors."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from ...grammar.model_config import ModelConfig
from ...grammar.positions import POSITIONS, LearnedPosition, PluginPosition, RandomisedPosition
from .block import BuildError, plugin_named_in_errors
from .dropout import draw_keys
from .initialisation import Embedding, WeightRole, declare_role


class PositionalEncoding(nn.Module):
    """A module that adds position vectors to the input of a model's body.

    Learned vectors are initialised and scaled like embeddings.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.name, self.kind = config.settings.position, config.settings.position_kind
        self.vectors: nn.Module | None = None
        self.scale = 1.0
        if isinstance(self.kind, LearnedPosition):
            self.vectors = Embedding(self.kind.count, config.settings.d_model, rule=config.settings.embedding)
            self.scale = config.settings.embedding_scale
        elif isinstance(self.kind, PluginPosition):
            with plugin_named_in_errors(POSITIONS, config.settings.position):
                self.vectors = self.kind.build(config.settings.d_model)
                declare_role(self.vectors, WeightRole.EMBEDDING)

    def forward(
        self, x: Tensor, start: int = 0, lengths: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """Add position vectors to x (batch, length, width).

        The first position has the number `start`. The second result is the vectors if sub-layers need them
        too, else None. They are (length, width), or (batch, length, width) if they differ between sequences.
        `lengths` (batch,) excludes padding. Raise BuildError if a sequence has too many positions, or if this
        encoding needs whole sequences and `start` is not 0.
        """
        kind, (_, length, width) = self.kind, x.shape
        if kind.longest is not None and start + length > kind.longest:
            got = f"got {start + length}"
            raise BuildError(f"expected at most {kind.longest} positions with {self.name}, {got}")
        if kind.by_length and start:
            got = f"got a part that starts at position {start}"
            raise BuildError(f"{self.name} positions need whole sequences, {got}")
        if not kind.adds_vectors:
            return x, None
        if isinstance(kind, RandomisedPosition):
            places = draw_positions(kind.count, length, lengths, device=x.device, training=self.training)
            signal = sinusoids(places, width, x.dtype)
        elif self.vectors is None:
            signal = sinusoidal_encoding(length, width, like=x, start=start)
        else:
            signal = self.vectors(torch.arange(start, start + length, device=x.device)).to(x.dtype)
            signal = signal if self.scale == 1.0 else signal * self.scale
        return x + signal, signal if kind.before_mixers else None


def sinusoidal_encoding(length: int, width: int, *, like: Tensor, start: int = 0) -> Tensor:
    """Return the sinusoids (length, width) of the positions from `start` on.

    They have the type and the device of `like`.
    """
    is_plain = like.is_cpu and type(like) is Tensor and not torch.compiler.is_compiling()
    if start or not is_plain or _outside_transforms is None:
        return sinusoids(torch.arange(start, start + length, device=like.device), width, like.dtype)
    return _whole_encoding(length, width, like.dtype)


# torch has no public way to leave a transform for a while; without it, nothing is cached
_outside_transforms: Any = getattr(torch._C, "_DisableFuncTorch", None)


@lru_cache(maxsize=8)
def _whole_encoding(length: int, width: int, dtype: torch.dtype) -> Tensor:
    """Return the sinusoids of the positions below `length`, on the CPU.

    They are cached, since computing them takes 6 % of a step of a small model.
    """
    # training rejects tensors that were made in inference mode or in a transform, and these serve all
    with torch.inference_mode(False), _outside_transforms():
        return sinusoids(torch.arange(length), width, dtype)


def sinusoids(places: Tensor, width: int, dtype: torch.dtype) -> Tensor:
    """Return the sinusoids (…, width) of position numbers (…,): first all sines, then all cosines.

    Timescales are geometric from 1 to 10^4 (Vaswani et al. 2017, in tensor2tensor's layout); an odd width
    leaves its last channel zero.
    """
    scales = width // 2
    step = math.log(1e4) / max(scales - 1, 1)
    exact = torch.promote_types(dtype, torch.float32)
    rates = torch.exp(-step * torch.arange(scales, device=places.device, dtype=exact))
    angles = places.to(exact).unsqueeze(-1) * rates  # (…, scales)
    return functional.pad(torch.cat([angles.sin(), angles.cos()], -1), (0, width % 2)).to(dtype)


def draw_positions(
    count: int, length: int, lengths: Tensor | None, *, device: torch.device, training: bool
) -> Tensor:
    """Draw distinct random positions below `count`, in increasing order.

    The result is (length,), or (batch, length) if `lengths` are given. Outside training, return the same
    positions every time.
    """
    keys = draw_keys(count, device) if training else _fixed_keys(count, device)
    return choose_positions(keys, length, lengths)


def choose_positions(keys: Tensor, length: int, lengths: Tensor | None) -> Tensor:
    """Return the positions whose random numbers in `keys` are smallest, in increasing order.

    The result is (length,), or (batch, length) if `lengths` are given. `keys` has a random number for each
    possible position. Each sequence gets as many positions as its length. Padding gets the number of all
    positions.
    """
    # sorting the sorted order gives the rank of each key
    rank, places = keys.argsort().argsort(), torch.arange(len(keys), device=keys.device)
    chosen = rank < (length if lengths is None else lengths[:, None])
    return torch.where(chosen, places, len(keys)).sort(-1).values[..., :length]


def _fixed_keys(count: int, device: torch.device) -> Tensor:
    """Return `count` numbers that look random but are always the same (the final mix of MurmurHash3)."""
    low = 2**32 - 1
    # 2^32 divided by the golden ratio spreads consecutive numbers; the other constants are MurmurHash3's
    keys = (torch.arange(1, count + 1, device=device) * 0x9E3779B1) & low
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        keys = ((keys ^ (keys >> shift)) * factor) & low
    return keys ^ (keys >> 16)
