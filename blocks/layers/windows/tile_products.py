"""Products of the matrices of a tile, by oneDNN where that leaves less of a processor unused than MKL.

All are (rows, inner) times (inner, columns), or of several sequences, (sequences, …) each.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from ...core.linear_maps import has_faster_products, onednn_product

LEAST_PRODUCTS = 2**22
"""Of fewer multiplications the time that oneDNN gains goes into the copy of what it gives."""


def multiply(a: Tensor, b: Tensor) -> Tensor:
    """The products."""
    if not _has_faster(a, b):
        return torch.mm(a, b) if a.dim() == 2 else torch.bmm(a, b)
    if a.dim() == 2:
        return _product(a, b)
    return torch.stack([_product(*pair) for pair in zip(a, b, strict=True)])


def write_product(out: Tensor, a: Tensor, b: Tensor) -> None:
    """Write the products into `out`, whose rows may lie apart."""
    if not _has_faster(a, b):
        multiply_into = torch.mm if a.dim() == 2 else torch.bmm
        multiply_into(a, b, out=out)
        return
    for into, one, other in _each(out, a, b):
        into.copy_(_product(one, other))


def add_product(into: Tensor, a: Tensor, b: Tensor) -> None:
    """Add the products to `into`, whose rows may lie apart."""
    if not _has_faster(a, b):
        add = torch.addmm if a.dim() == 2 else torch.baddbmm
        add(into, a, b, out=into)
        return
    for one_into, one, other in _each(into, a, b):
        one_into.add_(_product(one, other))


def _each(*matrices: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """Those of each sequence."""
    return iter([matrices]) if matrices[0].dim() == 2 else zip(*matrices, strict=True)


def _has_faster(a: Tensor, b: Tensor) -> bool:
    return has_faster_products(a, b.mT, LEAST_PRODUCTS)


def _product(a: Tensor, b: Tensor) -> Tensor:
    """The product of two matrices; the second without gaps, where oneDNN would take a slow way otherwise."""
    return onednn_product(a, b.mT if b.is_contiguous() or b.mT.is_contiguous() else b.contiguous().mT)
