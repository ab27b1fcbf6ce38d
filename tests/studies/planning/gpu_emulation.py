"""Simulation of a GPU's training step on the CPU, to count allocations."""

import torch

from activemem.blocks.core import Dropout, correlation
from activemem.blocks.layers import attention, window_attention
from activemem.blocks.layers.windows import window_products


def compute_as_a_gpu(monkeypatch):
    """Disable FFTs, use byte masks for dropout, fused attention at all lengths, and products for windows."""
    monkeypatch.setattr(correlation, "choose_tile", lambda *_: None)
    monkeypatch.setattr(attention, "MAX_UNFUSED_LENGTH", 0)
    monkeypatch.setattr(window_attention, "compute_window", window_products)
    monkeypatch.setattr(Dropout, "forward", _drop)


def _drop(self, x):
    return torch.native_dropout(x.contiguous(), self.rate, train=True)[0] if self.active else x
