"""Positions: vectors that are added to a model's input, and positions of query-key pairs in attention.

The vectors are sinusoids at consecutive or random positions, or learned. The positions of pairs rotate
queries and keys, or give biases by distance: ALiBi's slopes or T5's buckets.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional

from ...grammar.model_config import ModelConfig
from ...grammar.positions import (
    POSITIONS,
    LearnedPosition,
    PluginPosition,
    RandomisedPairs,
    RandomisedPosition,
)
from ...grammar.vocabulary.attention import BUCKETS
from .block import BuildError
from .initialisation import Embedding, Initialisable, WeightRole, declare_role, roles
from .plugin_parts import build_plugin_part


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
            build = partial(self.kind.build, config.settings.d_model)
            self.vectors = build_plugin_part(POSITIONS, config.settings.position, self.kind, build)
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
    """Return the sinusoids (length, width) of positions from `start` on, in the type and device of `like`."""
    return sinusoids(torch.arange(start, start + length, device=like.device), width, like.dtype)


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
    if training:
        # of all int64, two keys of a draw are practically never equal
        keys = torch.randint(-(2**63), 2**63 - 1, (count,), device=device)
    else:
        keys = _fixed_keys(count, device)
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


FURTHEST = 128
"""Distances from this one on share the last bucket of a side."""


class DistanceBias(nn.Module, ABC):
    """Base class of biases that depend on the distance between query and key.

    They are added to attention scores. Each head has its own.
    """

    @abstractmethod
    def by_distance(self, distances: Tensor) -> Tensor:
        """Return the biases (heads, …) at the given distances (…,).

        Distances are whole numbers, negative for a key on the right.
        """

    def forward(self, distances: Tensor, keys: int, dtype: torch.dtype) -> Tensor:
        """Return the biases of all query-key pairs, (heads, queries, keys).

        `distances` (keys + queries − 1,) are in decreasing order. Distances for each sequence, (batch, keys +
        queries − 1), give (batch, heads, queries, keys).
        """
        biases = self.by_distance(distances).to(dtype)
        biases = biases.unfold(-1, keys, 1).flip(-2)  # the first window belongs to the last query
        return biases if distances.dim() == 1 else biases.transpose(0, 1)


class LinearBias(DistanceBias):
    """Biases of attention with `pos=alibi`, in proportion to the distance.

    For head number h they are the distance times −2^(−8 h / heads) (Press et al. 2022, section 3). Heads
    count from 1. Difference: the authors' program has other slopes if the number of heads is not a power of
    two, such as 3, 6 or 12. It takes the slopes of the next smaller power of two, and then every second slope
    of the next larger.
    """

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.heads = heads

    def by_distance(self, distances: Tensor) -> Tensor:
        heads = torch.arange(1, self.heads + 1, device=distances.device, dtype=torch.float64)
        slopes = torch.exp2(-8.0 * heads / self.heads)
        return -slopes.view(-1, *[1] * distances.dim()) * distances.abs()


class BucketBias(DistanceBias, Initialisable):
    """A trained bias for each head and bucket, which is a range of distances (Raffel et al. 2020).

    Half of the buckets of a side have one distance each. The others grow, and the last one has all larger
    distances (section 2.1 and the authors' program).
    """

    weight_roles = roles(weight=WeightRole.BIAS)

    def __init__(self, heads: int, width: int, *, causal: bool) -> None:
        super().__init__()
        self.causal, self.std = causal, width**-0.5
        self.weight = nn.Parameter(torch.empty(heads, BUCKETS))

    def initialise(self, generator: torch.Generator | None) -> None:
        """Draw the biases from N(0, 1 / width)."""
        nn.init.normal_(self.weight, std=self.std, generator=generator)

    def by_distance(self, distances: Tensor) -> Tensor:
        side = BUCKETS if self.causal else BUCKETS // 2
        exact = side // 2
        steps = distances.clamp(min=0) if self.causal else distances.abs()
        grown = (steps.clamp(min=exact).double() / exact).log() / math.log(FURTHEST / exact)
        bucket = torch.where(
            steps < exact, steps, (exact + (grown * (side - exact)).long()).clamp(max=side - 1)
        )
        if not self.causal:
            bucket = bucket + side * (distances < 0)
        return self.weight[:, bucket]


def build_distance_bias(kind: str, heads: int, width: int, *, causal: bool) -> DistanceBias | None:
    """Return the module for the distance biases of `pos=alibi` or `pos=t5`; None for other values."""
    match kind:
        case "alibi":
            return LinearBias(heads)
        case "t5":
            return BucketBias(heads, width, causal=causal)
        case _:
            return None


class PairPositions(nn.Module):
    """Position numbers of queries and keys, either consecutive or random.

    They rotate queries and keys, or give the distances for biases. Random positions differ between batches in
    training and are fixed afterwards. Each sequence has as many positions as its length, which its mask
    (batch, length) gives (Ruoss et al. 2023).
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.name, kind = config.settings.position, config.settings.position_kind
        self.count = kind.count if isinstance(kind, RandomisedPairs) else None

    def angles(self, x: Tensor, width: int, *, start: int = 0, mask: Tensor | None = None) -> Tensor:
        """Return the angles (length, width / 2) by which to rotate vectors x (batch, length, …).

        Each pair of channels has a rate, from 1 to about 10⁻⁴. Its angle is the rate times the position. For
        random positions with a mask, the angles are (batch, length, width / 2).
        """
        # in double precision, because single precision rounds the large angles of far positions
        rates = 1e4 ** -(torch.arange(0, width, 2, device=x.device, dtype=torch.float64) / width)
        length = x.shape[1]
        self.check(start, length)
        if self.count is None:
            places = torch.arange(start, start + length, device=x.device)
        else:
            places = self._draw(self.count, x, mask)
        return places.double().unsqueeze(-1) * rates

    def distances(self, queries: int, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return all distances that occur between queries and keys, in decreasing order.

        They are (batch, distances) for random positions with a mask, otherwise (distances,). Keys on the left
        come first.
        """
        keys = x.shape[1]
        distances = torch.arange(keys - 1, -queries, -1, device=x.device)
        self.check(keys - queries, keys)
        if self.count is None:
            return distances
        others = self._draw(self.count - 1, x[:, 1:], None if mask is None else mask[:, 1:]) + 1
        return functional.pad(others, (1, 0))[..., distances.abs()] * distances.sign()

    def _draw(self, count: int, x: Tensor, mask: Tensor | None) -> Tensor:
        lengths = None if mask is None else mask.sum(1)
        return draw_positions(count, x.shape[1], lengths, device=x.device, training=self.training)

    def check(self, start: int, length: int) -> None:
        """Check that there are enough numbers for `length` positions from `start` on.

        Consecutive ones have no limit. If numbers are random, raise BuildError for a piece of a sequence,
        and for one that is too long.
        """
        if self.count is None:
            return
        if start:
            raise BuildError(
                f"{self.name} positions need whole sequences, got a part that starts at position {start}"
            )
        if length > self.count:
            raise BuildError(f"expected at most {self.count} positions with {self.name}, got {length}")
