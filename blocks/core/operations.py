"""Activations that blocks share, and checks and modes of torch, such as autocast."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from types import FunctionType
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.nn import functional

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": functional.relu,
    "gelu": functional.gelu,
    "gelu_tanh": partial(functional.gelu, approximate="tanh"),
    "tanh": torch.tanh,
    "leaky_relu": functional.leaky_relu,
    "relu2": lambda x: functional.relu(x).square(),  # So et al. 2021, Primer, section 4.2
}


def avoid_compiler_import() -> None:
    """Keep torch from importing its compiler before something is compiled.

    Torch hides its optimisers and the shape functions of the meta device from its compiler. It does so when
    they are first called, and then imports the compiler, which takes as long as importing torch. Here they
    count as hidden, since nothing compiles them.
    """
    modules = [module for name, module in sys.modules.items() if name.startswith("torch._refs")]
    functions = [each for one in (torch.optim.Optimizer, *modules) for each in vars(one).values()]
    while functions:
        function = functions.pop()
        if isinstance(function, FunctionType) and not hasattr(function, "__dynamo_disable"):
            setattr(function, "__dynamo_disable", function)
            functions += [cell.cell_contents for cell in function.__closure__ or ()]


@contextmanager
def kernels_left_out() -> Iterator[None]:
    """Return a context manager that skips Triton kernels.

    Results are allocated, but not computed. If Triton is loaded, functions are not compiled by torch either.
    """
    if (jit := sys.modules.get("triton.runtime.jit")) is None:
        yield
        return
    launch = jit.KernelInterface.__getitem__
    jit.KernelInterface.__getitem__ = lambda *_: lambda *_arguments, **_options: None
    try:
        with torch.compiler.set_stance("force_eager") if "torch._dynamo" in sys.modules else nullcontext():
            yield
    finally:
        jit.KernelInterface.__getitem__ = launch


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


def has_tangent(*tensors: Tensor) -> bool:
    """Return whether a tensor has a forward-mode derivative, as in `torch.func.jvp`.

    Fast paths without a rule for it then leave the work to plain operations. Within a gradient, torch hides
    the derivatives, and such a path ends in torch's own error.
    """
    if torch.compiler.is_compiling():
        return False
    return any(forward_ad.unpack_dual(tensor).tangent is not None for tensor in tensors)


def at_least_single(x: Tensor) -> Tensor:
    """Return x in at least single precision, as running sums and solvers of linear systems need it.

    A bfloat16 does not change when a number below 1/512 of it is added.
    """
    return x.float() if x.dtype in (torch.bfloat16, torch.float16) else x


def products_in_half(x: Tensor) -> AbstractContextManager[object]:
    """Return autocast to the type of x if x has 16 bits. Otherwise, return a context that changes nothing.

    A module with weights of 16 bits then multiplies them with sums in single precision, as under autocast.
    An active autocast stays as it is.
    """
    kind = x.device.type
    if x.dtype not in (torch.bfloat16, torch.float16) or kind == "meta" or torch.is_autocast_enabled(kind):
        return nullcontext()
    return torch.autocast(kind, dtype=x.dtype)


def are_on_cpu(x: Tensor, weight: Tensor) -> bool:
    """Return whether these are plain CPU tensors of the same precision, which autocast does not change.

    Autocast lowers float32 to bf16.
    """
    return (
        x.device.type == weight.device.type == "cpu"
        and x.dtype == weight.dtype
        and type(x) is Tensor
        and type(weight) in (Tensor, nn.Parameter)
        and (x.dtype == torch.bfloat16 or not torch.is_autocast_enabled("cpu"))
    )
