"""x Wᵀ + b on a CPU by oneDNN, where the library that torch takes for it leaves half of the processor unused.

Torch multiplies matrices of single precision by Intel's MKL, which has no 512-bit vectors for processors of
other makers. OneDNN, which computes torch's convolutions, has them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import torch
from torch import Tensor, nn
from torch._C import _are_functorch_transforms_active
from torch.autograd.function import FunctionCtx
from torch.nn import functional
from torch.utils.flop_counter import register_flop_formula

from ..batched_gradients import one_gradient_at_a_time

LEAST_ROWS = 32
"""Fewer rows are taken at the pace of memory, which reads the weight."""

LEAST_PRODUCTS = 2**23
"""Of fewer products the time goes into the call."""

LEAST_PRODUCTS_OF_EACH = 2**21
"""As above, of each of several models that share a call."""


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """As torch's `functional.linear`, (…, inputs) to (…, outputs), up to rounding; up to twice as fast."""
    if not has_faster_products(x, weight, LEAST_PRODUCTS):
        return functional.linear(x, weight, bias)
    return _Map.apply(x.flatten(0, -2), weight, bias).view(*x.shape[:-1], -1)  # pyright: ignore -- torch has no type


def stacked_linear(x: Tensor, weights: Tensor, biases: Tensor | None = None) -> Tensor:
    """As `linear` of each model by its own weight: (models, rows, inputs) to (models, rows, outputs).

    Weights are (models, outputs, inputs), biases (models, outputs).
    """
    if not has_faster_products(x, weights, LEAST_PRODUCTS_OF_EACH):
        weights = weights.mT
        return torch.bmm(x, weights) if biases is None else torch.baddbmm(biases.unsqueeze(1), x, weights)
    return _Map.apply(x, weights, biases)  # pyright: ignore[reportReturnType] -- torch has no type


def has_faster_products(x: Tensor, weight: Tensor, least: int) -> bool:
    """Whether oneDNN multiplies the rows by a matrix, or those of each model by its own, in less time.

    From `least` products on it may. Transforms, and whoever rewrites operations, see those of torch.
    """
    if not are_plain(x, weight) or x.dtype != torch.float32:
        return False
    rows = x.shape[:-1].numel() // weight.shape[:-2].numel()
    return (
        rows >= LEAST_ROWS
        and rows * weight.shape[-1] * weight.shape[-2] >= least
        and onednn_has_wider_vectors()
        and bool(torch.backends.mkldnn.enabled)
    )


def are_plain(x: Tensor, weight: Tensor) -> bool:
    """Whether both are numbers of one kind on a CPU, seen by nobody who rewrites operations.

    Transforms as `torch.vmap` do not know operations of ours, autocast has another kind of numbers, and a
    program that is compiled or exported must not depend on sizes.
    """
    return (
        not are_operations_rewritten()
        and x.device.type == weight.device.type == "cpu"
        and x.dtype == weight.dtype
        and type(x) is Tensor
        and type(weight) in (Tensor, nn.Parameter)
        and not torch.is_autocast_enabled("cpu")
    )


def are_operations_rewritten() -> bool:
    """Whether a compiler or a transform as `torch.vmap` is under way, also of what it does not touch."""
    return torch.compiler.is_compiling() or _are_functorch_transforms_active()


@cache
def onednn_has_wider_vectors() -> bool:
    """Whether this processor has vectors that oneDNN uses, and MKL on Intel's alone."""
    if not (torch.backends.mkl.is_available() and torch.backends.mkldnn.is_available()):
        return False
    if not torch.backends.cpu.get_cpu_capability().startswith("AVX512"):
        return False
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return False
    return "AuthenticAMD" in text


def onednn_product(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return x Wᵀ + b by oneDNN; either matrix may be transposed.

    Expanded tensors, such as the gradient of a sum, are copied first: oneDNN reads a stride of 0 about 100
    times slower.
    """
    x, weight = (each.contiguous() if 0 in each.stride() else each for each in (x, weight))
    return torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")


def _flops(x: torch.Size, weight: torch.Size, *_: object, **__: object) -> int:
    """What torch's counter notes of a product, two for each multiplication."""
    return 2 * x.numel() * weight[0]


if torch.backends.mkldnn.is_available():
    register_flop_formula(torch.ops.mkldnn._linear_pointwise)(_flops)


class _MapContext(FunctionCtx):
    """What the backward pass finds."""

    saved_tensors: tuple[Tensor, Tensor]
    needs_input_grad: tuple[bool, bool, bool]


class _Map(torch.autograd.Function):
    """A map of rows (rows, inputs) by a matrix (outputs, inputs), or of each model's rows by its own."""

    @staticmethod
    def forward(ctx: _MapContext, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """The outputs (rows, outputs), of several models (models, rows, outputs)."""
        ctx.save_for_backward(x, weight)
        if weight.dim() == 2:
            return onednn_product(x, weight, bias)
        biases = [None] * len(weight) if bias is None else bias
        y = x.new_empty(*x.shape[:2], weight.shape[1])
        for outputs, rows, each, its_bias in zip(y, x, weight, biases, strict=True):
            outputs.copy_(onednn_product(rows, each, its_bias))  # while it is in the cache
        return y

    @staticmethod
    @one_gradient_at_a_time
    def backward(  # pyright: ignore -- one output
        ctx: _MapContext, dy: Tensor
    ) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        """By maps of the same kind, so that gradients have gradients."""
        x, weight = ctx.saved_tensors
        of_x, of_weight, of_bias = ctx.needs_input_grad
        mapped = linear if weight.dim() == 2 else stacked_linear
        return (
            mapped(dy, weight.mT) if of_x else None,
            _of_weight(mapped, x, dy) if of_weight else None,
            dy.sum(-2) if of_bias else None,
        )


def _of_weight(mapped: Callable[[Tensor, Tensor], Tensor], x: Tensor, dy: Tensor) -> Tensor:
    """The gradient of a matrix (outputs, inputs): the narrower of rows and outcomes are laid out anew."""
    if LEAST_ROWS <= x.shape[-1] < dy.shape[-1]:
        return mapped(x.mT, dy.mT).mT
    return mapped(dy.mT, x.mT)
