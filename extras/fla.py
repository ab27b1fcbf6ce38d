"""The block `fla`: a layer of flash-linear-attention, a package with kernels in Triton (Yang and Zhang 2024).

All of its layers are causal, so that padding after a sequence needs no mask. In a stream the whole past is
computed again.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from importlib import import_module
from importlib.util import find_spec
from inspect import Parameter as Argument
from inspect import signature
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from activemem import Block, Parameter, PluginError, Reach, register_block

_WIDTHS = ("hidden_size", "d_model", "dim")
"""The names that the constructors use for the width of the model."""


@register_block(
    "fla",
    parameters=[
        Parameter(
            name="layer",
            kind="name",
            words=("GatedLinearAttention", "DeltaNet"),
            meaning="a class of fla.layers; further arguments are those of its constructor",
        )
    ],
    reach=lambda _settings, _context: Reach(left=math.inf, right=0),
    package="flash-linear-attention",
    summary="a layer of flash-linear-attention, whose kernels do not count as FLOPs",
    equation="that of the layer",
    source="Yang and Zhang 2024, flash-linear-attention",
)
class FlaLayer(Block):
    """A layer of `fla.layers`, with the initial weights that its constructor draws."""

    def __init__(self, *, width: int, causal: bool, layer: str, **arguments: Any) -> None:  # noqa: ANN401 -- those of any layer
        super().__init__()
        self.name, self.arguments, self.width = layer, arguments, width
        self.layer = make_layer(layer, width, arguments)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the layer's outputs. No position sees those behind it, so it needs no mask."""
        try:
            return self._on_meta(x) if x.device.type == "meta" else first_output(self.layer(x), x)
        except PluginError:
            raise
        except Exception as error:
            if hint := interpreter_hint(error):
                raise PluginError(f"fla: {error}{hint}") from error
            raise

    def _on_meta(self, x: Tensor) -> Tensor:
        try:
            try:
                return first_output(self.layer(x), x)
            except (AssertionError, TypeError, ValueError):  # of kernels that only take half precision
                halves = {name: each.bfloat16() for name, each in self.layer.named_parameters()}
                return first_output(functional_call(self.layer, halves, (x.bfloat16(),)), x).to(x.dtype)
        except Exception as error:
            fault = "cannot be measured on torch's meta device"
            raise PluginError(fault_words(self.name, fault, error)) from error

    def count_cached(self, length: int) -> int:
        """Return how many numbers the layer's cache has after a sequence of `length` positions.

        It is called on the meta device, without gradients and kernels.
        """
        cache: Any = import_module("fla.models.utils").Cache()
        layer = make_layer(self.name, self.width, self.arguments).eval().bfloat16()
        layer(torch.zeros(1, length, self.width).bfloat16(), past_key_values=cache, use_cache=True)
        return sum(each.numel() for each in iter_tensors(vars(cache)))


def make_layer(name: str, width: int, arguments: dict[str, Any]) -> nn.Module:
    """Return a layer of `fla.layers`. Raise PluginError with what is missing, or with the nearest name."""
    use_interpreter()
    try:
        with warnings.catch_warnings(action="ignore"):  # that there is no GPU, and no other kernels
            layers = import_module("fla.layers")
    except ImportError as error:
        needed = 'the package flash-linear-attention: pip install "activemem[fla]"'
        raise PluginError(f"fla(layer={name}) needs {needed} ({error})") from error
    names = getattr(layers, "__all__", ())
    if name not in names:
        raise PluginError(f"fla.layers has no '{name}'{nearest(name, names)}")
    kind = getattr(layers, name)
    known = signature(kind).parameters
    for key in arguments:
        if key not in known or known[key].kind is Argument.VAR_KEYWORD:
            raise PluginError(f"fla.layers.{name} has no argument '{key}'{nearest(key, known)}")
    own: dict[str, Any] = dict.fromkeys([key for key in _WIDTHS if key in known][:1], width)
    own |= {"layer_idx": 0} if "layer_idx" in known else {}
    try:
        return kind(**{**own, **arguments})
    except (ArithmeticError, AssertionError, ImportError, RuntimeError, TypeError, ValueError) as error:
        given = {**own, **arguments}
        unset = [key for key, each in known.items() if each.default is None and key not in given]
        hint = f"; without a value: {', '.join(unset)}" if unset and "NoneType" in str(error) else ""
        raise PluginError(fault_words(name, f"cannot be built at width {width}", error, hint)) from error


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a hint at the most similar name, if there is one."""
    found = get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f"; nearest: {found[0]}" if found else ""


def fault_words(layer: str, fault: str, error: Exception, hint: str = "") -> str:
    """Return a message: which operation a layer does not support, why, and what to change."""
    why = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
    remedy = f"give other arguments, as in fla(layer={layer}, name=value), install the packages that it needs"
    return f"fla.layers.{layer} {fault}: {why}{hint}; {remedy}, or name another layer"


def first_output(y: object, x: Tensor) -> Tensor:
    """Return the outputs in a layer's result, which come first in a tuple, and check their shape."""
    y = y[0] if isinstance(y, tuple) else y
    if not isinstance(y, Tensor) or y.shape != x.shape:
        got = tuple(y.shape) if isinstance(y, Tensor) else type(y).__name__
        raise PluginError(f"expected outputs of shape {tuple(x.shape)}, got {got}")
    return y


def iter_tensors(held: object) -> Iterator[Tensor]:
    """Yield a tensor, or all tensors inside of a container or an object."""
    if isinstance(held, Tensor):
        yield held
    elif isinstance(held, dict | list | tuple):
        for each in held.values() if isinstance(held, dict) else held:
            yield from iter_tensors(each)
    elif hasattr(held, "__dict__") and not isinstance(held, type):
        yield from iter_tensors(vars(held))


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
