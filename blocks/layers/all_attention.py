"""The all-attention blocks, which attend to a window of the past and to persistent vectors.

Persistent vectors are trainable keys and values that every query sees.
"""

from __future__ import annotations

import math
from abc import abstractmethod

import torch
from torch import Tensor, nn

from ...grammar.vocabulary.attention import window_from_settings
from ...grammar.vocabulary.spec import Settings, as_bool, as_int
from ..core.attention_maps import record_weights
from ..core.block import Block, Context, register_block
from ..core.dropout import Dropout
from ..core.initialisation import Initialisable, WeightRole, roles
from .window_attention import (
    WindowedBlock,
    build_window_attention,
    map_heads,
    merge_heads,
    split_heads,
    uniform_linear,
)


class Persistent(Initialisable):
    """Persistent vectors: N trainable keys and values for each head.

    Every query sees them. The module stores k′ and v′, drawn from N(0, 1/head_width) and N(0, 1/N). Attention
    uses the keys √head_width · k′ and the values √N · v′ (Sukhbaatar et al. 2019, section 5.1).
    """

    weight_roles = roles(keys=WeightRole.EMBEDDING, vectors=WeightRole.EMBEDDING)

    def __init__(self, *, heads: int, vectors: int, head_width: int) -> None:
        super().__init__()
        self.keys = nn.Parameter(torch.empty(heads, vectors, head_width))
        self.vectors = nn.Parameter(torch.empty(heads, vectors, head_width))

    def initialise(self, generator: torch.Generator | None) -> None:
        """Draw the keys from N(0, 1/head_width), then the values from N(0, 1/N)."""
        _, count, head_width = self.keys.shape
        nn.init.normal_(self.keys, std=head_width**-0.5, generator=generator)
        nn.init.normal_(self.vectors, std=count**-0.5, generator=generator)

    def keys_values(self) -> tuple[Tensor, Tensor]:
        """Return the keys and values, multiplied by their scales, each (heads, N, head_width)."""
        _, count, head_width = self.keys.shape
        return self.keys * math.sqrt(head_width), self.vectors * math.sqrt(count)


def attend_persistent(vectors: Persistent, q: Tensor, dropout: Dropout) -> Tensor:
    """Attend to persistent vectors only, with scaled queries q (heads, batch, queries, width).

    The result has the shape of q.
    """
    keys, values = vectors.keys_values()
    scores = q.flatten(1, 2) @ keys.transpose(1, 2)  # (heads, batch · queries, N)
    weights = torch.softmax(scores.view(*q.shape[:-1], scores.shape[-1]), -1)
    record_weights(weights.transpose(0, 1), persistent=weights.shape[-1])
    weights = dropout(weights)
    return (weights.flatten(1, 2) @ values).view(q.shape)


class PersistentAttention(WindowedBlock):
    """Base class of blocks that attend to a window of positions and to persistent vectors.

    It has linear maps without biases, the attention within the window, and the persistent vectors.
    """

    def __init__(self, settings: Settings, context: Context) -> None:
        super().__init__()
        window, width = window_from_settings(settings, causal=context.causal), context.width
        self.heads, self.head_width = as_int(settings, "heads"), window.head_width
        allocated = self._allocate_heads(self.heads, self.head_width, as_int(settings, "N"))
        self.window_heads, (heads, count, head_width) = allocated
        self.query = uniform_linear(width, self.heads * self.head_width)
        self.key_value = uniform_linear(width, self.window_heads * self.head_width, maps=2)
        self.window = build_window_attention(window, self.window_heads, context)
        self.context_length = self.window.max_distance
        self.persistent = Persistent(heads=heads, vectors=count, head_width=head_width) if count else None
        self.output = uniform_linear(self.heads * self.head_width, width)
        self.dropout = Dropout(context.config.settings.attention_dropout)

    @classmethod
    def _allocate_heads(cls, heads: int, head_width: int, count: int) -> tuple[int, tuple[int, int, int]]:
        """Return the number of heads for the window, and the shape of the persistent vectors.

        The shape is (heads, N, width).
        """
        return heads, (heads, count, head_width)

    @abstractmethod
    def mix(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        """Attend with scaled queries to keys and values, all (heads, batch, length, ·).

        Return (batch, length, inner).
        """

    def attend(self, x: Tensor, past: Tensor | None, mask: Tensor | None) -> Tensor:
        q = split_heads(self.query(x), self.heads) * self.head_width**-0.5
        k, v = map_heads(x, past, self.key_value.weight, self.window_heads)
        return self.output(self.mix(q, k, v, mask))


@register_block("all_attn")
class AllAttention(PersistentAttention):
    """Block `all_attn`: attention with a single softmax over the window and the persistent vectors."""

    def mix(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        extra = None if self.persistent is None else self.persistent.keys_values()
        return merge_heads(self.window(q, k, v, mask, extra))


@register_block("attn_split")
class AttentionSplit(PersistentAttention):
    """Block `attn_split`: attention with two softmaxes, over the window and over the persistent vectors.

    Their outputs are added.
    """

    def mix(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        y = self.window(q, k, v, mask)
        return merge_heads(
            y if self.persistent is None else y + attend_persistent(self.persistent, q, self.dropout)
        )


@register_block("head_split")
class HeadSplit(PersistentAttention):
    """Block `head_split`: half of the heads attend to the window, the others to the persistent vectors."""

    @classmethod
    def _allocate_heads(cls, heads: int, head_width: int, count: int) -> tuple[int, tuple[int, int, int]]:
        return heads // 2, (heads // 2, count, head_width)

    def mix(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        """Give zeros for the heads of persistent vectors if there are none."""
        of_window, of_vectors = q.split(self.window_heads)
        y = self.window(of_window, k, v, mask)
        beside = (
            y * 0 if self.persistent is None else attend_persistent(self.persistent, of_vectors, self.dropout)
        )
        return merge_heads(torch.cat([y, beside]))


@register_block("single_head")
class SingleHead(PersistentAttention):
    """Block `single_head`: like `attn_split`, but with a single wide head for the persistent vectors."""

    @classmethod
    def _allocate_heads(cls, heads: int, head_width: int, count: int) -> tuple[int, tuple[int, int, int]]:
        return heads, (1, count, heads * head_width)

    def mix(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        y = merge_heads(self.window(q, k, v, mask))
        if self.persistent is None:
            return y
        # q is divided by √head_width already; the wide head divides by √(heads · head_width)
        whole_query = merge_heads(q) * self.heads**-0.5
        return y + attend_persistent(self.persistent, whole_query[None], self.dropout)[0]


@register_block("ff_attn")
class FeedForwardAttention(Block):
    """Block `ff_attn`: a single head that only attends to persistent vectors.

    It takes the place of a feed-forward layer. If it is `bare`, it is equation 9, a feed-forward layer with a
    softmax in place of its ReLU: the input is the query, and there is no output map.
    """

    def __init__(self, settings: Settings, context: Context) -> None:
        super().__init__()
        width = context.width
        bare = as_bool(settings, "bare")
        self.query = nn.Identity() if bare else uniform_linear(width, width)
        self.persistent = Persistent(heads=1, vectors=as_int(settings, "N"), head_width=width)
        self.output = nn.Identity() if bare else uniform_linear(width, width)
        self.dropout = Dropout(context.config.settings.attention_dropout)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        q = self.query(x)[None] * x.shape[-1] ** -0.5  # (1, batch, length, width)
        return self.output(attend_persistent(self.persistent, q, self.dropout)[0])
