"""What [train] precision asks of a device: products of one precision, whichever operation makes them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from operator import attrgetter
from typing import Any

import torch

from ...errors import ActivememError
from ...studies.schema.settings import Precision

_OPERATIONS: tuple[Any, ...] = attrgetter(
    "cuda.matmul", "mkldnn.matmul", "cudnn", "cudnn.conv", "cudnn.rnn", "mkldnn.conv", "mkldnn.rnn"
)(torch.backends)
"""All of which torch chooses the precision of float32 products for itself, products of matrices first."""


class PrecisionError(ActivememError):
    """A device that does not have the precision that is asked for."""


def check_precision(precision: Precision, device: torch.device) -> None:
    """Raise PrecisionError if the device would silently compute in another precision."""
    if precision != "tf32":
        return
    if os.environ.get("NVIDIA_TF32_OVERRIDE") == "0":
        raise PrecisionError("precision 'tf32' is switched off by NVIDIA_TF32_OVERRIDE=0 in the environment")
    has_gpu = device.type == "cuda" and torch.cuda.is_available()
    if not (has_gpu and torch.cuda.is_tf32_supported()):
        found = torch.cuda.get_device_name(device) if has_gpu else "no GPU"
        raise PrecisionError(
            f"precision 'tf32' needs a GPU that has it, such as NVIDIA's from Ampere on, got {found}"
        )


@contextmanager
def float32_products(precision: Precision) -> Iterator[None]:
    """Within it all products of float32 numbers are in TF32 if that is asked for, else in full.

    Under bf16 these are the products that autocast leaves. What the process had before comes back at the end.
    """
    before = [operation.fp32_precision for operation in _OPERATIONS]
    chosen = ["tf32" if precision == "tf32" else "ieee"] * len(_OPERATIONS)
    _replace_precisions(before, chosen)
    try:
        yield
    finally:
        _replace_precisions(chosen, before)


def _replace_precisions(old: Sequence[str], new: Sequence[str]) -> None:
    """Set the precision of each operation.

    Torch's compiler asks its older setting for products of matrices, which must not contradict this one.
    """
    if (older := _older_setting(new)) != _older_setting(old):
        torch.set_float32_matmul_precision(older)
    for operation, precision in zip(_OPERATIONS, new, strict=True):
        operation.fp32_precision = precision


def _older_setting(precisions: Sequence[str]) -> str:
    """How torch's older setting names the precisions of products of matrices, on GPUs and on CPUs."""
    on_gpu, on_cpu, *_ = precisions
    return "medium" if on_cpu == "bf16" else "high" if on_gpu == "tf32" else "highest"
