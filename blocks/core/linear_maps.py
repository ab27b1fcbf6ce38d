"""Linear maps that use MKL or oneDNN, whichever is faster on the CPU.

Torch multiplies matrices by MKL and computes convolutions by oneDNN. On processors of AMD, MKL leaves the
512-bit vectors unused that oneDNN uses. So large linear maps are computed there as convolutions with one tap.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from .operations import are_plain, is_transformed, onednn_has_wider_vectors

ROW_GROUPS = 16
"""The number of sequences into which rows are grouped; with fewer, torch would compute them by MKL."""

LEAST_ROWS = 256
"""The minimum number of rows: for fewer, copying weights into oneDNN's layout costs more than it saves."""

LEAST_PRODUCTS = 2**23
"""The minimum number of multiplications; with fewer, both libraries take the same time."""


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Map x (…, inputs) to x Wᵀ + b (…, outputs), equal to torch's `linear` up to rounding.

    The choice of the library depends only on sizes and the processor, so that trainings are bit-identical.
    """
    if torch.compiler.is_compiling():  # a compiled or exported program must not depend on sizes
        return functional.linear(x, weight, bias)
    if bias is not None and is_transformed():
        return functional.linear(x, weight).add_(bias)  # vmap would copy the product to add the bias
    numbers, (outputs, inputs) = x.numel(), weight.shape
    if (
        numbers * outputs < LEAST_PRODUCTS
        or numbers < LEAST_ROWS * inputs
        or numbers % (ROW_GROUPS * inputs)
        or not onednn_has_wider_vectors()
        or x.dtype != torch.float32
        or not are_plain(x, weight)
    ):
        return functional.linear(x, weight, bias)
    rows = x.reshape(ROW_GROUPS, -1, inputs).transpose(1, 2).unsqueeze(2)  # (groups, inputs, 1, rows)
    y = functional.conv2d(rows, weight[:, :, None, None], bias)
    return y.squeeze(2).transpose(1, 2).reshape(*x.shape[:-1], outputs)
