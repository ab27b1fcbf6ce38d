"""What is added to the scores of attention by the distance of query and key: ALiBi's slopes, T5's buckets."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from ...grammar.vocabulary.attention import BUCKETS
from ..core.initialisation import Initialisable
from ..core.weight_roles import WeightRole, roles

FURTHEST = 128
"""Distances from this on share the last bucket of a side."""


class DistanceBias(nn.Module, ABC):
    """A bias for each head and distance."""

    @abstractmethod
    def by_distance(self, distances: Tensor) -> Tensor:
        """(heads, …) of whole numbers (…,), negative for keys to the right."""

    def forward(self, distances: Tensor, keys: int, dtype: torch.dtype) -> Tensor:
        """Return (heads, queries, keys) of all distances, greatest first, (keys + queries − 1,).

        By those of each sequence, (batch, keys + queries − 1), it is (batch, heads, queries, keys).
        """
        biases = self.by_distance(distances).to(dtype)
        if torch.compiler.is_exporting():  # a window of `unfold` has one width in an exported program
            steps = torch.arange(distances.shape[-1] - keys, -1, -1, device=distances.device)
            biases = biases[..., steps[:, None] + torch.arange(keys, device=distances.device)]
        else:
            biases = biases.unfold(-1, keys, 1).flip(-2)
        return biases if distances.dim() == 1 else biases.transpose(0, 1)


class LinearBias(DistanceBias):
    """Biases of −2^(−8 h / heads) for each position between, h from 1 on (Press et al. 2022, section 3).

    Departure: the program of its authors has other slopes where the number of heads is no power of two, as
    with 3, 6 or 12. It takes those of the next smaller power of two, and then every second one of the next
    larger.
    """

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.heads = heads

    def by_distance(self, distances: Tensor) -> Tensor:
        """Nothing is learnt."""
        heads = torch.arange(1, self.heads + 1, device=distances.device, dtype=torch.float64)
        slopes = torch.exp2(-8.0 * heads / self.heads)
        return -slopes.view(-1, *[1] * distances.dim()) * distances.abs()


class BucketBias(DistanceBias, Initialisable):
    """A number for each head and bucket of distances (Raffel et al. 2020, section 2.1, and their program).

    Half of the buckets of a side have one distance each; the others grow, and the last has all the rest.
    """

    weight_roles = roles(weight=WeightRole.BIAS)

    def __init__(self, heads: int, width: int, *, causal: bool) -> None:
        super().__init__()
        self.causal, self.std = causal, width**-0.5
        self.weight = nn.Parameter(torch.empty(heads, BUCKETS))

    def initialise(self, generator: torch.Generator | None) -> None:
        """As N(0, 1 / width)."""
        nn.init.normal_(self.weight, std=self.std, generator=generator)

    def by_distance(self, distances: Tensor) -> Tensor:
        """The numbers of their buckets."""
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
    """What is added for `pos=alibi` or `pos=t5`, None for any other."""
    match kind:
        case "alibi":
            return LinearBias(heads)
        case "t5":
            return BucketBias(heads, width, causal=causal)
        case _:
            return None
