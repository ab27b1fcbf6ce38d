"""The comparison of a kernel with a plain form on small inputs, and the message where they differ."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks

MAX_DIFFERENCE = 0.03
"""So far, of their norm, numbers may be from those of the plain form, as 7 bits after the first are few."""

_log = logging.getLogger(__name__)


def disagreement(
    fast: Callable[[], Sequence[Tensor]], plain: Callable[[], Sequence[Tensor]], what: str
) -> str | None:
    """Return what is wrong with a kernel's outputs and gradients, or None."""
    given: list[Sequence[Tensor]] = []

    def compute_both() -> None:
        with trying():
            given.extend([fast(), plain()])

    if (fault := failure(compute_both)) is not None:
        return fault
    for one, other in zip(*given, strict=True):
        if not (one - other).norm() <= MAX_DIFFERENCE * other.norm():
            return what
    return None


@contextmanager
def trying() -> Iterator[None]:
    """Enter a context in which something is tried with its gradients.

    Whoever has what is saved around it computed again, as activation checkpointing, sees nothing of it.
    """
    saved_here = saved_tensors_hooks(Tensor.detach, lambda saved: saved)  # in place of those around it
    with torch.inference_mode(mode=False), torch.enable_grad(), saved_here:
        yield


def failure(compute: Callable[[], object]) -> str | None:
    """Return in one line why a kernel fails, or None; raises errors of memory."""
    try:
        compute()
    except torch.OutOfMemoryError:
        raise
    except Exception as error:
        if "out of memory" in str(error):  # that compilers tell in errors of their own
            raise
        cause = getattr(error, "inner_exception", None) or error  # of torch's compiler
        return f"{type(cause).__name__}: {str(cause).strip().partition(chr(10))[0]}"
    return None


@lru_cache
def tell_once(what: str, fault: str) -> None:
    """Say once a process what a GPU computes by a plain form, and why."""
    _log.warning("%s: %s", what, fault)


def is_stacked(numbers: Tensor) -> bool:
    """Return whether the numbers are in a vmap, which kernels do not know."""
    sizes: list[int] = []
    _Look.apply(sizes.append, numbers.detach())
    return bool(sizes)


class _Look(torch.autograd.Function):
    """A function that computes nothing, and reports the size of a vmap around it."""

    @staticmethod
    def forward(_tell: Callable[[int], None], numbers: Tensor) -> Tensor:
        return numbers.new_empty(0)

    @staticmethod
    def setup_context(ctx: object, inputs: object, output: object) -> None:
        """Keep nothing."""

    @staticmethod
    def vmap(
        info: Any,  # noqa: ANN401 -- torch names no type
        in_dims: object,
        *args: Any,  # noqa: ANN401 -- those of forward, as torch has it
    ) -> tuple[Tensor, None]:
        """Report the size; torch calls this within a vmap over numbers."""
        tell, numbers = args
        tell(info.batch_size)
        return numbers.new_empty(0), None
