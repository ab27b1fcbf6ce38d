"""A window by FlexAttention, whose GPU kernels skip blocks that no query sees (Dong et al. 2024).

The kernel reads scores by distance from a tensor: q · u and the fading of spans. Extra keys follow the keys
of the window, and every query sees them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention

from .pieces import WindowForm, WindowInputs

_INVALID_SCORE = -1e4
"""The score of padding: its weight is 0 beside other keys; a much lower score would round additions away."""

_BLOCK = 128
"""The number of queries or keys in one block of a mask."""

Attend = Callable[..., Tensor]
"""Called as `flex_attention` is."""

Score = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]
"""A score of the numbers of a sequence, a head, a query and a key."""


def fused_window(form: WindowForm, given: WindowInputs) -> Tensor:
    """Run `window_flex` by one kernel on a GPU, and without a compiler elsewhere."""
    return window_flex(form, given, compiled(call_kind(form, given)) if given.q.is_cuda else flex_attention)


def call_kind(form: WindowForm, given: WindowInputs) -> Hashable:
    """Return the key of the kernels for a call, without lengths and batch size.

    It includes the sizes that torch compiles separately: one sequence, one block of queries or keys, no
    past.
    """
    q, beside = given.q, (given.vectors, given.fading, given.mask)
    there = tuple(each is not None for each in beside)
    blocks = (length > _BLOCK for length in (q.shape[2], given.k.shape[2] + given.num_extra))
    sizes = (q.shape[1] > 1, *blocks, given.past > 0)
    return q.device, q.dtype, len(q), q.shape[-1], there, form.cap > 0, torch.is_grad_enabled(), sizes


@cache
def compiled(kind: Hashable) -> Attend:
    """Return compiled FlexAttention for one kind of call; torch compiles a kernel when a length first occurs.

    Each kind has a code object of its own. Torch compiles the same code at most eight times. After that it
    holds all scores of a call. Several trials in one process would reach that limit.
    """

    def attend(*args: Any, **kwargs: Any) -> Tensor:  # noqa: ANN401 -- those of flex_attention
        return flex_attention(*args, **kwargs)

    code = attend.__code__
    attend.__code__ = code.replace(co_name=f"{code.co_name}_{abs(hash(kind))}")
    return torch.compile(attend)


def window_flex(form: WindowForm, given: WindowInputs, attend: Attend = flex_attention) -> Tensor:
    """Return what each query sees, (heads, batch, queries, head_width), without positions on values."""
    q, k, v = (each.transpose(0, 1).to(given.q.dtype) for each in (given.q, given.k, given.v))
    near, far = min(piece.min_distance for piece in form.pieces), form.max_distance
    if given.extra_keys is not None and given.extra_values is not None:
        k = torch.cat([k, given.extra_keys.to(k.dtype).expand(len(k), -1, -1, -1)], 2)
        v = torch.cat([v, given.extra_values.to(v.dtype).expand(len(v), -1, -1, -1)], 2)
    visible = _visible(q.shape[2], given.past, given.num_extra, (near, far), q.device)
    score = _score_mod(form.cap, given, _by_distance(given), far)
    return attend(q, k, v, score, block_mask=visible, scale=1.0).transpose(0, 1)


def _score_mod(cap: float, given: WindowInputs, by_distance: Tensor | None, far: int) -> Score | None:
    """Return the change of a score of a query and a key, or None.

    Numbers are tensors, as for any others the kernel would be compiled again.
    """
    mask, like = given.mask, given.q
    if not cap and by_distance is None and mask is None:
        return None
    count = 0 if by_distance is None else by_distance.shape[-1]
    first, last, keys, none = (
        torch.full((), number, dtype=torch.int32, device=like.device)
        for number in (far - given.past, count - 1, given.k.shape[2], 0)
    )
    bound = like.new_full((), cap) if cap else None

    def changed(score: Tensor, batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        found = score if bound is None else bound * torch.tanh(score / bound)
        if by_distance is not None:
            place = torch.maximum(torch.minimum(key - query + first, last), none)
            found = found + by_distance[head, batch, query, place]
        if mask is not None:
            found = torch.where(mask[batch, torch.minimum(key, keys - 1)], found, _INVALID_SCORE)
        return torch.where(key < keys, found, score)

    return changed


def _by_distance(given: WindowInputs) -> Tensor | None:
    """Return scores (heads, batch, queries, distances), greatest distance first, or None for zeros."""
    if given.vectors is None and given.fading is None:
        return None
    scores = given.q.new_zeros(()) if given.vectors is None else given.q @ given.vectors.mT
    if given.fading is not None:
        scores = scores + given.fading
        scores = scores.expand(*given.q.shape[:3], -1)
    return scores


@cache
def _visible(
    queries: int, past: int, extra: int, distances: tuple[int, int], device: torch.device
) -> BlockMask:
    """Return the keys that each query sees: the keys of the window, and the extra keys after them.

    Results are cached for good, a few kilobytes for each kind, because a recorded graph reads them in place.
    They are made outside torch's inference mode, so that a later training can use them.
    """
    with torch.inference_mode(mode=False):
        before, keys, nearest, furthest = (
            torch.full((), number, dtype=torch.int32, device=device)
            for number in (past, past + queries, *distances)
        )

        def sees(_batch: Tensor, _head: Tensor, query: Tensor, key: Tensor) -> Tensor:
            distance = query + before - key
            return (key >= keys) | ((distance >= nearest) & (distance <= furthest))

        return create_block_mask(sees, None, None, queries, past + queries + extra, device=str(device))
