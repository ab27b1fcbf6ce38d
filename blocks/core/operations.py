"""Operations that blocks share, such as activations, and checks of torch's state, such as autocast."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch._C import _are_functorch_transforms_active  # torch has no public test for an active transform
from torch.nn import functional

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": functional.relu,
    "gelu": functional.gelu,
    "gelu_tanh": partial(functional.gelu, approximate="tanh"),
    "tanh": torch.tanh,
    "leaky_relu": functional.leaky_relu,
    "relu2": lambda x: functional.relu(x).square(),  # So et al. 2021, Primer, section 4.2
}


def saturating_sigmoid(x: Tensor) -> Tensor:
    """Return clip(1.2 sigmoid(x) - 0.1, 0, 1), a gate that can close and open completely."""
    return (1.2 * torch.sigmoid(x) - 0.1).clamp(0.0, 1.0)


SavedContext = Any
"""The context of a `torch.autograd.Function`: its saved tensors and attributes."""


def without_autocast(device: torch.device) -> AbstractContextManager[object]:
    """Return a context manager that disables autocast, so that operations keep their inputs' precision.

    Autocast does not support the meta device.
    """
    return nullcontext() if device.type == "meta" else torch.autocast(device.type, enabled=False)


def is_transformed() -> bool:
    """Return whether a transform such as `torch.vmap` is active, as in a pack of trials."""
    return _are_functorch_transforms_active()


def are_operations_rewritten() -> bool:
    """Return whether a compiler or a transform such as `torch.vmap` is active. Both replace operations."""
    return torch.compiler.is_compiling() or is_transformed()


def are_plain(x: Tensor, weight: Tensor) -> bool:
    """Return whether the CPU operations of this package support these two tensors.

    Both must be plain CPU tensors of the same precision, and no compiler, transform or autocast may change
    operations on them. Transforms such as `torch.vmap` do not support custom operations, and autocast lowers
    float32 to bf16.
    """
    return (
        x.device.type == weight.device.type == "cpu"
        and x.dtype == weight.dtype
        and type(x) is Tensor
        and type(weight) in (Tensor, nn.Parameter)
        and not are_operations_rewritten()
        and (x.dtype == torch.bfloat16 or not torch.is_autocast_enabled("cpu"))
    )


@cache
def onednn_has_wider_vectors() -> bool:
    """Return whether oneDNN uses wider vectors than MKL on this CPU.

    MKL uses 512-bit vectors only on processors of Intel.
    """
    if not (torch.backends.mkl.is_available() and torch.backends.mkldnn.is_available()):
        return False
    if not torch.backends.cpu.get_cpu_capability().startswith("AVX512"):
        return False
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return False
    return "AuthenticAMD" in text
