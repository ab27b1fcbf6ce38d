"""Functions that interpret or skip the Triton kernels in layers of other packages.

Without a GPU the kernels can be interpreted. For shape computations on the meta device they are skipped.
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
    """Make Triton's interpreter work without a GPU, if TRITON_INTERPRET is 1.

    Triton's tuner measures kernels through a driver. With the driver set here all choices of sizes take the
    same time, and the tuner takes the first.
    """
    if os.environ.get("TRITON_INTERPRET") == "1" and find_spec("triton") is not None:
        driver = SimpleNamespace(get_benchmarker=lambda: lambda _call, **_options: [0.0, 0.0, 0.0])
        import_module("triton.runtime").driver.set_active(driver)


def interpreter_hint(error: BaseException) -> str:
    """Return advice on TRITON_INTERPRET if Triton raised this error, else ""."""
    if type(error).__name__ == "InterpreterError":
        return "; Triton's interpreter cannot run this kernel: use a GPU, without TRITON_INTERPRET"
    needed = not torch.cuda.is_available() and os.environ.get("TRITON_INTERPRET") != "1"
    is_triton = type(error).__module__.startswith("triton") or "active driver" in str(error)
    return "; without a GPU set TRITON_INTERPRET=1" if needed and is_triton else ""


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
        with torch.compiler.set_stance("force_eager"):
            yield
    finally:
        jit.KernelInterface.__getitem__ = launch
