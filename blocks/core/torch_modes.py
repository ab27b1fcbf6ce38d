"""Modes of torch that operations of ours ask for: autocast, and transforms."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch._C import _are_functorch_transforms_active

SavedContext = Any
"""The context of a `torch.autograd.Function`: its saved tensors, and what the forward pass has noted."""


def without_autocast(device: torch.device) -> AbstractContextManager[object]:
    """Return a context in which operations on a device have the precision of their inputs.

    Autocast does not know the meta device.
    """
    return nullcontext() if device.type == "meta" else torch.autocast(device.type, enabled=False)


def are_operations_rewritten() -> bool:
    """Return whether a compiler or a transform such as `torch.vmap` is under way."""
    return torch.compiler.is_compiling() or _are_functorch_transforms_active()
