"""The choice of a kernel for a recurrence: on a GPU that has one, where it agrees with the plain form."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache, wraps
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple, ParamSpec, TypeVar

import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks
from torch.nn import functional

from ...core.torch_modes import without_autocast

MAX_DIFFERENCE = 0.03
"""The largest distance from the plain form's numbers, relative to their norm; bfloat16 has few bits."""

_log = logging.getLogger(__name__)


def disagreement(
    fast: Callable[[], Sequence[Tensor]], plain: Callable[[], Sequence[Tensor]], what: str
) -> str | None:
    """Return what is wrong with a kernel's outputs and gradients, or None."""
    given: list[Sequence[Tensor]] = []

    def compute_both() -> None:
        with trying():
            given.extend([fast(), plain()])

    if (fault := failure(compute_both)) is not None:
        return fault
    for one, other in zip(*given, strict=True):
        if not (one - other).norm() <= MAX_DIFFERENCE * other.norm():
            return what
    return None


@contextmanager
def trying() -> Iterator[None]:
    """Enter a context in which something is tried with its gradients.

    Whoever has what is saved around it computed again, as activation checkpointing, sees nothing of it.
    """
    saved_here = saved_tensors_hooks(Tensor.detach, lambda saved: saved)  # in place of those around it
    with torch.inference_mode(mode=False), torch.enable_grad(), saved_here:
        yield


def failure(compute: Callable[[], object]) -> str | None:
    """Return in one line why a kernel fails, or None; raises errors of memory."""
    try:
        compute()
    except torch.OutOfMemoryError:
        raise
    except Exception as error:
        if "out of memory" in str(error):  # that compilers tell in errors of their own
            raise
        cause = getattr(error, "inner_exception", None) or error  # of torch's compiler
        return f"{type(cause).__name__}: {str(cause).strip().partition(chr(10))[0]}"
    return None


@lru_cache
def tell_once(what: str, fault: str) -> None:
    """Say once a process what a GPU computes by a plain form, and why."""
    _log.warning("%s: %s", what, fault)


def is_stacked(numbers: Tensor) -> bool:
    """Return whether the numbers are in a vmap, which kernels do not know."""
    sizes: list[int] = []
    _Look.apply(sizes.append, numbers.detach())
    return bool(sizes)


class _Look(torch.autograd.Function):
    """A function that computes nothing, and reports the size of a vmap around it."""

    @staticmethod
    def forward(_tell: Callable[[int], None], numbers: Tensor) -> Tensor:
        return numbers.new_empty(0)

    @staticmethod
    def setup_context(ctx: object, inputs: object, output: object) -> None:
        """Keep nothing."""

    @staticmethod
    def vmap(
        info: Any,  # noqa: ANN401 -- torch names no type
        in_dims: object,
        *args: Any,  # noqa: ANN401 -- those of forward, as torch has it
    ) -> tuple[Tensor, None]:
        """Report the size; torch calls this within a vmap over numbers."""
        tell, numbers = args
        tell(info.batch_size)
        return numbers.new_empty(0), None


MIN_KERNEL_LENGTH = 64
"""Shorter inputs, such as one generated token, do not fill a chunk of the kernels."""

PACKAGE = "fla-core"
"""The package with the kernels; flash-linear-attention depends on it."""

_SINGLE = frozenset({"log_decay", "log_gates", "state"})
"""These stay in single precision whatever products are in."""

_UNIT = frozenset({"q", "k", "removed"})
_SHARES = frozenset({"beta", "rate"})
_LOGARITHMS = frozenset({"log_decay", "log_gates"})

_TRIED_LENGTH = 150

P = ParamSpec("P")
R = TypeVar("R")


class Tried(NamedTuple):
    """The case in which a kernel is tried: the sizes of a call with a small batch and a short length."""

    kernel: Callable[..., Any]
    plain: Callable[..., Any]
    device: torch.device
    products: torch.dtype
    sizes: tuple[tuple[str, tuple[int, ...]], ...]
    options: tuple[tuple[str, object], ...]


_noted: list[set[str]] = []


@contextmanager
def noting_kernels(found: set[str]) -> Iterator[None]:
    """Enter a context that adds the packages of kernels that compute, as "fla-core 0.6.0", to a set."""
    _noted.append(found)
    try:
        yield
    finally:
        _noted[:] = [each for each in _noted if each is not found]


