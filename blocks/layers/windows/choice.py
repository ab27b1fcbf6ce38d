"""The choice between the ways to compute a window, by device and by what each way supports."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from ...core.dropout import is_dropout_noted
from ..kernels.choice import disagreement, failure, is_stacked, tell_once, trying
from .pieces import Kept, WindowForm, WindowInputs, can_be_fused, iter_chunks, window_fused, window_products
from .tiles import window_tiles

MAX_UNFUSED_LENGTH = 64
"""Up to this many keys, a CPU computes plain products and keeps their weights."""

MAX_WHOLE_SCORES = 512
"""Up to this many scores of a query, a CPU computes plain products of all heads at once; above it, tiles."""

MIN_FLEX_HEAD_WIDTH = 16
"""FlexAttention multiplies no narrower heads."""

MIN_FLEX_KEYS = 128
"""Fewer keys fill only one of FlexAttention's blocks."""

MIN_MANY_QUERIES = 128
"""Fewer queries go to FlexAttention's kernel for decoding, which divides the keys among its programs."""


MAX_BY_DISTANCE = 2**31 - 1
"""The most scores by distance that FlexAttention can read: it counts them in 32 bits."""


class Kernel(NamedTuple):
    """The properties for which a kernel of FlexAttention is compiled."""

    device: torch.device
    dtype: torch.dtype
    head_width: int
    by_distance: bool
    mask: bool
    capped: bool
    many_queries: bool


def compute_window(form: WindowForm, given: WindowInputs, kept: Kept = ()) -> Tensor:
    """Return what each query sees, (heads, batch, queries, head_width)."""
    device = given.q.device.type.replace("meta", "cpu")  # whose costs are measured
    most_scores = max(piece.key_count for piece in form.pieces) + given.num_extra  # of any query
    match "compiled" if torch.compiler.is_compiling() else device:
        case "cpu" if given.k.shape[2] > MAX_UNFUSED_LENGTH and can_be_fused(form, given, kept):
            if not is_stacked(given.q):
                return window_fused(form, given)
        case "cpu" if not form.cap and most_scores > MAX_WHOLE_SCORES:
            if not torch.is_autocast_enabled("cpu"):
                return window_tiles(form, given, kept)
        case "cuda" if (
            given.k.shape[2] + given.num_extra >= MIN_FLEX_KEYS
            and not is_stacked(given.q)
            and not is_dropout_noted()  # no kernel is compiled for one pass
        ):
            found = window_or_fault(form, given, kept)
            if isinstance(found, Tensor):
                return found
            tell_once("windows are not computed by FlexAttention", found)
        case _:
            pass
    return window_products(form, given, kept)


_failed = dict[Hashable, str]()
"""The kinds of calls that FlexAttention has failed with in this process, and why."""

_tried = set[Hashable]()
"""The sizes of calls whose gradients it has computed before."""


def window_or_fault(form: WindowForm, given: WindowInputs, kept: Kept = ()) -> Tensor | str:
    """Return a window by FlexAttention, or why it cannot compute it.

    Torch compiles kernels when a size first occurs, and backward kernels during the backward pass. A failure
    there would lose a training step: too little shared memory, or too many sequences for a launch. So each
    new size first computes a window and its gradients in a separate call. A kind of calls that fails uses the
    plain form from then on.
    """
    if (fault := fused_fault(form, given, kept)) is not None:
        return fault
    from .flex import call_kind, fused_window  # noqa: PLC0415 -- loads much that few processes need

    kind, found = call_kind(form, given), list[Tensor]()
    if kind in _failed:
        return _failed[kind]
    fault = _gradients_fault(kind, form, given)
    fault = fault or failure(lambda: found.append(fused_window(form, given)))
    if fault is None:
        return found[0]
    _failed[kind] = fault
    return fault


def _gradients_fault(kind: Hashable, form: WindowForm, given: WindowInputs) -> str | None:
    """Return why a call with gradients fails at its sizes, tried once a process on its numbers."""
    from .flex import fused_window  # noqa: PLC0415 -- as above

    there = {name: each for name, each in given._asdict().items() if each is not None}
    if not torch.is_grad_enabled() or not any(each.requires_grad for each in there.values()):
        return None
    layout = ((name, each.shape, each.stride(), each.requires_grad) for name, each in there.items())
    if (sizes := (kind, *layout)) in _tried:
        return None
    beside = {name: each.detach().requires_grad_(each.requires_grad) for name, each in there.items()}

    def compute() -> None:
        with trying():
            y = fused_window(form, given._replace(**beside))
            y.backward(torch.zeros_like(y))

    if (fault := failure(compute)) is None:
        _tried.add(sizes)
    return fault


