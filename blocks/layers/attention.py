"""The self-attention block `sa`, and the softmax attention that other blocks use."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from ...grammar.model_config import ModelConfig
from ...grammar.vocabulary.attention import window_from_settings
from ...grammar.vocabulary.spec import Settings, as_float, as_int, as_word
from ..core.attention_maps import is_recording, record_weights
from ..core.block import Block, Context, register_block
from ..core.dropout import Dropout
from ..core.initialisation import Linear
from ..core.operations import has_tangent, without_autocast
from ..core.positions import PairPositions, build_distance_bias
from .head_parts import HeadNorm, turn
from .window_attention import (
    WindowedBlock,
    build_window_attention,
    map_heads,
    merge_heads,
    split_heads,
    uniform_linear,
)
from .window_products import capped

MAX_UNFUSED_LENGTH = 64
"""The number of keys up to which a CPU uses plain products and keeps their weights."""

MAX_UNFUSED_BF16_LENGTH = 512
"""The same limit under autocast on a CPU, whose fused kernel takes up to five times as long in bf16."""


@register_block("sa")
class SelfAttention(Block):
    """Block `sa`: multi-head softmax self-attention without biases (Vaswani et al. 2017).

    Scores are divided by √head_width. Every position attends to every valid one, or to those up to itself if
    causal. Keys and values may have fewer heads, each shared by a group of queries (Ainslie et al. 2023).

    Padding gets the weight 0, which hides finite numbers, but not NaN. To zero padding here would slow down
    every step. Second derivatives on a CPU need `torch.nn.attention.sdpa_kernel(SDPBackend.MATH)`.
    """

    def __init__(self, settings: Settings, context: Context) -> None:
        super().__init__()
        config, width, head_width = context.config, context.width, as_int(settings, "head_width")
        self.heads, self.head_width = as_int(settings, "heads"), head_width
        temperature = temperature_of(config, head_width, as_float(settings, "temperature"))
        self.unbiased = Scoring(temperature, as_float(settings, "logit_cap"))
        self.kv_heads = as_int(settings, "kv_heads") or self.heads
        self.causal, self.turns = context.causal, as_word(settings, "pos") == "rope"
        self.positions = PairPositions(config)
        self.bias = build_distance_bias(as_word(settings, "pos"), self.heads, width, causal=context.causal)
        inner, shared = self.heads * head_width, self.kv_heads * head_width
        self.qkv = Linear(width, (inner, shared, shared), bias=False, std=config.settings.attention_std)
        normed = as_word(settings, "qk_norm") == "rms"
        self.query_norm, self.key_norm = (HeadNorm(head_width) if normed else None for _ in range(2))
        self.output = Linear(inner, width, bias=False, std=config.settings.attention_output_std)
        self.dropout = Dropout(config.settings.attention_dropout)

    @classmethod
    def build(cls, settings: Settings, context: Context) -> Block:
        """Build the block `sa`, as a WindowedSelfAttention if it has a `span`."""
        if as_int(settings, "span") > 0:
            return WindowedSelfAttention.build(settings, context)
        return cls(settings, context)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        q, k, v = self._map(x, 0, mask)
        if self.kv_heads < self.heads:
            k, v = self._for_queries(k), self._for_queries(v)
        scoring = self._scoring(q, x, mask)
        return self._merge(attend(q, k, v, mask, self.dropout, causal=self.causal, scoring=scoring))

    def step_with_grad(self, x: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Read one piece of a stream. The state holds all keys and values.

        It is (batch, kv_heads, 2, positions, head_width).
        """
        length = x.shape[1]
        q, *both = self._map(x, 0 if state is None else state.shape[3])
        known = torch.stack(both, 2)
        if state is not None:
            known = torch.cat([state, known], 3)
        k, v = (self._for_queries(each) for each in known.unbind(2))
        visible = None if length == 1 else causal_mask(q, k)
        scoring = self._scoring(q, known[:, 0, 0], None)
        return self._merge(attend_unfused(q, k, v, visible, self.dropout, scoring=scoring)), known

    def _scoring(self, q: Tensor, seen: Tensor, mask: Tensor | None) -> Scoring:
        """Return how products of these queries become scores, with biases by distance.

        The keys are mapped from `seen` (batch, keys, …).
        """
        if self.bias is None:
            return self.unbiased
        distances = self.positions.distances(q.shape[2], seen, mask)
        return self.unbiased._replace(bias=self.bias(distances, seen.shape[1], q.dtype))

    def _map(self, x: Tensor, start: int, mask: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, keys and values, (batch, heads or kv_heads, length, head_width)."""
        rows = self.qkv(x.flatten(0, 1))  # a 2-d matrix needs fewer operations
        rows = rows.view(*x.shape[:2], self.heads + 2 * self.kv_heads, self.head_width)
        q, k, v = rows.split_with_sizes((self.heads, self.kv_heads, self.kv_heads), 2)  # one backward copy
        q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
        if self.query_norm is not None and self.key_norm is not None:
            q, k = self.query_norm(q), self.key_norm(k)
        if self.turns:
            angles = self.positions.angles(x, q.shape[-1], start=start, mask=mask).unsqueeze(-3)
            q, k = turn(q, angles), turn(k, angles)
        return q, k, v

    def _for_queries(self, each: Tensor) -> Tensor:
        groups = self.heads // self.kv_heads
        return each if groups == 1 else each.repeat_interleave(groups, 1)

    def _merge(self, y: Tensor) -> Tensor:
        batch, heads, length, width = y.shape
        rows = y.transpose(1, 2).reshape(batch * length, heads * width)
        return self.output(rows).view(batch, length, self.output.out_features)


def temperature_of(config: ModelConfig, head_width: int, given: float = 1.0) -> float:
    """Return the temperature of attention, by which scores are divided.

    The division by √head_width comes first. The temperature is `given`. With maximal updates (`mup`) scores
    are divided by `given` · head_width / 8 in total.
    """
    return given if config.settings.mup is None else given * math.sqrt(head_width) / 8


class WindowedSelfAttention(WindowedBlock):
    """Self-attention within a window: the block `sa` with a `span`.

    With position vectors, its linear maps are those of `uniform_linear`.
    """

    def __init__(self, settings: Settings, context: Context) -> None:
        super().__init__()
        config, width, head_width = context.config, context.width, as_int(settings, "head_width")
        self.heads, self.turns = as_int(settings, "heads"), as_word(settings, "pos") == "rope"
        seen, cap = window_from_settings(settings, causal=context.causal), as_float(settings, "logit_cap")
        window = build_window_attention(seen, self.heads, context, cap=cap)
        self.kv_heads = as_int(settings, "kv_heads") or self.heads
        self.scale = head_width**-0.5 / temperature_of(config, head_width, as_float(settings, "temperature"))
        self.inner, shared = self.heads * head_width, self.kv_heads * head_width
        outputs = (self.inner, shared, shared)
        if window.positions is None:
            self.qkv = Linear(width, outputs, bias=False, std=config.settings.attention_std)
            self.output = Linear(self.inner, width, bias=False, std=config.settings.attention_output_std)
        else:
            self.qkv = uniform_linear(width, outputs)
            self.output = uniform_linear(self.inner, width)
        normed = as_word(settings, "qk_norm") == "rms"
        self.query_norm, self.key_norm = (HeadNorm(head_width) if normed else None for _ in range(2))
        self.positions = PairPositions(config)
        self.window = window
        self.context_length = window.max_distance

    def attend(self, x: Tensor, past: Tensor | None, mask: Tensor | None) -> Tensor:
        q = split_heads(functional.linear(x, self.qkv.weight[: self.inner]), self.heads)
        k, v = map_heads(x, past, self.qkv.weight[self.inner :], self.kv_heads)
        if self.query_norm is not None and self.key_norm is not None:
            q, k = self.query_norm(q), self.key_norm(k)
        if self.turns:  # only distances matter, so numbering may begin at 0
            self.positions.check(k.shape[2] - x.shape[1], k.shape[2])
            angles = self.positions.angles(k[0], k.shape[-1], mask=mask)
            q, k = turn(q, angles[..., -x.shape[1] :, :]), turn(k, angles)
        if self.kv_heads < self.heads:
            k, v = (each.repeat_interleave(self.heads // self.kv_heads, 0) for each in (k, v))
        return self.output(merge_heads(self.window(q * self.scale, k, v, mask)))


class Scoring(NamedTuple):
    """The steps from query-key products to attention scores.

    Products are divided by √head_width · `temperature`, capped, and `bias` is added. A `cap` c turns a score
    s into c tanh(s / c); 0 means none. `bias` is (heads, queries, keys), or has a first dimension for the
    batch.
    """

    temperature: float = 1.0
    cap: float = 0.0
    bias: Tensor | None = None

    @property
    def can_be_fused(self) -> bool:
        """Return whether fused kernels can compute these scores.

        They support neither a cap nor a bias that needs gradients.
        """
        return not self.cap and (self.bias is None or not self.bias.requires_grad)


PLAIN_SCORING = Scoring()
"""Scoring that only divides scores by √head_width."""


def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None,
    dropout: Dropout,
    *,
    causal: bool = False,
    scoring: Scoring = PLAIN_SCORING,
) -> Tensor:
    """Return softmax attention; q, k, v and the result are (batch, heads, length, head_width).

    `mask` (batch, keys) is true at valid keys. Plain products replace the fused kernel in these cases:

    - The sequence has up to 512 tokens under autocast on a CPU. Longer ones are fused in float32, because the
      kernel is slower in bf16.
    - The sequence is short, and the program is compiled, which fuses plain products.
    - Dropout applies to the weights, or scores have a cap or learnt biases.
    - Forward-mode derivatives are computed.
    - Weights are recorded.
    """
    plain = dropout.active or is_recording()
    if torch.compiler.is_compiling():
        plain = plain or (not k.is_cuda and k.shape[2] <= MAX_UNFUSED_LENGTH)
    elif not plain and k.is_cpu and torch.is_autocast_enabled("cpu"):
        plain = k.shape[2] <= MAX_UNFUSED_BF16_LENGTH or not scoring.can_be_fused
        if not plain:
            with without_autocast(k.device):
                full = q.float(), k.float(), v.float()
                if scoring.bias is not None:
                    scoring = scoring._replace(bias=scoring.bias.float())
                return attend(*full, mask, dropout, causal=causal, scoring=scoring).to(v.dtype)
    biases = () if scoring.bias is None else (scoring.bias,)
    fused = not plain and scoring.can_be_fused and not has_tangent(q, k, v, *biases)
    scale = q.shape[-1] ** -0.5 / scoring.temperature
    if fused and mask is None and scoring.bias is None:
        with fused_kernels(on_gpu=k.is_cuda):
            return functional.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=scale)
    visible = None if mask is None else mask[:, None, None, :]
    if causal:
        visible = causal_mask(q, k) if visible is None else visible & causal_mask(q, k)
    if not fused:
        return attend_unfused(q, k, v, visible, dropout, scoring=scoring)
    added = visible
    if scoring.bias is not None:
        bias = scoring.bias if scoring.bias.dim() == 4 else scoring.bias[None]
        added = bias if visible is None else bias.masked_fill(~visible, -torch.inf)
    with fused_kernels(on_gpu=k.is_cuda):
        return functional.scaled_dot_product_attention(q, k, v, attn_mask=added, scale=scale)


def fused_kernels(*, on_gpu: bool) -> AbstractContextManager[object]:
    """Return a context manager in which fused attention on a GPU uses torch's kernels, not cuDNN's.

    For 16 bits torch prefers cuDNN on an H100. This context excludes cuDNN for three reasons:

    - Far below 0, scores with a mask give queries NaN gradients at some lengths (pytorch issue 196678).
    - Far below 0, a single query without a mask gives NaN gradients of keys and values (cudnn-frontend issue
      1072).
    - cuDNN makes a plan for each new length, which takes milliseconds.
    """
    if not on_gpu:
        return _ANY_KERNEL
    return sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH])


_ANY_KERNEL = nullcontext()


def attend_unfused(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    visible: Tensor | None,
    dropout: Dropout,
    *,
    scoring: Scoring = PLAIN_SCORING,
) -> Tensor:
    """Return softmax attention, computed with two batched products.

    `visible` is broadcastable to (batch, heads, queries, keys), None for all.
    """
    (batch, heads, queries, width), keys = q.shape, k.shape[2]
    scale = width**-0.5 / scoring.temperature
    q, k, v = q.flatten(0, 1), k.flatten(0, 1), v.flatten(0, 1)  # bmm needs fewer operations than matmul
    scores = torch.bmm(q, k.transpose(1, 2)) * scale  # (batch * heads, queries, keys)
    if scoring.cap:
        scores = capped(scores, scoring.cap)
    if scoring.bias is not None or visible is not None:
        scores = scores.view(batch, heads, queries, keys)
        if scoring.bias is not None:
            scores = scores + scoring.bias.to(scores.dtype)
        if visible is not None:
            scores = scores.masked_fill(~visible, -torch.inf)
        scores = scores.flatten(0, 1)
    weights = scores.softmax(-1)
    if is_recording():
        record_weights(weights.view(batch, heads, queries, keys))
    return torch.bmm(dropout(weights) if dropout.rate else weights, v).view(
        batch, heads, queries, v.shape[-1]
    )


def causal_mask(q: Tensor, k: Tensor) -> Tensor:
    """Return a mask that is true where a query sees a key, (queries, keys).

    The last query is at the position of the last key.
    """
    queries, keys = q.shape[2], k.shape[2]
    return torch.ones(queries, keys, dtype=torch.bool, device=q.device).tril(keys - queries)
