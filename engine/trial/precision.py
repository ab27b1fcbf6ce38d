"""[train] precision on a device: the precision of matrix products in all operations."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from operator import attrgetter
from typing import Any

import torch

from ...errors import ActivememError
from ...studies.schema.training import Precision

_OPERATIONS: tuple[Any, ...] = attrgetter(
    "cuda.matmul", "mkldnn.matmul", "cudnn", "cudnn.conv", "cudnn.rnn", "mkldnn.conv", "mkldnn.rnn"
)(torch.backends)
"""Operations with their own float32 precision in torch; matrix products first."""


class PrecisionError(ActivememError):
    """The device does not support the precision of the settings."""


def check_precision(precision: Precision, device: torch.device) -> None:
    """Raise PrecisionError if a device would silently compute in another precision or lacks it in part.

    On GPUs for which torch emulates bf16, matrix products are slow and convolutions missing.
    """
    if precision == "float32" or (precision == "bf16" and device.type != "cuda"):
        return
    if precision == "tf32" and os.environ.get("NVIDIA_TF32_OVERRIDE") == "0":
        raise PrecisionError("precision 'tf32' is switched off by NVIDIA_TF32_OVERRIDE=0 in the environment")
    has_gpu = device.type == "cuda" and torch.cuda.is_available()
    if not (has_gpu and _is_supported(precision)):
        got = torch.cuda.get_device_name(device) if has_gpu else "no GPU"
        raise PrecisionError(
            f"precision '{precision}' needs a GPU that has it, such as NVIDIA's from Ampere on, got {got}"
        )


def _is_supported(precision: Precision) -> bool:
    if precision == "tf32":
        return torch.cuda.is_tf32_supported()
    return torch.cuda.is_bf16_supported(including_emulation=False)


@contextmanager
def float32_products(precision: Precision) -> Iterator[None]:
    """Compute float32 products in TF32 if that is the precision, else in full, within a context.

    Under bf16 this concerns the products that autocast leaves in float32. The previous precisions are
    restored at the end.
    """
    before, of_cudnn = [operation.fp32_precision for operation in _OPERATIONS], _legacy_setting_of_cudnn()
    chosen = ["tf32" if precision == "tf32" else "ieee"] * len(_OPERATIONS)
    _replace_precisions(before, chosen, None if of_cudnn is None else precision == "tf32")
    try:
        yield
    finally:
        _replace_precisions(chosen, before, of_cudnn)


def _replace_precisions(old: Sequence[str], new: Sequence[str], of_cudnn: bool | None) -> None:
    """Set the precision of each operation and, if `of_cudnn` is known, cuDNN's older TF32 flag.

    Torch's compiler, and code that disables cuDNN temporarily, read the older flags, which must not
    contradict the new ones.
    """
    if (legacy := _legacy_setting(new)) != _legacy_setting(old):
        torch.set_float32_matmul_precision(legacy)
    if of_cudnn is not None:
        torch.backends.cudnn.allow_tf32 = of_cudnn
    for operation, precision in zip(_OPERATIONS, new, strict=True):
        operation.fp32_precision = precision


def _legacy_setting(precisions: Sequence[str]) -> str:
    on_gpu, on_cpu, *_ = precisions
    return "medium" if on_cpu == "bf16" else "high" if on_gpu == "tf32" else "highest"


def _legacy_setting_of_cudnn() -> bool | None:
    """Return torch's older TF32 flag of cuDNN; None if it contradicts the newer settings."""
    with warnings.catch_warnings(), suppress(RuntimeError):
        warnings.simplefilter("ignore", UserWarning)  # of torch 2.9, once a process: that it is the older one
        return torch.backends.cudnn.allow_tf32
    return None