def fused_fault(form: WindowForm, given: WindowInputs, kept: Kept = ()) -> str | None:
    """Return why FlexAttention does not compute a window; None where it does."""
    q = given.q
    faults = {
        "weights are dropped ([model] attention_dropout)": bool(kept),
        "position vectors are on values too (pos_values)": form.pos_values and given.vectors is not None,
        "numbers have 64 bits": q.dtype == torch.float64,
        f"heads are narrower than {MIN_FLEX_HEAD_WIDTH}": q.shape[-1] < MIN_FLEX_HEAD_WIDTH,
        f"scores by distance are more than {MAX_BY_DISTANCE:,}": _num_by_distance(given) > MAX_BY_DISTANCE,
    }
    fault = next((fault for fault, holds in faults.items() if holds), None)
    if fault is not None:
        return fault
    by_distance = given.vectors is not None or given.fading is not None
    has_mask, many = given.mask is not None, q.shape[2] >= MIN_MANY_QUERIES
    return trial_fault(Kernel(q.device, q.dtype, q.shape[-1], by_distance, has_mask, form.cap > 0, many))


def _num_by_distance(given: WindowInputs) -> int:
    """Return the number of scores by distance: one of each distance for each query."""
    if given.fading is not None:
        return given.q.shape[:3].numel() * given.fading.shape[-1]
    return 0 if given.vectors is None else given.q.shape[:3].numel() * len(given.vectors)


@lru_cache
def trial_fault(kernel: Kernel) -> str | None:
    """Return what is wrong with small windows by such a kernel, tried once a process, or None.

    There are two: what torch compiles for the second is for sequences of any number and length.
    """
    from .flex import fused_window  # noqa: PLC0415 -- as above

    lengths = (160, 300) if kernel.many_queries else (24, 120)
    windows = [_small_window(kernel, batch, length) for batch, length in enumerate(lengths, 2)]

    def by(compute: Callable[[WindowForm, WindowInputs], Tensor]) -> list[Tensor]:
        return [each for form, given in windows for each in _with_gradients(form, given, compute)]

    return disagreement(
        lambda: by(fused_window), lambda: by(window_products), "a small window was not as by products"
    )


def _small_window(kernel: Kernel, batch: int, length: int) -> tuple[WindowForm, WindowInputs]:
    """Return a window of all that a kernel is made for, behind a past, of numbers that nothing draws."""
    past, span, extra, width = 96, 100, 8, kernel.head_width
    place = torch.device(kernel.device)

    def numbers(*shape: int) -> Tensor:
        count = torch.Size(shape).numel()
        found = torch.sin(0.7 * torch.arange(count, device=place, dtype=torch.float32) + count)
        return found.view(shape).to(kernel.dtype).requires_grad_()

    pieces = tuple(iter_chunks(length, past, 1, span))
    form = WindowForm(
        pieces=pieces, pos_values=False, first_sees_nothing=False, cap=2.0 if kernel.capped else 0.0
    )
    sizes = tuple((2, batch, positions, width) for positions in (length, past + length, past + length))
    mask = torch.arange(past + length, device=place).expand(batch, -1) != past
    return form, WindowInputs(
        *(numbers(*size) for size in sizes),
        vectors=numbers(span, width) if kernel.by_distance else None,
        extra_keys=numbers(2, extra, width),
        extra_values=numbers(2, extra, width),
        mask=mask if kernel.mask else None,
    )


def _with_gradients(
    form: WindowForm, given: WindowInputs, compute: Callable[[WindowForm, WindowInputs], Tensor]
) -> list[Tensor]:
    """Return what a window gives, and the gradients of its inputs."""
    y = compute(form, given)
    wanted = [each for each in given if each is not None and each.requires_grad]
    return [y.detach(), *torch.autograd.grad(y.square().sum(), wanted)]
