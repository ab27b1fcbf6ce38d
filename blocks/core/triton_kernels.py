"""Triton kernels of other packages' layers: interpret them without a GPU, skip them on the meta device.

Triton's interpreter runs them on the CPU, slowly, if TRITON_INTERPRET is 1 in the environment.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any
from unittest.mock import patch

import torch


class _InterpretingDriver:
    """A stand-in for a GPU driver; it makes Triton's tuner choose a kernel's first sizes."""

    def get_benchmarker(self) -> Callable[..., list[float]]:
        """Return a benchmark that reports the same time for each choice of sizes."""
        return lambda _call, **_options: [0.0, 0.0, 0.0]


def use_interpreter() -> None:
    """Install the stand-in driver if Triton's interpreter is requested."""
    if os.environ.get("TRITON_INTERPRET") == "1" and find_spec("triton") is not None:
        driver: Any = import_module("triton.runtime").driver
        driver.set_active(_InterpretingDriver())


def interpreter_hint(error: Exception) -> str:
    """Return advice on running Triton's kernels without a GPU if the error comes from a missing GPU."""
    needed = not torch.cuda.is_available() and os.environ.get("TRITON_INTERPRET") != "1"
    is_triton = type(error).__module__.startswith("triton") or "active driver" in str(error)
    return "; without a GPU set TRITON_INTERPRET=1" if needed and is_triton else ""


@contextmanager
def kernels_left_out() -> Iterator[None]:
    """Within this context, skip all Triton kernels: allocate their results, but do not compute them."""
    if "triton" not in sys.modules:
        yield
        return
    interface: Any = import_module("triton.runtime.jit").KernelInterface
    with patch.object(interface, "__getitem__", lambda *_: lambda *_arguments, **_options: None):
        yield
