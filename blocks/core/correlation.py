"""Weights that slide along sequences: position by position, or on a CPU by frequencies where that is faster.

By frequencies there are fewer products. What is correlated around a circle is multiplied frequency by
frequency (the correlation theorem), and half of the frequencies tell the others, so that a matrix of weights
meets the inputs at N / 2 complex numbers rather than at each pair of a position and a tap. A complex product
is three real ones (Gauss). The transforms to and fro are products by small fixed matrices.
"""

from __future__ import annotations

import math
from functools import lru_cache

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx
from torch.nn import functional

from ...grammar.vocabulary.convolutions import GAIN, GAIN_BESIDE_WIDER_VECTORS, Correlation
from ..batched_gradients import one_gradient_at_a_time
from .linear_maps import are_plain, onednn_has_wider_vectors

NUMBERS_AT_ONCE = 2**19
"""Of several models so many transformed numbers are made at once: they stay in the caches."""


def correlate(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    left: int = 0,
    right: int = 0,
    by_frequencies: bool,
) -> Tensor:
    """Slide (outputs, taps, width) over (batch, length, width) with so many zeros before and after it.

    Returns (batch, left + length + right - taps + 1, outputs). With `by_frequencies` it is so computed where
    that is faster. Then an output depends on all positions, if only by rounding: not where causal models see.
    """
    biases = None if bias is None else bias.unsqueeze(0)
    return stacked_correlate(
        x, weight.unsqueeze(0), biases, left=left, right=right, by_frequencies=by_frequencies
    )


def stacked_correlate(
    x: Tensor,
    weights: Tensor,
    biases: Tensor | None = None,
    *,
    left: int = 0,
    right: int = 0,
    by_frequencies: bool,
) -> Tensor:
    """As `correlate` of each of several models, whose batches follow one another: (models · batch, …).

    Weights are (models, outputs, taps, width), biases (models, outputs).
    """
    if not (by_frequencies and is_faster_by_frequencies(x, weights, left, right)):
        return _by_positions(x, weights, biases, left, right)
    biases = weights.new_zeros(weights.shape[:2]) if biases is None else biases
    return _ByFrequencies.apply(x, weights, biases, (left, right))  # pyright: ignore -- torch has no type


def is_faster_by_frequencies(x: Tensor, weights: Tensor, left: int, right: int) -> bool:
    """Whether there are so many fewer products, of plain numbers on a CPU, that they take less time."""
    if not are_plain(x, weights) or x.dtype not in (torch.float32, torch.float64):
        return False
    gain = GAIN_BESIDE_WIDER_VECTORS if onednn_has_wider_vectors() else GAIN
    return _sizes(x, weights, left, right).is_faster_by_frequencies(gain)


def _sizes(x: Tensor, weights: Tensor, left: int, right: int) -> Correlation:
    """What slides where."""
    models, outputs, taps, width = weights.shape
    return Correlation(
        sequences=len(x) // models,
        length=x.shape[1],
        left=left,
        right=right,
        taps=taps,
        width=width,
        outputs=outputs,
        models=models,
    )


def _by_positions(x: Tensor, weights: Tensor, biases: Tensor | None, left: int, right: int) -> Tensor:
    """A two-dimensional convolution of height one, each model a group of it.

    Its channels-last form takes both as they lie in memory; on a CPU it is faster than `conv1d` at every size
    that we measured, up to 1.9 times.
    """
    models, outputs, taps, width = weights.shape
    padded = functional.pad(x, (0, 0, left, right))
    image = padded.unflatten(0, (models, -1)).permute(1, 0, 3, 2).flatten(1, 2).unsqueeze(2)
    kernel = weights.transpose(2, 3).reshape(models * outputs, width, 1, taps)
    flat = None if biases is None else biases.flatten()
    y = functional.conv2d(image, kernel, flat, groups=models).squeeze(2)
    return y.unflatten(1, (models, outputs)).permute(1, 0, 3, 2).flatten(0, 1)


class _Context(FunctionCtx):
    """What the backward pass finds."""

    padding: tuple[int, int]
    transforms: tuple[Tensor, Tensor, Tensor]
    saved_tensors: tuple[Tensor, ...]
    needs_input_grad: tuple[bool, ...]


