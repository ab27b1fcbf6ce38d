"""Modes of torch that operations of ours ask for: autocast, transforms, and several gradients at once."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import wraps
from typing import Any, TypeGuard

import torch
from torch import Tensor
from torch._C import (
    _are_functorch_transforms_active,
    _vmapmode_decrement_nesting,
    _vmapmode_increment_nesting,
)
from torch._C._functorch import is_legacy_batchedtensor

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


def one_gradient_at_a_time(backward: Callable[..., tuple[Tensor | None, ...]]) -> Callable[..., Any]:
    """Return a backward pass that is taken for each of several gradients where these come at once.

    Torch passes several gradients (`is_grads_batched`, Jacobians by `vectorize`) as one tensor of its older
    vmap, which does not know all that a backward pass may do: views into parts of a dimension, results
    written into given tensors.
    """

    @wraps(backward)
    def backward_of_each(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:  # noqa: ANN401 -- whatever a pass keeps
        if torch.compiler.is_compiling() or not any(map(_is_batched, gradients)):
            return backward(ctx, *gradients)
        level = max(1, _vmapmode_increment_nesting() - 1)  # threads of a device do not know the current level
        _vmapmode_decrement_nesting()
        apart = [_apart(each, level) if _is_batched(each) else each for each in gradients]
        count = next(len(each) for each in apart if isinstance(each, tuple))
        rows = zip(*(each if isinstance(each, tuple) else (each,) * count for each in apart), strict=True)
        found = zip(*(backward(ctx, *row) for row in rows), strict=True)
        return tuple(_together(each, level) for each in found)

    return backward_of_each


def _is_batched(gradient: Tensor | None) -> TypeGuard[Tensor]:
    return gradient is not None and is_legacy_batchedtensor(gradient)


def _apart(gradients: Tensor, level: int) -> tuple[Tensor, ...]:
    return torch._remove_batch_dim(gradients, level, 0, 0).unbind()  # pyright: ignore[reportPrivateImportUsage] -- as torch's vmap


def _together(gradients: tuple[Tensor | None, ...], level: int) -> Tensor | None:
    """Return one tensor that stands for all of them, or None where there are none."""
    given = [each for each in gradients if each is not None]
    if not given:
        return None
    return torch._add_batch_dim(torch.stack(given), 0, level)  # pyright: ignore[reportPrivateImportUsage] -- as torch's vmap
