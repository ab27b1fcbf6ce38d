"""Numbers by distance, (queries, distances), as numbers by key, (queries, keys), and the other way round."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from ....grammar.vocabulary.attention_window import QueryChunk


def skew(by_distance: Tensor, piece: QueryChunk, padding: float | None = None) -> Tensor:
    """Scores (…, queries, distances) as (…, queries, keys); a key at no distance of the window gets padding.

    Row t of the result begins t places further left in its row than row 0. With rows one longer than a step
    that is a plain view; what it meets beyond a row's end is padding, by default a masked score.
    """
    rows, width = piece.query_count, piece.padded_width
    value = masked_score(by_distance) if padding is None else padding
    padded = functional.pad(by_distance, (0, width - piece.distance_count), value=value)
    flat = padded.flatten(-2).narrow(-1, piece.shift, rows * (width - 1))
    return flat.reshape(*padded.shape[:-1], width - 1)[..., : piece.key_count]


def unskew(weights: Tensor, piece: QueryChunk) -> Tensor:
    """Weights (…, queries, keys) as (…, queries, distances), the furthest distance first."""
    rows, shift = piece.query_count, piece.shift
    width = max(piece.key_count + shift, rows + piece.distance_count - 1 - shift)
    padded = functional.pad(weights, (shift, width - shift - piece.key_count, 0, 1))
    flat = padded.flatten(-2).narrow(-1, 0, rows * (width + 1))
    return flat.reshape(*weights.shape[:-1], width + 1)[..., : piece.distance_count]


def masked_score(scores: Tensor) -> float:
    """A score that no softmax gives weight to; finite, so that nothing to see is nothing to divide by."""
    return torch.finfo(scores.dtype).min / 4