class _ByFrequencies(torch.autograd.Function):
    """The same up to rounding; of several models so many at once as a cache holds."""

    @staticmethod
    def forward(
        ctx: _Context, x: Tensor, weights: Tensor, biases: Tensor, padding: tuple[int, int]
    ) -> Tensor:
        """The outputs (models · batch, positions, outputs)."""
        models, outputs, taps, _ = weights.shape
        batch, length = len(x) // models, x.shape[1]
        ctx.padding, ctx.transforms = padding, _transforms(length, taps, *padding, x.dtype)
        of_inputs, of_weights, of_products = ctx.transforms
        rows, y = x.unflatten(0, (models, batch)), x.new_empty(models, batch, len(of_products), outputs)
        kept = [x, weights, biases]
        at_once = NUMBERS_AT_ONCE // _sizes(x, weights, *padding).transformed
        for part in _parts(models, at_once):
            inputs = _mapped(of_inputs, rows[part].permute(2, 0, 1, 3)).flatten(0, 1)
            slid = _mapped(of_weights, weights[part].permute(2, 0, 1, 3)).flatten(0, 1)
            products = torch.bmm(inputs, slid.mT).unflatten(0, (len(of_inputs), -1))
            found = _mapped(of_products, products).permute(1, 2, 0, 3)
            torch.add(found, biases[part, None, None], out=y[part])
            kept += [inputs, slid]
        ctx.save_for_backward(*kept)
        return y.flatten(0, 1)

    @staticmethod
    @one_gradient_at_a_time
    def backward(  # pyright: ignore -- one output
        ctx: _Context, dy: Tensor
    ) -> tuple[Tensor | None, Tensor | None, Tensor | None, None]:
        """Of inputs, weights and biases; where gradients are to have gradients, position by position."""
        x, weights, _, *kept = ctx.saved_tensors
        if torch.is_grad_enabled():
            dx, dw, db = _gradients_by_positions(ctx, dy)
            return dx, dw, db, None
        models, (of_inputs, of_weights, of_products) = len(weights), ctx.transforms
        dy = dy.unflatten(0, (models, -1))
        dx, dw = torch.empty_like(x), torch.empty_like(weights)
        of_rows = dx.unflatten(0, (models, -1))
        for part, inputs, slid in zip(
            _parts(models, len(kept[1]) // len(of_inputs)), kept[::2], kept[1::2], strict=True
        ):
            towards = _mapped(of_products.T, dy[part].permute(2, 0, 1, 3)).flatten(0, 1)
            back = torch.bmm(towards, slid).unflatten(0, (len(of_inputs), -1))
            of_rows[part] = _mapped(of_inputs.T, back).permute(1, 2, 0, 3)
            back = torch.bmm(towards.mT, inputs).unflatten(0, (len(of_inputs), -1))
            dw[part] = _mapped(of_weights.T, back).permute(1, 2, 0, 3)
        return dx, dw, dy.sum((1, 2)), None


def _gradients_by_positions(ctx: _Context, dy: Tensor) -> list[Tensor | None]:
    """Those of inputs, weights and biases, which have gradients themselves."""
    x, weights, biases, *_ = ctx.saved_tensors
    given = [each.view_as(each) for each in (x, weights, biases)]  # which may depend on one another
    needed = ctx.needs_input_grad[:3]
    y = _by_positions(given[0], given[1], given[2], *ctx.padding)
    wanted = [each for each, is_needed in zip(given, needed, strict=True) if is_needed]
    found = iter(torch.autograd.grad(y, wanted, dy, create_graph=True))
    return [next(found) if is_needed else None for is_needed in needed]


def _parts(models: int, at_once: int) -> list[slice]:
    """The models, so many at once, at least one."""
    at_once = max(1, at_once)
    return [slice(first, first + at_once) for first in range(0, models, at_once)]


def _mapped(matrix: Tensor, x: Tensor) -> Tensor:
    """The first dimension mapped by a matrix."""
    return torch.mm(matrix, x.reshape(len(x), -1)).view(-1, *x.shape[1:])


@lru_cache(maxsize=64)
def _transforms(
    length: int, taps: int, left: int, right: int, dtype: torch.dtype
) -> tuple[Tensor, Tensor, Tensor]:
    """Of inputs (products, length), of weights (products, taps), of their products (positions, products).

    With ω = 2πf / N on a circle of N positions, Σ x exp(-iωt) over positions t transforms the inputs, and
    Σ w exp(iωj) over taps j the weights; the inverse of their product is the correlation. Of (a + ib)(c + id)
    are formed c(a + b), a(d - c) and b(c + d): the first less the third is the real part, the first and the
    second are the imaginary one. Frequency 0 is real, and so is N / 2.
    """
    around = length + max(left, right)  # what is read before the first or behind the last one are zeros
    with torch.inference_mode(False), torch.device("cpu"):
        frequencies = torch.arange(around // 2 + 1).unsqueeze(1)

        def turned(count: int, first: int = 0) -> tuple[Tensor, Tensor]:
            """The cosines and sines of ωt, (frequencies, count)."""
            steps = frequencies * torch.arange(first, first + count) % around
            angles = 2 * math.pi / around * steps.double()
            return angles.cos(), angles.sin()

        a, b = turned(length)
        c, d = turned(taps, -left)
        real, imaginary = turned(left + length + right - taps + 1)
        b, imaginary = -b, -imaginary
        of_inputs = _by_three(around, a, torch.stack([a + b, a, b], 1))
        of_weights = _by_three(around, c, torch.stack([c, d - c, c + d], 1))
        of_products = _by_three(around, real, 2 * torch.stack([real + imaginary, imaginary, -real], 1))
        return of_inputs.to(dtype), of_weights.to(dtype), (of_products.T / around).to(dtype).contiguous()


def _by_three(around: int, of_real: Tensor, of_complex: Tensor) -> Tensor:
    """A row for each real frequency, the first and of an even circle the last, and three for each other."""
    ends = -1 if around % 2 == 0 else None
    last = of_real[around // 2 :] if ends else of_real[:0]
    return torch.cat([of_real[:1], of_complex[1:ends].flatten(0, 1), last])
