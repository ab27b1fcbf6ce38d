"""Positions in their order, drawn from a longer range: others in each training step, then always the same."""

from __future__ import annotations

import torch
from torch import Tensor

from .dropout import draw_keys


def draw_positions(
    count: int, length: int, lengths: Tensor | None, *, device: torch.device, training: bool
) -> Tensor:
    """Of `count` positions as many as a sequence is long: (length,), or of each sequence, (batch, length)."""
    keys = draw_keys(count, device) if training else _fixed_keys(count, device)
    return choose_positions(keys, length, lengths)


def choose_positions(keys: Tensor, length: int, lengths: Tensor | None) -> Tensor:
    """The positions with the least keys, in their order: (length,), or of each sequence, (batch, length).

    Each sequence has as many as it is long; behind its end stands the number of all positions.
    """
    rank, places = keys.argsort().argsort(), torch.arange(len(keys), device=keys.device)
    chosen = rank < (length if lengths is None else lengths[:, None])
    return torch.where(chosen, places, len(keys)).sort(-1).values[..., :length]


def _fixed_keys(count: int, device: torch.device) -> Tensor:
    """Keys that look random and are always the same: positions by the mixing function of MurmurHash3."""
    low = 2**32 - 1
    keys = (torch.arange(1, count + 1, device=device) * 0x9E3779B1) & low
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        keys = ((keys ^ (keys >> shift)) * factor) & low
    return keys ^ (keys >> 16)
