"""A CPU that computes training steps as a GPU does, so that what a GPU allocates can be counted."""

import torch

from activemem.blocks.core import correlation, linear_maps
from activemem.blocks.core.dropout import Dropout
from activemem.blocks.layers import attention, window_attention
from activemem.blocks.layers.windows.products import window_products


def compute_as_a_gpu(monkeypatch):
    """No frequencies and no oneDNN, torch's own dropout, fused attention at all lengths, windows by products.

    By products a GPU computes windows of dropped weights; FlexAttention, which computes others, needs its
    compiler to hold as little as it does.
    """
    monkeypatch.setattr(correlation, "is_faster_by_frequencies", lambda *_: False)
    monkeypatch.setattr(linear_maps, "has_faster_products", lambda *_: False)
    monkeypatch.setattr(attention, "MAX_UNFUSED_LENGTH", 0)
    monkeypatch.setattr(window_attention, "compute_window", window_products)
    monkeypatch.setattr(Dropout, "forward", _drop)
    monkeypatch.setattr(Dropout, "draw", _draw)
    monkeypatch.setattr(Dropout, "scale", lambda self, _device: 1.0 / (1.0 - self.rate))


def _drop(self, x):
    return torch.native_dropout(x.contiguous(), self.rate, train=True)[0] if self.active else x


def _draw(self, shape, like):
    return torch.native_dropout(like.new_ones(shape), self.rate, train=True)[1] if self.active else None
