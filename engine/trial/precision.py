"""[train] precision on a device: products in one precision, whichever operation computes them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from operator import attrgetter
from typing import Any

import torch

from ...errors import ActivememError
from ...studies.schema.training import Precision

_OPERATIONS: tuple[Any, ...] = attrgetter(
    "cuda.matmul", "mkldnn.matmul", "cudnn", "cudnn.conv", "cudnn.rnn", "mkldnn.conv", "mkldnn.rnn"
)(torch.backends)
"""The operations whose float32 products have a precision of their own in torch; matrix products first."""


class PrecisionError(ActivememError):
    """A device does not have the precision of the settings."""


def check_precision(precision: Precision, device: torch.device) -> None:
    """Raise PrecisionError if the device would silently compute in another precision."""
    if precision != "tf32":
        return
    if os.environ.get("NVIDIA_TF32_OVERRIDE") == "0":
        raise PrecisionError("precision 'tf32' is switched off by NVIDIA_TF32_OVERRIDE=0 in the environment")
    has_gpu = device.type == "cuda" and torch.cuda.is_available()
    if not (has_gpu and torch.cuda.is_tf32_supported()):
        got = torch.cuda.get_device_name(device) if has_gpu else "no GPU"
        raise PrecisionError(
            f"precision 'tf32' needs a GPU that has it, such as NVIDIA's from Ampere on, got {got}"
        )


@contextmanager
def float32_products(precision: Precision) -> Iterator[None]:
    """A context in which all float32 products are in TF32 if that is the precision, else in full.

    Under bf16 these are the products that autocast leaves. The precisions before are restored at the end.
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

    Torch's compiler reads an older setting of matrix products, which must not contradict this one.
    """
    if (legacy := _legacy_setting(new)) != _legacy_setting(old):
        torch.set_float32_matmul_precision(legacy)
    for operation, precision in zip(_OPERATIONS, new, strict=True):
        operation.fp32_precision = precision


def _legacy_setting(precisions: Sequence[str]) -> str:
    """The name in torch's older setting for these precisions of matrix products on GPUs and on CPUs."""
    on_gpu, on_cpu, *_ = precisions
    return "medium" if on_cpu == "bf16" else "high" if on_gpu == "tf32" else "highest"
