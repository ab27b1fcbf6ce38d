"""Triton kernels in layers of other packages: interpreted without a GPU, and skipped on the meta device.

Triton's interpreter runs them on the CPU, slowly, if TRITON_INTERPRET is 1 in the environment.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from types import SimpleNamespace

import torch


def use_interpreter() -> None:
    """Let Triton's interpreter run without a GPU, if the environment requests the interpreter.

    Triton's tuner measures kernels through a driver. With the driver set here all choices of sizes take the
    same time, and the tuner takes the first.
    """
    if os.environ.get("TRITON_INTERPRET") == "1" and find_spec("triton") is not None:
        driver = SimpleNamespace(get_benchmarker=lambda: lambda _call, **_options: [0.0, 0.0, 0.0])
        import_module("triton.runtime").driver.set_active(driver)


def interpreter_hint(error: Exception) -> str:
    """Return advice on running Triton's kernels without a GPU if the error comes from a missing GPU."""
    needed = not torch.cuda.is_available() and os.environ.get("TRITON_INTERPRET") != "1"
    is_triton = type(error).__module__.startswith("triton") or "active driver" in str(error)
    return "; without a GPU set TRITON_INTERPRET=1" if needed and is_triton else ""


@contextmanager
def kernels_left_out() -> Iterator[None]:
    """Within this context, skip all Triton kernels: allocate their results, but do not compute them."""
    if (jit := sys.modules.get("triton.runtime.jit")) is None:
        yield
        return
    launch = jit.KernelInterface.__getitem__
    jit.KernelInterface.__getitem__ = lambda *_: lambda *_arguments, **_options: None
    try:
        yield
    finally:
        jit.KernelInterface.__getitem__ = launch
