"""Activation checkpointing: what a sub-layer computes is computed again in the backward pass, not kept.

Chen et al. 2016, Training Deep Nets with Sublinear Memory Cost.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor
from torch.utils.checkpoint import checkpoint


def recomputed(first: Callable[..., Tensor], again: Callable[..., Tensor], *inputs: Tensor) -> Tensor:
    """What `first` makes of the inputs, of which alone is kept; the backward pass has it from `again`.

    `again` draws from the process's generators what `first` has drawn, and leaves them as they are then.
    """
    functions = iter((first,))

    def compute(*given: Tensor) -> Tensor:
        return next(functions, again)(*given)

    found = checkpoint(compute, *inputs, use_reentrant=False)
    assert isinstance(found, Tensor), "a function of tensors gives one"
    return found
