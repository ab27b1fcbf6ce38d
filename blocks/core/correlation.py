"""Correlation of sequences with filters, for convolutional blocks.

It is computed directly or, on a CPU, in the frequency domain if that is faster. The frequency domain needs
fewer products: circular correlation is multiplication frequency by frequency (the correlation theorem). Half
of the frequencies determine the others. So inputs and weights are multiplied at N / 2 complex numbers, not at
each pair of a position and a tap. A complex product takes three real ones (Gauss). The transforms are
products with small fixed matrices. They grow with the square of the length, so a long sequence is cut into
tiles that overlap by the taps (overlap-save, Stockham 1966).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache, lru_cache
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional

from .operations import SavedContext, are_on_cpu, has_tangent

GAIN = 1.25
"""The frequency domain is used if it has fewer products by this factor, because its smaller products move
more memory."""

GAIN_BESIDE_FASTER_CONVOLUTIONS = 2.0
"""The value of `GAIN` in bf16, and where torch's convolutions use wider vectors than its matrix products."""

GAIN_OF_TILES = 1.5
"""The additional factor for tiles, which must be cut out of the inputs and joined again."""

GAIN_OF_TILES_BESIDE_FASTER_CONVOLUTIONS = 2.5
"""The whole factor for tiles in single precision where torch's convolutions use wider vectors."""

LEAST_PRODUCTS = 2**19
"""The minimum number of products; with fewer, call overhead dominates."""

MOST_NUMBERS, MOST_FACTORS = 2**23, 2**19
"""The maximum sizes of transformed inputs and of transform matrices; larger ones do not fit in the caches."""


def correlate(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    left: int = 0,
    right: int = 0,
    by_frequencies: bool,
) -> Tensor:
    """Correlate x (batch, length, width), zero-padded on both sides, with weight (outputs, taps, width).

    Return (batch, left + length + right - taps + 1, outputs). `by_frequencies` allows the frequency domain
    if it is faster. Rounding errors then make an output depend on later positions too, so causal models use
    it only in training. Under autocast to bf16, transforms and products are computed in bf16: their errors
    are about twice those of a convolution in bf16 (tested against double precision).
    """
    if _is_cast_to_bf16(x):
        x, weight = x.bfloat16(), weight.bfloat16()
        bias = None if bias is None else bias.bfloat16()
    given = (x, weight) if bias is None else (x, weight, bias)
    by_frequencies = by_frequencies and not has_tangent(*given)
    tile = choose_tile(x, weight, left, right) if by_frequencies else None
    if tile is None:
        return _by_positions(x, weight, bias, left, right)
    bias = weight.new_zeros(len(weight)) if bias is None else bias
    if tile == WHOLE:
        return _ByFrequencies.apply(x, weight, bias, (left, right))  # pyright: ignore -- torch has no type
    return _ByTiles.apply(x, weight, bias, (left, right, tile))  # pyright: ignore -- as above


_DTYPES = (torch.float32, torch.float64, torch.bfloat16)
"""The precisions in which the frequency domain is exact enough."""

WHOLE = 0
"""The tile size that stands for the whole sequence."""

TILES = (32, 64)
"""The possible numbers of output positions in a tile, for sequences too long for one transform."""

GROUP_NUMBERS, LEAST_TILES = 2**22, 64
"""The size of a group of transformed tiles, and the minimum number of tiles in it."""


