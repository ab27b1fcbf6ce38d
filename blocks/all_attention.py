"""The all-attention blocks: attention over a window of the past and over persistent vectors."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Self

import torch
from torch import Tensor, nn

from ..grammar.attention import window_of
from ..grammar.vocabulary import Settings, whole
from ..grammar.windows import Window
from .block import Block, Context, module
from .dropout import Dropout
from .initial import Drawn
from .window import Positions, Uniform, WindowAttention, by_head, by_position, loaded


class Persistent(Drawn):
    """Vectors of each head: keys √head_width · k′, k′ ~ N(0, 1/head_width), values √N · v′, v′ ~ N(0, 1/N).

    Sukhbaatar et al. 2019, section 4.1.
    """

    def __init__(self, *, heads: int, vectors: int, head_width: int) -> None:
        super().__init__()
        self.keys = nn.Parameter(torch.empty(heads, vectors, head_width))
        self.vectors = nn.Parameter(torch.empty(heads, vectors, head_width))

    def initialise(self, generator: torch.Generator | None) -> None:
        """Draw k′, then v′."""
        _, count, head_width = self.keys.shape
        nn.init.normal_(self.keys, std=head_width**-0.5, generator=generator)
        nn.init.normal_(self.vectors, std=count**-0.5, generator=generator)

    def scores(self, q: Tensor) -> Tensor:
        """(heads, batch, queries, N) of scaled queries (heads, batch, queries, head_width)."""
        keys = self.keys * math.sqrt(self.keys.shape[-1])
        found = q.flatten(1, 2) @ keys.transpose(1, 2)  # (heads, batch · queries, N)
        return found.view(*q.shape[:-1], -1)

    def values(self, weights: Tensor) -> Tensor:
        """(heads, batch, queries, head_width) of weights (heads, batch, queries, N)."""
        values = self.vectors * math.sqrt(self.vectors.shape[1])
        return (weights.flatten(1, 2) @ values).view(*weights.shape[:-1], -1)


class PersistentAttention(Block):
    """What the blocks with persistent vectors have in common: projections without bias, and the window."""

    def __init__(
        self,
        *,
        width: int,
        heads: int,
        seeing: int,
        vectors: tuple[int, int, int],
        window: Window,
        positions: Positions,
        dropout: float,
    ) -> None:
        """Queries of `heads` heads, keys and values of those `seeing` the window.

        `vectors` are heads, number and width of the persistent ones.
        """
        super().__init__()
        self.heads = heads
        self.seeing = seeing
        self.query = Uniform(width, heads * window.head_width)
        self.key_value = Uniform(width, seeing * window.head_width, maps=2)
        self.window = WindowAttention(window, heads=seeing, positions=positions, dropout=dropout)
        held, count, head_width = vectors
        self.persistent = Persistent(heads=held, vectors=count, head_width=head_width) if count else None
        self.output = Uniform(heads * window.head_width, width)
        self.dropout = Dropout(dropout)
        self.memory = self.window.furthest
        self.register_load_state_dict_post_hook(loaded)

    @classmethod
    def build(cls, settings: Settings, context: Context) -> Self:
        """The block with these settings; windows of one kind in a model share their position vectors."""
        window = window_of(settings, causal=context.causal)
        heads = whole(settings, "heads")
        seeing, vectors = cls._shares(heads, window.head_width, whole(settings, "N"))
        positions = context.share(window.shared, lambda: Positions(window.rows, window.head_width))
        return cls(
            width=context.width,
            heads=heads,
            seeing=seeing,
            vectors=vectors,
            window=window,
            positions=positions,
            dropout=context.attention_dropout,
        )

    @classmethod
    def _shares(cls, heads: int, head_width: int, count: int) -> tuple[int, tuple[int, int, int]]:
        """How many heads see the window; heads, number and width of persistent vectors."""
        return heads, (heads, count, head_width)

    @abstractmethod
    def mix(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        """(batch, length, inner) of scaled queries, keys and values (heads, batch, length, head_width)."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Every position attends to its window and to the vectors."""
        return self._attend(x, x, mask)

    def stream(self, x: Tensor, past: Tensor) -> Tensor:
        """Queries of x alone, keys and values of what it can see."""
        seen = past[:, max(0, past.shape[1] - self.window.furthest) :]
        return self._attend(x, torch.cat([seen, x], 1) if seen.shape[1] else x, None)

    def after_step(self) -> None:
        """Take note of new spans."""
        self.window.after_step()
        self.memory = self.window.furthest

    def penalty(self) -> Tensor | None:
        """The mean span in tokens, where heads learn it."""
        return self.window.penalty()

    def _attend(self, x: Tensor, seen: Tensor, mask: Tensor | None) -> Tensor:
        head_width = self.query.out_features // self.heads
        q = by_head(self.query(x), self.heads, 1)[0] * head_width**-0.5
        k, v = by_head(self.key_value(seen), self.seeing, 2).unbind(0)
        return self.output(self.mix(q, k, v, mask))

    def _alone(self, vectors: Persistent, q: Tensor) -> Tensor:
        """What vectors with a softmax of their own give, (heads, batch, queries, head_width)."""
        return vectors.values(self.dropout(torch.softmax(vectors.scores(q), -1)))


@module("all_attn")
class AllAttention(PersistentAttention):
    """One softmax over the window and the persistent vectors."""

    def mix(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        """As described."""
        return by_position(self.window(q, k, v, mask, self.persistent))


@module("attn_split")
class AttentionSplit(PersistentAttention):
    """A softmax over the window and one over the persistent vectors, their outputs added."""

    def mix(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        """As described."""
        y = self.window(q, k, v, mask)
        return by_position(y if self.persistent is None else y + self._alone(self.persistent, q))


@module("head_split")
class HeadSplit(PersistentAttention):
    """The first half of the heads sees the window, the second the persistent vectors."""

    @classmethod
    def _shares(cls, heads: int, head_width: int, count: int) -> tuple[int, tuple[int, int, int]]:
        return heads // 2, (heads // 2, count, head_width)

    def mix(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        """As described; without vectors the second half gives nothing."""
        of_window, of_vectors = q.split(self.seeing)
        y = self.window(of_window, k, v, mask)
        beside = y * 0 if self.persistent is None else self._alone(self.persistent, of_vectors)
        return by_position(torch.cat([y, beside]))


@module("single_head")
class SingleHead(PersistentAttention):
    """As `attn_split`, but one head as wide as all together has the persistent vectors."""

    @classmethod
    def _shares(cls, heads: int, head_width: int, count: int) -> tuple[int, tuple[int, int, int]]:
        return heads, (1, count, heads * head_width)

    def mix(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        """As described; the queries are scaled by the width of the one head."""
        y = by_position(self.window(q, k, v, mask))
        if self.persistent is None:
            return y
        whole_query = by_position(q) * self.heads**-0.5
        return y + self._alone(self.persistent, whole_query[None])[0]


@module("ff_attn")
class FeedForwardAttention(Block):
    """A feed-forward layer with a softmax in place of the activation, without biases."""

    def __init__(self, *, width: int, dim: int, dropout: float) -> None:
        super().__init__()
        self.inner = Uniform(width, dim)
        self.outer = Uniform(dim, width)
        self.dropout = Dropout(dropout)

    @classmethod
    def build(cls, settings: Settings, context: Context) -> Self:
        """The block of `ff_attn(dim)`."""
        return cls(width=context.width, dim=whole(settings, "dim"), dropout=context.attention_dropout)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Each position by itself; the mask changes nothing."""
        return self.outer(self.dropout(torch.softmax(self.inner(x), -1)))
