"""Compilation of a model's body by torch; lengths that torch cannot compile run uncompiled.

It uses private names of torch that have no public equivalent in every supported version:

- `_dynamo.config` sets the number of programs.
- `_functorch.config` compiles the backward pass at once.
- `TorchDynamoException` is the error of the compiler.
- `_compiled_call_impl` is set by `Module.compile`, which offers no way back if compiling fails.

`tests/engine/optimisers/test_compiled_body.py` and the tests against the oldest and newest torch guard them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import torch
import torch._functorch.config as autograd_settings
from torch import Tensor, nn
from torch._dynamo.exc import TorchDynamoException

from ...errors import ActivememError
from ...studies.schema.training import Compile
from ..core.interruption import leave_if_asked

NO_COMPILER = (
    "Failed to find C compiler",
    "No working C++ compiler found",
    "Cannot find a working triton installation",
    "too old to be supported by the triton GPU compiler",
)
"""Messages of torch if it finds no C compiler for [train] compile, or does not support this GPU."""

_MOST_PROGRAMS = 10_000
"""The largest number of compiled programs of a model: one for each length, in training and evaluation."""

_log = logging.getLogger(__name__)


class CompileModeError(ActivememError):
    """The device does not support the requested mode of torch's compiler."""


def check_compile(mode: Compile, device: torch.device) -> None:
    """Raise CompileModeError if a mode would silently have no effect on a device."""
    if mode == "reduce-overhead" and device.type != "cuda":
        raise CompileModeError(
            'compile = "reduce-overhead" needs a GPU, as it records CUDA graphs; on a CPU use compile = true'
        )


def compile_body(body: nn.Module, mode: Compile = True) -> None:
    """Compile a model's body with torch, with a program for each length that needs one.

    Torch's default limit is eight programs per process; beyond it torch falls back to uncompiled code.
    """
    torch.compiler.reset()
    limits = torch._dynamo.config
    limits.recompile_limit = limits.accumulated_recompile_limit = _MOST_PROGRAMS
    body._compiled_call_impl = _CompiledBody(body, mode if isinstance(mode, str) else None)


class _CompiledBody:
    """Calls of a body: compiled for any length, else for this length only, else uncompiled.

    From the second length on torch compiles for any length, which fails if a block branches on the length.
    """

    def __init__(self, body: nn.Module, mode: str | None) -> None:
        call = body._call_impl
        self._ways: tuple[Callable[..., Any], ...] = (
            torch.compile(call, mode=mode),
            torch.compile(call, mode=mode, dynamic=False),
            call,
        )
        self._way_of: dict[object, int] = {}
        self._has_warned = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 -- as any module's call
        key = tuple(each.shape for each in args if isinstance(each, Tensor)), torch.is_grad_enabled()
        while True:
            way = self._way_of.get(key, 0)
            try:
                # the backward pass too, which would be compiled, and fail, only in the middle of a step
                with autograd_settings.patch(force_non_lazy_backward_lowering=True):
                    return self._ways[way](*args, **kwargs)
            except Exception as error:
                leave_if_asked()  # a Ctrl-C reaches compilers and torch's processes as well
                is_last = way == len(self._ways) - 1 or any(text in str(error) for text in NO_COMPILER)
                if is_last or not isinstance(error, TorchDynamoException):
                    raise
                self._way_of[key] = way + 1
                self._tell(error)

    def _tell(self, error: TorchDynamoException) -> None:
        if not self._has_warned:
            self._has_warned = True
            reason = str(error).strip().splitlines()[0]
            _log.warning(
                "compile: a length is compiled for itself, or not at all, as torch fails: %s", reason
            )