def with_kernel(kernel: Callable[P, R], *, positions: int = 1) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator that uses a kernel where it agrees with the decorated function up to rounding.

    Both take the same arguments, q first. The first axis of a tensor is the batch and axis `positions` the
    length; a `state` has neither. On a CPU the decorated function is used unchanged.
    """

    def decorate(plain: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(plain)

        @wraps(plain)
        def compute(*args: P.args, **kwargs: P.kwargs) -> R:
            q = args[0]
            assert isinstance(q, Tensor), "queries come first"
            if torch.compiler.is_compiling() or not _may_have_kernel(q, positions):
                return plain(*args, **kwargs)
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            given = dict(bound.arguments)
            fault = kernel_fault(kernel, plain, given, positions=positions)
            if fault is None:
                for found in _noted:
                    found.add(f"{PACKAGE} {_installed()}")
                return kernel(**cast_inputs(given, product_dtype(q)))  # pyright: ignore[reportCallIssue]
            tell_once("recurrences are not computed by the kernels of fla", f"{plain.__name__}: {fault}")
            return plain(*args, **kwargs)

        return compute

    return decorate


def _may_have_kernel(q: Tensor, positions: int) -> bool:
    """Return whether a kernel may compute: a GPU, enough positions, no double precision, the package."""
    if q.device.type != "cuda" or q.shape[positions] < MIN_KERNEL_LENGTH or q.dtype == torch.float64:
        return False
    return _installed() is not None and not is_stacked(q)


@cache
def _installed() -> str | None:
    try:
        return version(PACKAGE)
    except PackageNotFoundError:
        return None


def kernel_fault(
    kernel: Callable[..., Any], plain: Callable[..., Any], given: Mapping[str, object], *, positions: int = 1
) -> str | None:
    """Return why a kernel does not compute a call with these arguments; None where it does."""
    q = given["q"]
    assert isinstance(q, Tensor), "queries are a tensor"
    products = product_dtype(q)
    if products == torch.float32 and torch.backends.cuda.matmul.fp32_precision != "tf32":
        return "they multiply float32 in TF32, and products are to be exact ([train] precision)"
    sizes = ((name, value) for name, value in given.items() if isinstance(value, Tensor))
    small = tuple((name, _small_size(name, value, len(q), positions)) for name, value in sizes)
    options = tuple((name, value) for name, value in given.items() if not isinstance(value, Tensor))
    return trial_fault(Tried(kernel, plain, q.device, products, small, options))


def product_dtype(q: Tensor) -> torch.dtype:
    """Return the precision of a call's products: the precision of autocast, or else of the queries."""
    kind = q.device.type
    is_cast = torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind)
    return torch.get_autocast_dtype(kind) if is_cast else q.dtype


def cast_inputs(given: Mapping[str, object], products: torch.dtype) -> dict[str, Any]:
    """Return the arguments as kernels take them: logarithms and states in single precision, at least."""
    single = torch.promote_types(products, torch.float32)
    return {
        name: value.to(single if name in _SINGLE else products) if isinstance(value, Tensor) else value
        for name, value in given.items()
    }


@lru_cache
def trial_fault(tried: Tried) -> str | None:
    """Return what is wrong with small inputs by a kernel, tried once a process, or None."""
    given = _small_inputs(tried)

    def by(compute: Callable[..., Any], dtype: torch.dtype) -> list[Tensor]:
        rounded = cast_inputs(given, tried.products)
        with without_autocast(tried.device):
            return _with_gradients(compute, given, cast_inputs(rounded, dtype))

    return disagreement(
        lambda: by(tried.kernel, tried.products),
        lambda: by(tried.plain, torch.float32),
        "small inputs did not give what the plain form gives",
    )


def _small_size(name: str, value: Tensor, batch: int, positions: int) -> tuple[int, ...]:
    """Return the size of two sequences of a few chunks, or of what all sequences share."""
    size = [2 if value.shape[0] == batch else 1, *value.shape[1:]]
    if name != "state":
        size[positions] = _TRIED_LENGTH
    return tuple(size)


def _small_inputs(tried: Tried) -> dict[str, Any]:
    """Return numbers of these sizes as mixers have them: unit vectors, shares, logarithms below 0."""
    generator, found = torch.Generator().manual_seed(0), dict[str, Any](tried.options)
    for name, size in tried.sizes:
        numbers = torch.randn(size, generator=generator)
        if name in _UNIT:
            numbers = functional.normalize(numbers, dim=-1)
        elif name in _SHARES:
            numbers = torch.sigmoid(numbers)
        elif name in _LOGARITHMS:
            numbers = -0.1 * functional.softplus(numbers)
        found[name] = numbers.to(tried.device).requires_grad_()
    return found


def _with_gradients(
    compute: Callable[..., Any], leaves: Mapping[str, object], given: Mapping[str, object]
) -> list[Tensor]:
    """Return what inputs made of these leaves give, in single precision, and the leaves' gradients."""
    y = compute(**given)
    outputs = [each.float() for each in (y if isinstance(y, tuple) else (y,)) if each is not None]
    wanted = [each for each in leaves.values() if isinstance(each, Tensor)]
    total = torch.stack([each.square().sum() for each in outputs]).sum()
    return [*(each.detach() for each in outputs), *torch.autograd.grad(total, wanted)]
