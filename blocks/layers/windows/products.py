"""A window by plain products, on any device and in any transformation, or by torch's fused attention.

Fused attention keeps a sum for each query instead of its weights.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from .pieces import Kept, QueryChunk, WindowForm, WindowInputs, masked_score, skew, unskew


def window_products(form: WindowForm, given: WindowInputs, kept: Kept = ()) -> Tensor:
    """Return what each query sees, (heads, batch, queries, head_width)."""
    found: list[Tensor] = []
    for number, piece in enumerate(form.pieces):
        rows = slice(piece.start - given.past, piece.stop - given.past)
        keys = slice(piece.key_start, piece.key_stop)
        q = given.q[:, :, rows]
        scores = q @ given.k[:, :, keys].transpose(-1, -2)  # (heads, batch, queries, keys)
        scores = capped(scores, form.cap) + skew(_by_distance(form, given, q, piece), piece)
        if given.mask is not None:
            scores = scores.masked_fill(~given.mask[:, None, keys], masked_score(scores))
        if given.extra_keys is not None:
            scores = torch.cat([scores, _of_heads(q, given.extra_keys.transpose(1, 2))], -1)
        weights = torch.softmax(scores, -1)
        if kept:
            weights = weights * kept[number]
            weights = weights if form.kept_scale == 1.0 else weights * form.kept_scale
        found.append(_values(form, given, weights, piece))
    return found[0] if len(found) == 1 else torch.cat(found, 2)


def _by_distance(form: WindowForm, given: WindowInputs, q: Tensor, piece: QueryChunk) -> Tensor:
    """Return scores (heads or 1, batch or 1, queries, distances), the greatest distance first."""
    here = form.distances(piece)
    if given.vectors is None:
        scores = q.new_zeros(1, 1, piece.query_count, piece.distance_count)
    else:
        vectors = given.vectors[here]
        scores = (q.flatten(0, 2) @ vectors.T).view(*q.shape[:3], len(vectors))
    return scores if given.fading is None else scores + given.fading[..., here]


def _of_heads(rows: Tensor, maps: Tensor) -> Tensor:
    """Map the rows (heads, batch, queries, n) by each head's map (heads, n, m)."""
    return (rows.flatten(1, 2) @ maps).view(*rows.shape[:-1], maps.shape[-1])


def _values(form: WindowForm, given: WindowInputs, weights: Tensor, piece: QueryChunk) -> Tensor:
    """Return the values (heads, batch, queries, head_width) that the weights choose."""
    within, outside = weights.split([piece.key_count, weights.shape[-1] - piece.key_count], -1)
    y = within @ given.v[:, :, piece.key_start : piece.key_stop]
    if form.pos_values and given.vectors is not None and piece.distance_count:
        y = y + unskew(within, piece).contiguous() @ given.vectors[form.distances(piece)]
    if given.extra_values is not None:
        y = y + _of_heads(outside, given.extra_values)
    if form.keyless(piece):
        first = torch.arange(piece.query_count, device=y.device) == 0
        y = y.masked_fill(first[:, None], 0.0)
    return y


def capped(scores: Tensor, cap: float) -> Tensor:
    """Return the scores s as c tanh(s / c) with a cap c, or as they are where it is 0."""
    return cap * torch.tanh(scores / cap) if cap else scores


def can_be_fused(form: WindowForm, given: WindowInputs, kept: Kept = ()) -> bool:
    """Return whether scores are by content and by keys within the window alone, and all are kept."""
    beside = (given.vectors, given.fading, given.extra_keys)
    return not (form.cap or form.first_sees_nothing or kept) and all(each is None for each in beside)


def window_fused(form: WindowForm, given: WindowInputs) -> Tensor:
    """Return what each query sees, (heads, batch, queries, head_width), of a form that can be fused.

    Nothing where all that a query would see is masked.
    """
    q, k, v = (each.transpose(0, 1) for each in (given.q, given.k, given.v))
    found = [
        functional.scaled_dot_product_attention(
            q[:, :, piece.start - given.past : piece.stop - given.past],
            k[:, :, piece.key_start : piece.key_stop],
            v[:, :, piece.key_start : piece.key_stop],
            attn_mask=_visible(piece, given),
            scale=1.0,
        ).transpose(1, 2)
        for piece in form.pieces
    ]
    return (found[0] if len(found) == 1 else torch.cat(found, 1)).permute(2, 0, 1, 3)


def _visible(piece: QueryChunk, given: WindowInputs) -> Tensor:
    """Return which keys each query sees, (queries, keys), or (batch, 1, queries, keys)."""
    queries, keys = (
        torch.arange(*ends, device=given.q.device)
        for ends in ((piece.start, piece.stop), (piece.key_start, piece.key_stop))
    )
    distances = queries[:, None] - keys
    visible = (distances >= piece.min_distance) & (distances <= piece.max_distance)
    if given.mask is None:
        return visible
    return visible & given.mask[:, None, None, piece.key_start : piece.key_stop]
