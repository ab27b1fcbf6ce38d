"""Large vocabularies in clusters by frequency: narrower embeddings, and a softmax in two steps.

Symbols are numbered by falling frequency. Each cluster's vectors are narrower than those of the cluster
before it, and a projection makes them as wide as the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from ...grammar.model_config import Cluster, EmbeddingInit
from ..core.initialisation import Embedding, Linear


class TiedLinear(nn.Module):
    """A linear map without bias, or its transpose, whose weight another module owns and draws."""

    bias: None = None

    def __init__(self, weight: Tensor, *, transposed: bool = False) -> None:
        super().__init__()
        self.weight = weight
        self.transposed = transposed

    def forward(self, x: Tensor) -> Tensor:
        """(..., inputs) to (..., outputs)."""
        return x @ self.weight if self.transposed else functional.linear(x, self.weight)


class AdaptiveEmbedding(nn.Module):
    """Vectors by token, each cluster's from a table of its own (Baevski and Auli 2019, section 3).

    The first cluster's are as wide as the model and not projected.
    """

    def __init__(self, clusters: Sequence[Cluster], width: int, *, rule: EmbeddingInit = "scaled") -> None:
        super().__init__()
        self.clusters = tuple(clusters)
        self.embeddings = nn.ModuleList(Embedding(each.size, each.width, rule=rule) for each in clusters)
        self.maps = nn.ModuleList(Linear(each.width, width, bias=False) for each in clusters[1:])

    def forward(self, tokens: Tensor) -> Tensor:
        """(batch, length) to (batch, length, width).

        Every table is asked for every token, and gives zeros for those of other clusters: shapes do not
        depend on the data.
        """
        found: list[Tensor] = []
        for cluster, table in zip(self.clusters, self.embeddings, strict=True):
            own = (tokens >= cluster.start) & (tokens < cluster.end)
            vectors = table((tokens - cluster.start).clamp(0, cluster.size - 1))
            found.append(torch.where(own.unsqueeze(-1), vectors, 0.0))  # (batch, length, cluster's width)
        first, *others = found
        return sum(
            (project(vectors) for project, vectors in zip(self.maps, others, strict=True)), start=first
        )


class AdaptiveSoftmax(nn.Module):
    """A distribution over the first cluster's symbols and the other clusters, and one within each of those.

    Grave et al. 2017, section 4. With an embedding its tables and projections are used, and no biases.
    """

    def __init__(self, clusters: Sequence[Cluster], width: int, tied: AdaptiveEmbedding | None) -> None:
        super().__init__()
        self.clusters = tuple(clusters)
        others = clusters[1:]
        self.choice = Linear(width, len(others), bias=tied is None)
        if tied is None:
            self.words = Linear(width, clusters[0].size, bias=True)
            self.tables = nn.ModuleList(Linear(each.width, each.size, bias=True) for each in others)
            self.projections = nn.ModuleList(Linear(width, each.width, bias=False) for each in others)
        else:
            words, *tables = (TiedLinear(cast("Embedding", each).weight) for each in tied.embeddings)
            self.words, self.tables = words, nn.ModuleList(tables)
            maps = (TiedLinear(cast("Linear", each).weight, transposed=True) for each in tied.maps)
            self.projections = nn.ModuleList(maps)

    def forward(self, x: Tensor) -> Tensor:
        """Log-probabilities (..., vocab) of x (..., width); those of each position sum to 1."""
        head = functional.log_softmax(self._head(x), -1)  # (..., first cluster's size + other clusters)
        size = self.clusters[0].size
        parts = [head[..., :size]]
        for place in range(1, len(self.clusters)):
            within = functional.log_softmax(self._tail(place, x), -1)
            parts.append(head[..., size + place - 1, None] + within)
        return torch.cat(parts, -1)

    def nll(self, x: Tensor, targets: Tensor) -> Tensor:
        """Minus the log-probability of each target (...), in nats, from x (..., width).

        A cluster's symbols are scored only where the target is one of them.
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
        """Scores of the first cluster's symbols, then of the other clusters.

        One product with the weights side by side: the scores are larger than they, and not copied.
        """
        words, choice = self.words, self.choice
        weight = torch.cat([words.weight, choice.weight])
        bias = None if words.bias is None else torch.cat([words.bias, choice.bias])
        return functional.linear(x, weight, bias)

    def _tail(self, place: int, x: Tensor) -> Tensor:
        """Scores of the symbols of a cluster behind the first."""
        return self.tables[place - 1](self.projections[place - 1](x))