def choose_tile(x: Tensor, weight: Tensor, left: int, right: int) -> int | None:
    """Choose the tile size in the frequency domain, or None for direct correlation.

    None is returned if direct correlation is faster. A tile is a number of output positions that are computed
    together. WHOLE means one tile for the whole sequence. The choice depends only on sizes, so that trainings
    are bit-identical.
    """
    if torch.compiler.is_compiling():  # a compiled program must not depend on sizes
        return None
    (sequences, length, width), (outputs, taps, _) = x.shape, weight.shape
    positions = left + length + right - taps + 1
    slid = sequences * positions * taps * width * outputs
    if slid < LEAST_PRODUCTS or x.dtype not in _DTYPES or not are_on_cpu(x, weight):
        return None
    wider = onednn_has_wider_vectors()
    gain = GAIN_BESIDE_FASTER_CONVOLUTIONS if wider or x.dtype == torch.bfloat16 else GAIN

    def products_of(tile: int) -> float:
        """Return the multiplications with tiles of this size, infinity if data do not fit in the caches."""
        many = sequences if tile == WHOLE else sequences * math.ceil(positions / tile)
        read = length if tile == WHOLE else tile + taps - 1
        made = positions if tile == WHOLE else tile
        around = read + (max(left, right) if tile == WHOLE else 0)
        products = 3 * ((around - 1) // 2) + (1 if around % 2 else 2)  # 3 per frequency, 1 at both ends
        leaves_caches = products * (read + taps + made) > MOST_FACTORS or (
            tile == WHOLE and products * (many * (width + outputs) + outputs * width) > MOST_NUMBERS
        )
        each = many * (width * (read + outputs) + outputs * made)
        each += 2 * outputs * width * taps  # the transforms of weights count twice
        return math.inf if leaves_caches else products * each

    gain_of_tiles = GAIN_OF_TILES * gain
    if wider and x.dtype == torch.float32:
        gain_of_tiles = GAIN_OF_TILES_BESIDE_FASTER_CONVOLUTIONS
    needed = {WHOLE: gain * products_of(WHOLE)}
    needed |= {tile: gain_of_tiles * products_of(tile) for tile in TILES if taps <= tile < positions}
    best = min(needed, key=needed.__getitem__)
    return best if slid >= needed[best] else None


def _is_cast_to_bf16(x: Tensor) -> bool:
    """Return whether autocast computes products with x in bf16 on a CPU."""
    if x.device.type != "cpu" or not torch.is_autocast_enabled("cpu"):
        return False
    return torch.get_autocast_dtype("cpu") == torch.bfloat16 and x.dtype != torch.float64


def _by_positions(x: Tensor, weight: Tensor, bias: Tensor | None, left: int, right: int) -> Tensor:
    """Correlate directly, by torch's 2-D convolution.

    The sequence is an image of height one. Its channels-last form needs no copies; on a CPU it is up to 1.9
    times as fast as `conv1d`.
    """
    image = functional.pad(x, (0, 0, left, right)).transpose(1, 2).unsqueeze(2)
    y = functional.conv2d(image, weight.transpose(1, 2).unsqueeze(2), bias)
    return y.squeeze(2).transpose(1, 2)


class _ByFrequencies(torch.autograd.Function):
    """Correlation of whole sequences in the frequency domain, equal to the direct one up to rounding."""

    @staticmethod
    def forward(
        ctx: SavedContext, x: Tensor, weight: Tensor, bias: Tensor, padding: tuple[int, int]
    ) -> Tensor:
        ctx.padding = padding
        ctx.transforms = _transforms(x.shape[1], weight.shape[1], *padding, x.dtype)
        of_inputs, of_weights, of_products = ctx.transforms
        inputs = _mapped(of_inputs, x.transpose(0, 1))  # (products, batch, width)
        slid = _mapped(of_weights, weight.transpose(0, 1))  # (products, outputs, width)
        found = _mapped(of_products, torch.bmm(inputs, slid.mT))
        ctx.save_for_backward(x, weight, bias, inputs, slid)
        # adding the bias also writes the outputs in their final layout, which saves a copy
        y = x.new_empty(len(x), len(of_products), len(weight))
        return torch.add(found.transpose(0, 1), bias, out=y)

    @staticmethod
    def backward(  # pyright: ignore -- one output
        ctx: SavedContext, dy: Tensor
    ) -> tuple[Tensor | None, Tensor | None, Tensor | None, None]:
        """Return the gradients. If they must be differentiable again, they are computed directly."""
        x, weight, bias, inputs, slid = ctx.saved_tensors
        if torch.is_grad_enabled():
            dx, dw, db = _gradients_by_positions(ctx, (x, weight, bias), dy)
            return dx, dw, db, None
        of_inputs, of_weights, of_products = ctx.transforms
        towards = _mapped(of_products.T, dy.transpose(0, 1))  # (products, batch, outputs)
        dx = _mapped(of_inputs.T, torch.bmm(towards, slid)).transpose(0, 1)
        dw = _mapped(of_weights.T, torch.bmm(towards.mT, inputs)).transpose(0, 1)
        return dx.contiguous(), dw.contiguous(), dy.sum((0, 1)), None


class _ByTiles(torch.autograd.Function):
    """Correlation in the frequency domain, tile by tile, equal to the direct one up to rounding.

    A tile reads tile + taps - 1 positions. Tiles are computed in groups whose data fit in the caches.
    """

    @staticmethod
    def forward(
        ctx: SavedContext, x: Tensor, weight: Tensor, bias: Tensor, layout: tuple[int, int, int]
    ) -> Tensor:
        *padding, tile = layout
        ctx.padding, ctx.tile = padding, tile
        outputs, taps, width = weight.shape
        ctx.transforms = of_inputs, of_weights, of_products = _transforms(
            tile + taps - 1, taps, 0, 0, x.dtype
        )
        read, positions = _cut(x, padding, tile, taps)
        slid = x.new_empty(len(of_weights), outputs, width)
        torch.bmm(of_weights.expand(outputs, -1, -1), weight, out=slid.transpose(0, 1))
        ctx.group = max(LEAST_TILES, GROUP_NUMBERS // (len(slid) * max(width, outputs)))
        if x.dtype == torch.bfloat16:  # sums of the groups' gradients would be rounded to bf16
            ctx.group = len(read)
        y = x.new_empty(len(read), tile, outputs)
        inputs: list[Tensor] = []
        for some, made in zip(read.split(ctx.group), y.split(ctx.group), strict=True):
            inputs.append(_transformed(of_inputs, some))  # (tiles, products, width)
            found = _products(inputs[-1], slid)
            torch.baddbmm(bias, of_products.expand(len(some), -1, -1), found, out=made)
        ctx.save_for_backward(x, weight, bias, slid, *inputs)
        return y.view(len(x), -1, outputs)[:, :positions]

    @staticmethod
    def backward(  # pyright: ignore -- one output
        ctx: SavedContext, dy: Tensor
    ) -> tuple[Tensor | None, Tensor | None, Tensor | None, None]:
        """Return the gradients. If they must be differentiable again, they are computed directly."""
        x, weight, bias, slid, *inputs = ctx.saved_tensors
        if torch.is_grad_enabled():
            dx, dw, db = _gradients_by_positions(ctx, (x, weight, bias), dy)
            return dx, dw, db, None
        of_inputs, of_weights, of_products = ctx.transforms
        made, _ = _cut(dy, (0, 0), ctx.tile, 1)
        dread = dy.new_empty(len(made), of_inputs.shape[1], x.shape[2])
        dslid: Tensor | None = None
        for some, read, out in zip(made.split(ctx.group), inputs, dread.split(ctx.group), strict=True):
            towards = _transformed(of_products.T, some)  # (tiles, products, outputs)
            torch.bmm(of_inputs.T.expand(len(some), -1, -1), _products(towards, slid.mT), out=out)
            pair = towards.permute(1, 2, 0), read.transpose(0, 1)
            dslid = torch.bmm(*pair) if dslid is None else dslid.baddbmm_(*pair)
        assert dslid is not None, "there is at least one tile"
        dw = torch.bmm(of_weights.T.expand(len(weight), -1, -1), dslid.transpose(0, 1))
        left = ctx.padding[0]
        dx = _overlap_add(dread, len(x), ctx.tile)[:, left : left + x.shape[1]]
        return dx.contiguous(), dw, dy.sum((0, 1)), None


def _cut(x: Tensor, padding: Sequence[int], tile: int, taps: int) -> tuple[Tensor, int]:
    """Cut x into overlapping tiles, and count the outputs of a sequence.

    The tiles are (batch * tiles, tile + taps - 1, width).
    """
    left, right = padding
    positions = left + x.shape[1] + right - taps + 1
    right += -positions % tile
    padded = functional.pad(x, (0, 0, left, right)) if left or right else x
    read = padded.unfold(1, tile + taps - 1, tile).transpose(2, 3)  # (batch, tiles, tile + taps - 1, width)
    return read.reshape(-1, tile + taps - 1, x.shape[2]), positions


def _overlap_add(read: Tensor, sequences: int, tile: int) -> Tensor:
    """Add overlapping tiles at their positions (batch, positions, width), the transpose of `_cut`."""
    _, window, width = read.shape
    read = read.view(sequences, -1, window, width)
    total = read.new_empty(sequences, read.shape[1] + 1, tile, width)
    total[:, :-1] = read[:, :, :tile]
    total[:, -1] = 0.0
    total[:, 1:, : window - tile] += read[:, :, tile:]
    return total.flatten(1, 2)


def _transformed(matrix: Tensor, x: Tensor) -> Tensor:
    """Map each tile of x (tiles, positions, width) by the matrix (products, positions).

    The memory of the result has the order in which it is multiplied: product by product.
    """
    y = x.new_empty(len(matrix), len(x), x.shape[2]).transpose(0, 1)
    return torch.bmm(matrix.expand(len(x), -1, -1), x, out=y)


def _products(x: Tensor, weight: Tensor) -> Tensor:
    """Map x (tiles, products, width) by weight (products, outputs, width), product by product."""
    return torch.bmm(x.transpose(0, 1), weight.mT).transpose(0, 1)


@cache
def onednn_has_wider_vectors() -> bool:
    """Return whether oneDNN uses wider vectors than MKL, which uses 512 bits on processors of Intel only."""
    if not (torch.backends.mkl.is_available() and torch.backends.mkldnn.is_available()):
        return False
    if not torch.backends.cpu.get_cpu_capability().startswith("AVX512"):
        return False
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return False
    return "AuthenticAMD" in text


def _gradients_by_positions(
    ctx: SavedContext, inputs: tuple[Tensor, Tensor, Tensor], dy: Tensor
) -> list[Tensor | None]:
    """Return gradients by the direct computation, which can be differentiated again."""
    given = [each.view_as(each) for each in inputs]  # views, since inputs may depend on each other
    needed = ctx.needs_input_grad[:3]
    y = _by_positions(given[0], given[1], given[2], *ctx.padding)
    wanted = [each for each, is_needed in zip(given, needed, strict=True) if is_needed]
    found = iter(torch.autograd.grad(y, wanted, dy, create_graph=True))
    return [next(found) if is_needed else None for is_needed in needed]


def _mapped(matrix: Tensor, x: Tensor) -> Tensor:
    return torch.mm(matrix, x.reshape(len(x), -1)).view(-1, *x.shape[1:])


@lru_cache(maxsize=64)
def _transforms(
    length: int, taps: int, left: int, right: int, dtype: torch.dtype
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the matrices that transform to the frequency domain and back.

    The first two transform inputs and weights, the last one transforms products back. Their shapes are
    (products, length), (products, taps) and (positions, products). Let ω = 2πf / N on a circle of N
    positions. Σ x exp(-iωt) over positions t transforms the inputs, and Σ w exp(iωj) over taps j transforms
    the weights. The inverse transform of their product is the correlation. The product (a + ib)(c + id) takes
    three products: c(a + b), a(d - c) and b(c + d). Its real part is the first minus the third, its imaginary
    part the first plus the second. Frequencies 0 and N / 2 are real.
    """
    around = length + max(left, right)  # zeros are read outside the sequence
    # training rejects tensors that were made in inference mode, and these are cached for both
    with torch.inference_mode(False), torch.device("cpu"):
        frequencies = torch.arange(around // 2 + 1).unsqueeze(1)

        def turned(count: int, first: int = 0) -> tuple[Tensor, Tensor]:
            """Return cos ωt and sin ωt (frequencies, count) for all frequencies ω, with t from `first` on."""
            # the remainder of whole numbers is exact, unlike the cosine of a large angle
            steps = frequencies * torch.arange(first, first + count) % around
            angles = 2 * math.pi / around * steps.double()
            return angles.cos(), angles.sin()

        a, b = turned(length)
        c, d = turned(taps, -left)
        real, imaginary = turned(left + length + right - taps + 1)
        b, imaginary = -b, -imaginary
        of_inputs = _join_rows(around, a, torch.stack([a + b, a, b], 1))
        of_weights = _join_rows(around, c, torch.stack([c, d - c, c + d], 1))
        of_products = _join_rows(around, real, 2 * torch.stack([real + imaginary, imaginary, -real], 1))
        return of_inputs.to(dtype), of_weights.to(dtype), (of_products.T / around).to(dtype).contiguous()


def _join_rows(around: int, of_real: Tensor, of_complex: Tensor) -> Tensor:
    """Join the rows of real and complex frequencies, by frequency, to one transform matrix.

    Each row gives one product of real numbers: `of_real` one a frequency, `of_complex` three. The first
    frequency is real, and so is the last one if the number of positions `around` is even.
    """
    ends = -1 if around % 2 == 0 else None
    last = of_real[around // 2 :] if ends else of_real[:0]
    return torch.cat([of_real[:1], of_complex[1:ends].flatten(0, 1), last])
