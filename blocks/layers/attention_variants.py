"""Attention blocks with modified scores, weights, keys or values, such as `fox` and `diff_attn`.

They see all positions, and cannot use fused kernels.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from ...grammar.vocabulary.spec import Settings, as_float, as_int, as_word
from ..core.attention_maps import record_weights
from ..core.block import Block, Context, register_block
from ..core.dropout import Dropout
from ..core.initialisation import Initialisable, Linear, WeightRole, roles
from ..core.operations import at_least_single
from ..core.positions import PairPositions
from .attention import Scoring, attend_unfused, causal_mask, temperature_of
from .head_parts import HeadNorm, turn


def _fading_weights(q: Tensor, k: Tensor, log_gates: Tensor, scale: float) -> Tensor:
    """Return the weights of causal attention with forget gates, (batch, heads, queries, keys).

    q and k are (batch, heads, length, head_width); the queries are at the last positions of the keys.
    `log_gates` (batch, heads, keys) are in at least single precision.
    """
    # the log gates between a key and a query add up to a difference of running sums
    total = log_gates.cumsum(-1)  # (batch, heads, keys)
    scores = q @ k.transpose(-1, -2) * scale
    scores = scores + total[..., -q.shape[2] :, None] - total[..., None, :]
    return torch.softmax(scores.masked_fill(~causal_mask(q, k), -torch.inf), -1)


@register_block("fox")
class ForgettingAttention(Block):
    """Block `fox`: causal attention with forget gates (Lin et al. 2025).

    Each position's gate reduces the weights of all earlier keys: the log gates of the positions after a key
    are added to its score.
    """

    def __init__(self, settings: Settings, context: Context) -> None:
        super().__init__()
        heads, head_width = as_int(settings, "heads"), as_int(settings, "head_width")
        config, width, inner = context.config, context.width, heads * head_width
        self.heads, self.scale = heads, head_width**-0.5 / temperature_of(config, head_width)
        self.qkv = Linear(width, inner, bias=False, maps=3, std=config.settings.attention_std)
        self.gate = Linear(width, heads, bias=True, std=config.settings.attention_std)
        self.output = Linear(inner, width, bias=False, std=config.settings.attention_output_std)
        self.dropout = Dropout(config.settings.attention_dropout)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the outputs at all positions; the block is causal, so padding at the end needs no mask."""
        return self.step_with_grad(x, None)[0]

    def step_with_grad(self, x: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Read one piece of a stream. The state holds all keys, values and log gates.

        It is (batch, heads, positions, 2 · head_width + 1).
        """
        qkv = self.qkv(x).unflatten(2, (3, self.heads, -1))
        q, k, v = qkv.permute(2, 0, 3, 1, 4).contiguous().unbind(0)  # each (batch, heads, length, head_width)
        log_gates = -functional.softplus(-at_least_single(self.gate(x))).transpose(1, 2).unsqueeze(-1)
        known = torch.cat([k, v, log_gates], -1)
        if state is not None:
            known = torch.cat([state, known], 2)
            k, v, log_gates = known.split([k.shape[-1], k.shape[-1], 1], -1)
            k, v = k.to(q.dtype), v.to(q.dtype)
        weights = _fading_weights(q, k, log_gates.squeeze(-1), self.scale)
        record_weights(weights)
        y = self.dropout(weights).to(v.dtype) @ v
        return self.output(y.transpose(1, 2).flatten(2)), known


def visible_keys(q: Tensor, k: Tensor, mask: Tensor | None, *, causal: bool) -> Tensor | None:
    """Return a mask that is true where a query sees a key, (…, queries, keys).

    Return None if every query sees every key.
    """
    visible = None if mask is None else mask[:, None, None, :]
    if causal and q.shape[2] > 1:
        hidden = causal_mask(q, k)
        return hidden if visible is None else visible & hidden
    return visible


class DifferenceShare(Initialisable):
    """λ, the factor of the second softmax in `diff_attn`, computed from four trainable vectors.

    They are initialised as N(0, 0.1²).
    """

    weight_roles = roles(weight=WeightRole.GAIN)

    def __init__(self, head_width: int, share: float) -> None:
        super().__init__()
        self.share = share
        self.weight = nn.Parameter(torch.empty(4, head_width))

    def initialise(self, generator: torch.Generator | None) -> None:
        nn.init.normal_(self.weight, std=0.1, generator=generator)

    def forward(self) -> Tensor:
        """Return λ as a scalar."""
        more, less = (self.weight[:2] * self.weight[2:]).sum(1).exp().unbind(0)
        return more - less + self.share


@register_block("diff_attn")
class DifferentialAttention(Block):
    """Block `diff_attn`: attention with the difference of two softmaxes (Ye et al. 2024).

    The weights are one softmax minus λ times another softmax. Values are twice as wide as keys.
    """

    def __init__(self, settings: Settings, context: Context) -> None:
        super().__init__()
        config, width = context.config, context.width
        self.heads, self.head_width = as_int(settings, "heads"), as_int(settings, "head_width")
        self.causal, self.turns = context.causal, as_word(settings, "pos") == "rope"
        self.positions = PairPositions(config)
        self.scale = self.head_width**-0.5 / temperature_of(config, self.head_width)
        inner = 2 * self.heads * self.head_width
        self.qkv = Linear(width, inner, bias=False, maps=3, std=config.settings.attention_std)
        self.share = DifferenceShare(self.head_width, as_float(settings, "share"))
        self.norm = HeadNorm(2 * self.head_width) if as_word(settings, "head_norm") == "rms" else None
        self.output = Linear(inner, width, bias=False, std=config.settings.attention_output_std)
        self.dropout = Dropout(config.settings.attention_dropout)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        q, k, v = self._map(x, 0, mask)
        return self._attend(q, k, v, visible_keys(q, k, mask, causal=self.causal))

    def step_with_grad(self, x: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Read one piece of a stream. The state has all keys and values, (batch, 4 · heads, positions, ·)."""
        q, k, v = self._map(x, 0 if state is None else state.shape[2])
        known = torch.cat([k, *v.chunk(2, -1)], 1)
        if state is not None:
            known = torch.cat([state, known], 2)
            k, *v = known.split([2 * self.heads, self.heads, self.heads], 1)
            v = torch.cat(v, -1)
        return self._attend(q, k, v, visible_keys(q, k, None, causal=True)), known

    def _map(self, x: Tensor, start: int, mask: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """Map the input to queries and keys, (batch, 2 · heads, length, head_width), and to values.

        The heads of the first softmax come before those of the second.
        """
        q, k, v = self.qkv(x).chunk(3, -1)
        q, k = (each.unflatten(2, (2 * self.heads, -1)).transpose(1, 2) for each in (q, k))
        v = v.unflatten(2, (self.heads, -1)).transpose(1, 2)
        if self.turns:
            angles = self.positions.angles(x, q.shape[-1], start=start, mask=mask).unsqueeze(-3)
            q, k = turn(q, angles), turn(k, angles)
        else:
            q, k = (each.clone(memory_format=torch.contiguous_format) for each in (q, k))
        return q, k, v.clone(memory_format=torch.contiguous_format)

    def _attend(self, q: Tensor, k: Tensor, v: Tensor, visible: Tensor | None) -> Tensor:
        scores = q @ k.transpose(-1, -2) * self.scale  # (batch, 2 * heads, queries, keys)
        if visible is not None:
            scores = scores.masked_fill(~visible, -torch.inf)
        kept, taken = torch.softmax(scores, -1).chunk(2, 1)
        weights = kept - self.share() * taken
        record_weights(weights)
        y = self.dropout(weights) @ v  # (batch, heads, queries, 2 * head_width)
        if self.norm is not None:
            y = self.norm(y)
        # the factor keeps gradients about as large as in plain attention (Ye et al. 2024)
        return self.output(y.transpose(1, 2).flatten(2) * (1.0 - self.share.share))


@register_block("latent_attn")
class LatentAttention(Block):
    """Block `latent_attn`: keys and values come from one narrow vector per position (DeepSeek-AI 2024).

    A rotated key, shared by all heads, carries the position. Generation only stores this key and the narrow
    vector.
    """

    def __init__(self, settings: Settings, context: Context) -> None:
        super().__init__()
        config, width, std = context.config, context.width, context.config.settings.attention_std
        self.heads, self.head_width = as_int(settings, "heads"), as_int(settings, "head_width")
        self.latent, self.turned = as_int(settings, "latent"), as_int(settings, "rope_width")
        asked, inner = as_int(settings, "query_latent"), self.heads * self.head_width
        sizes = tuple(size for size in (self.latent, self.turned) if size)
        self.down = Linear(width, sizes, bias=False, drawn_as_one=True, std=std)
        self.norm = HeadNorm(self.latent)
        self.up = Linear(self.latent, inner, bias=False, maps=2, std=std)
        self.query_down = Linear(width, asked, bias=False, std=std) if asked else None
        self.query_norm = HeadNorm(asked) if asked else None
        self.query = Linear(asked or width, inner + self.heads * self.turned, bias=False, std=std)
        self.output = Linear(inner, width, bias=False, std=config.settings.attention_output_std)
        self.dropout = Dropout(config.settings.attention_dropout)
        self.causal = context.causal
        self.temperature = temperature_of(config, self.head_width + self.turned)
        self.positions = PairPositions(config)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        angles = self._angles(x, 0, mask)
        return self._attend(self._queries(x, angles), self._latents(x, angles), mask, causal=self.causal)

    def step_with_grad(self, x: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Read one piece of a stream. The state holds each position's narrow vector and rotated key.

        It is (batch, positions, latent + rope_width), as `_latents` returns it.
        """
        angles = self._angles(x, 0 if state is None else state.shape[1], None)
        known = self._latents(x, angles)
        known = known if state is None else torch.cat([state, known], 1)
        return self._attend(self._queries(x, angles), known, None, causal=True), known

    def _angles(self, x: Tensor, start: int, mask: Tensor | None) -> Tensor | None:
        return self.positions.angles(x, self.turned, start=start, mask=mask) if self.turned else None

    def _latents(self, x: Tensor, angles: Tensor | None) -> Tensor:
        """Return the latent vector and rotated key of each position, which a stream stores."""
        c, key = self.down(x).split([self.latent, self.turned], -1)
        if angles is not None:
            key = turn(key, angles)
        return torch.cat([self.norm(c), key.to(c.dtype)], -1)

    def _queries(self, x: Tensor, angles: Tensor | None) -> Tensor:
        if self.query_down is not None and self.query_norm is not None:
            x = self.query_norm(self.query_down(x))
        q = self.query(x).unflatten(2, (self.heads, -1)).transpose(1, 2)
        q, places = q.split([self.head_width, self.turned], -1)
        if angles is not None:
            places = turn(places, angles.unsqueeze(-3))
        return torch.cat([q, places], -1)

    def _attend(self, q: Tensor, known: Tensor, mask: Tensor | None, *, causal: bool) -> Tensor:
        c, places = known.split([self.latent, self.turned], -1)
        heads = self.up(c).unflatten(2, (2, self.heads, -1)).transpose(1, 3)  # (batch, heads, 2, keys, ·)
        k, v = heads.unbind(2)
        k = torch.cat([k, places.unsqueeze(1).expand(-1, self.heads, -1, -1)], -1)
        v = v.clone(memory_format=torch.contiguous_format)
        visible = visible_keys(q, k, mask, causal=causal)
        y = attend_unfused(q, k, v, visible, self.dropout, scoring=Scoring(self.temperature))
        return self.output(y.transpose(1, 2).flatten(2))
