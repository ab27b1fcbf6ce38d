"""A window in pieces by torch's fused attention, which keeps a sum for each query instead of its weights."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from ....grammar.vocabulary.attention_window import QueryChunk
from .inputs import Kept, WindowForm, WindowInputs


def can_be_fused(form: WindowForm, given: WindowInputs, kept: Kept = ()) -> bool:
    """Whether scores are by content alone, of keys within the window alone, and no weights are dropped."""
    beside = (given.vectors, given.fading, given.extra_keys)
    return not (form.cap or form.first_sees_nothing or kept) and all(each is None for each in beside)


def window_fused(form: WindowForm, given: WindowInputs) -> Tensor:
    """What each query sees, (heads, batch, queries, head_width), of a form that can be fused.

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
    """Which keys each query sees, (queries, keys), or those of each sequence, (batch, 1, queries, keys)."""
    queries, keys = (
        torch.arange(*ends, device=given.q.device)
        for ends in ((piece.start, piece.stop), (piece.key_start, piece.key_stop))
    )
    distances = queries[:, None] - keys
    visible = (distances >= piece.min_distance) & (distances <= piece.max_distance)
    if given.mask is None:
        return visible
    return visible & given.mask[:, None, None, piece.key_start : piece.key_stop]
