"""Embeddings and softmax for large vocabularies in clusters.

A cluster has symbols of similar frequency. Symbols are numbered by falling frequency. Each cluster's vectors
are narrower than the previous cluster's, and a projection widens them to the model's width. The first
cluster's vectors have that width already, and are only projected if the config says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from ...grammar.model_config import BiasInit, Cluster, EmbeddingInit
from ..core.initialisation import Embedding, Initialisable, Linear, WeightRole, draw_bias, roles


class TiedLinear(Initialisable):
    """A linear map that uses another module's weight. It has its own bias if `bias` is set."""

    weight_roles = roles(bias=WeightRole.BIAS)

    bias: nn.Parameter | None

    def __init__(self, weight: Tensor, *, bias: bool = False, bias_init: BiasInit = "zero") -> None:
        super().__init__()
        self.weight = weight
        self.bias = nn.Parameter(torch.empty(len(weight))) if bias else None
        self.bias_init: BiasInit = bias_init

    def initialise(self, generator: torch.Generator | None) -> None:
        if self.bias is not None:
            draw_bias(
                self.bias, self.bias_init, generator, inputs=self.weight.shape[1], sizes=self.weight.shape[:1]
            )

    def forward(self, x: Tensor) -> Tensor:
        return functional.linear(x, self.weight, self.bias)


class TransposedLinear(nn.Module):
    """A linear map whose weight is the transposed weight of another module."""

    def __init__(self, weight: Tensor) -> None:
        super().__init__()
        self.weight = weight

    def forward(self, x: Tensor) -> Tensor:
        return functional.linear(x, self.weight.T)


class AdaptiveEmbedding(nn.Module):
    """Token embeddings with a separate table for each cluster (Baevski and Auli 2019, section 3)."""

    def __init__(self, clusters: Sequence[Cluster], width: int, *, rule: EmbeddingInit = "scaled") -> None:
        super().__init__()
        self.clusters = tuple(clusters)
        self.embeddings = nn.ModuleList(Embedding(each.size, each.width, rule=rule) for each in clusters)
        projected = [each for each in clusters if each.projected]
        self.maps = nn.ModuleList(Linear(each.width, width, bias=False) for each in projected)

    def forward(self, tokens: Tensor) -> Tensor:
        """Map (batch, length) to (batch, length, width).

        Every table looks up every token, with zeros for tokens of other clusters, so that shapes do not
        depend on the data.
        """
        found: list[Tensor] = []
        for cluster, table in zip(self.clusters, self.embeddings, strict=True):
            own = (tokens >= cluster.start) & (tokens < cluster.end)
            vectors = table((tokens - cluster.start).clamp(0, cluster.size - 1))
            found.append(torch.where(own.unsqueeze(-1), vectors, 0.0))  # (batch, length, cluster's width)
        plain = len(found) - len(self.maps)  # 0 if the first cluster is projected too, else 1
        wide = found[:plain] + [each(vectors) for each, vectors in zip(self.maps, found[plain:], strict=True)]
        return sum(wide[1:], start=wide[0])


class AdaptiveSoftmax(nn.Module):
    """A softmax in two steps: first over frequent symbols and clusters, then within one cluster.

    The first step covers the symbols of the first cluster, and one entry for each other cluster. Grave et al.
    2017, section 4. If an embedding is given, the softmax shares its tables and projections.
    """

    words: Linear | TiedLinear

    def __init__(
        self,
        clusters: Sequence[Cluster],
        width: int,
        tied: AdaptiveEmbedding | None,
        *,
        bias: bool,
        bias_init: BiasInit = "zero",
    ) -> None:
        super().__init__()
        self.clusters = tuple(clusters)
        self.choice = Linear(width, len(clusters) - 1, bias=bias, bias_init=bias_init)
        if tied is None:
            words, *tables = (
                Linear(each.width, each.size, bias=bias, bias_init=bias_init) for each in clusters
            )
            projected = [each for each in clusters if each.projected]
            projections = [Linear(width, each.width, bias=False) for each in projected]
        else:
            weights = [cast("Embedding", each).weight for each in tied.embeddings]
            words, *tables = (TiedLinear(each, bias=bias, bias_init=bias_init) for each in weights)
            projections = [TransposedLinear(cast("Linear", each).weight) for each in tied.maps]
        self.words, self.tables = words, nn.ModuleList(tables)
        self.projections = nn.ModuleList(projections)

    def forward(self, x: Tensor) -> Tensor:
        """Return log-probabilities (..., vocab) of x (..., width), normalised at each position."""
        head = functional.log_softmax(self._head(x), -1)  # (..., first cluster's size + other clusters)
        size = self.clusters[0].size
        parts = [head[..., :size]]
        for place in range(1, len(self.clusters)):
            within = functional.log_softmax(self._tail(place, x), -1)
            parts.append(head[..., size + place - 1, None] + within)
        return torch.cat(parts, -1)

    def nll(self, x: Tensor, targets: Tensor) -> Tensor:
        """Return the negative log-likelihood of each target (...), in nats, from x (..., width).

        A cluster's symbols are only scored for targets in it.
        """
        shape, x, targets = targets.shape, x.reshape(-1, x.shape[-1]), targets.reshape(-1)
        first = self.clusters[0].size
        places = torch.zeros_like(targets)  # 0 for the first cluster
        for cluster in self.clusters[1:]:
            places = places + (targets >= cluster.start)
        entries = torch.where(places == 0, targets, first - 1 + places)
        lost = functional.cross_entropy(self._head(x), entries, reduction="none")
        for place, cluster in enumerate(self.clusters[1:], 1):
            rows = (places == place).nonzero().squeeze(1)
            scores = self._tail(place, x[rows])  # (rows, cluster's size)
            within = functional.cross_entropy(scores, targets[rows] - cluster.start, reduction="none")
            lost = lost.index_add(0, rows, within)
        return lost.view(shape)

    def _head(self, x: Tensor) -> Tensor:
        """Return the scores of the first step: frequent symbols, then one for each other cluster.

        A single product with the concatenated weights avoids copying the scores, which are larger than the
        weights.
        """
        words, choice = self.words, self.choice
        if self.clusters[0].projected:
            x = self.projections[0](x)
        weight = torch.cat([words.weight, choice.weight])
        bias = None if words.bias is None else torch.cat([words.bias, choice.bias])
        return functional.linear(x, weight, bias)

    def _tail(self, place: int, x: Tensor) -> Tensor:
        return self.tables[place - 1](self.projections[place - len(self.clusters)](x))
