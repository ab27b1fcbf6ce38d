"""The block `fla`: a layer of flash-linear-attention, a package with kernels in Triton."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from inspect import Parameter, signature
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from ...errors import nearest_hint
from ...grammar.vocabulary.spec import Settings
from ..core.block import Block, BuildError, Context, register_block
from ..core.initialisation import Initialisable, roles
from ..core.operations import kernels_left_out

_WIDTHS = ("hidden_size", "d_model", "dim")
"""The names that the constructors use for the width of the model."""


@register_block("fla")
class FlaLayer(Block, Initialisable):
    """A layer of `fla.layers`, with the initial weights that its constructor draws.

    All of these layers are causal, so that padding after a sequence needs no mask. In a stream the whole past
    is computed again. The meta device needs `kernels_left_out`.
    """

    weight_roles = roles()

    def __init__(self, settings: Settings, context: Context) -> None:
        super().__init__()
        self._name, others = str(settings["layer"]), {k: v for k, v in settings.items() if k != "layer"}
        self._make = partial(_make_layer, self._name, others, context.width)
        self.layer = self._make()

    def initialise(self, generator: torch.Generator | None) -> None:
        """Draw the weights by the layer's constructor. Its seed comes from the generator."""
        seed = int(torch.randint(2**62, (), generator=generator))
        self.layer.load_state_dict(self._make(seed).state_dict())

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        del mask  # no position sees those behind it
        try:
            return self._on_meta(x) if x.device.type == "meta" else first_output(self.layer(x), x)
        except Exception as error:
            if hint := interpreter_hint(error):
                raise BuildError(f"fla: {error}{hint}") from error
            raise

    def _on_meta(self, x: Tensor) -> Tensor:
        try:
            try:
                return first_output(self.layer(x), x)
            except (AssertionError, TypeError, ValueError):  # of kernels that only take half precision
                halves = {name: each.bfloat16() for name, each in self.layer.named_parameters()}
                return first_output(functional_call(self.layer, halves, (x.bfloat16(),)), x).to(x.dtype)
        except Exception as error:
            raise self._not_measured(error) from error

    def _not_measured(self, error: Exception) -> BuildError:
        return BuildError(_fault(self._name, "cannot be measured on torch's meta device", error))

    @torch.no_grad()
    def count_cached(self, length: int, width: int) -> int:
        """Return how many numbers the layer's cache has after a sequence of `length` positions."""
        cache: Any = import_module("fla.models.utils").Cache()
        with torch.device("meta"), kernels_left_out():
            layer = self._make().eval().bfloat16()
            try:
                layer(torch.zeros(1, length, width).bfloat16(), past_key_values=cache, use_cache=True)
            except Exception as error:
                raise self._not_measured(error) from error
        return sum(each.numel() for each in iter_tensors(vars(cache)))


def _make_layer(name: str, others: Mapping[str, Any], width: int, seed: int = 0) -> nn.Module:
    use_interpreter()
    try:
        with warnings.catch_warnings(action="ignore"):  # that there is no GPU, and no other kernels
            layers = import_module("fla.layers")
    except ImportError as error:
        needed = 'the package flash-linear-attention: pip install "activemem[fla]"'
        raise BuildError(f"fla(layer={name}) needs {needed} ({error})") from error
    names = getattr(layers, "__all__", ())
    if name not in names:
        raise BuildError(f"fla.layers has no '{name}'{nearest_hint(name, names)}")
    kind = getattr(layers, name)
    known = signature(kind).parameters
    for key in others:
        if key not in known or known[key].kind is Parameter.VAR_KEYWORD:
            raise BuildError(f"fla.layers.{name} has no argument '{key}'{nearest_hint(key, known)}")
    own: dict[str, Any] = dict.fromkeys([key for key in _WIDTHS if key in known][:1], width)
    own |= {"layer_idx": 0} if "layer_idx" in known else {}
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        try:
            return kind(**{**own, **others})
        except (ArithmeticError, AssertionError, ImportError, RuntimeError, TypeError, ValueError) as error:
            unset = [
                key for key, each in known.items() if each.default is None and key not in {**own, **others}
            ]
            hint = f"; without a value: {', '.join(unset)}" if unset and "NoneType" in str(error) else ""
            raise BuildError(_fault(name, f"cannot be built at width {width}", error, hint)) from error


def _fault(layer: str, fault: str, error: Exception, hint: str = "") -> str:
    """Return a message: which operation a layer does not support, why, and what to change."""
    why = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
    remedy = f"give other arguments, as in fla(layer={layer}, name=value), install the packages that it needs"
    return f"fla.layers.{layer} {fault}: {why}{hint}; {remedy}, or name another layer"


def first_output(y: object, x: Tensor) -> Tensor:
    """Return the outputs in a layer's result, which come first in a tuple, and check their shape."""
    y = y[0] if isinstance(y, tuple) else y
    if not isinstance(y, Tensor) or y.shape != x.shape:
        got = tuple(y.shape) if isinstance(y, Tensor) else type(y).__name__
        raise BuildError(f"expected outputs of shape {tuple(x.shape)}, got {got}")
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
