"""Simulation of a GPU's training step on the CPU, to count allocations."""

import torch

from activemem.blocks.core import correlation
from activemem.blocks.core.dropout import Dropout
from activemem.blocks.layers import attention


def compute_as_a_gpu(monkeypatch):
    """Disable FFTs, use byte masks for dropout, and fused attention at all lengths."""
    monkeypatch.setattr(correlation, "choose_tile", lambda *_: None)
    monkeypatch.setattr(attention, "MAX_UNFUSED_LENGTH", 0)
    monkeypatch.setattr(Dropout, "forward", _drop)


def _drop(self, x):
    return torch.native_dropout(x.contiguous(), self.rate, train=True)[0] if self.active else x
