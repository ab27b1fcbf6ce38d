"""A CPU that computes training steps as a GPU does, so that what a GPU allocates can be counted."""

import torch

from activemem.blocks.core import correlation
from activemem.blocks.core.dropout import Dropout
from activemem.blocks.layers import attention, window_attention
from activemem.blocks.layers.windows.pieces import window_products


def compute_as_a_gpu(monkeypatch):
    """No frequencies, dropout that keeps bytes, fused attention at all lengths, windows by products."""
    monkeypatch.setattr(correlation, "choose_tile", lambda *_: None)
    monkeypatch.setattr(attention, "MAX_UNFUSED_LENGTH", 0)
    monkeypatch.setattr(window_attention, "compute_window", window_products)
    monkeypatch.setattr(Dropout, "forward", _drop)


def _drop(self, x):
    return torch.native_dropout(x.contiguous(), self.rate, train=True)[0] if self.active else x
