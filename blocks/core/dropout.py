"""What is random in training: dropout, with cheap bits where drawing costs, and keys that say an order.

That of stacked models is drawn beforehand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from math import prod

import torch
from torch import Generator, Tensor, nn
from torch.autograd.function import FunctionCtx
from torch.func import debug_unwrap
from torch.nn import functional

from ..batched_gradients import one_gradient_at_a_time
from .linear_maps import are_operations_rewritten

_VALUES = 2**16
"""Of so many values of a draw, some drop."""


class Dropout(nn.Module):
    """Zero each number with this probability in training, and scale the others so that the mean stays.

    On a CPU one draw of 64 bits serves four numbers, which is 2.6 times as fast as torch's own dropout; the
    rate is then a multiple of 2^-16.
    """

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    @property
    def active(self) -> bool:
        """Whether anything is dropped now."""
        return self.training and self.rate > 0.0

    def forward(self, x: Tensor) -> Tensor:
        """Any shape to the same."""
        if not self.active:
            return x
        if _given is not None:
            return _given.drop(x, self.rate)
        if x.device.type != "cpu":
            return functional.dropout(x.contiguous(), self.rate)  # of other strides, other numbers would drop
        return x * _factors(_draw_bits(x.shape), self.rate, x.dtype)

    def scale(self, device: torch.device) -> float:
        """What is kept is multiplied by this on a device."""
        return _scale(self.rate) if device.type == "cpu" else 1.0 / (1.0 - self.rate)

    def draw(self, shape: torch.Size, like: Tensor) -> Tensor | None:
        """What is dropped of numbers of this shape now; None where nothing is.

        It is true for what is kept, which is to be scaled; of what is given, factors, which have the scale.
        """
        if not self.active:
            return None
        if _given is not None:
            return _given.draw(shape, self.rate, like.dtype)
        if like.device.type != "cpu":
            return torch.native_dropout(like.new_ones(shape), self.rate, train=True)[1]
        return _is_kept(_draw_bits(shape), self.rate)


def drop_weights(weights: Tensor, dropout: Dropout) -> Tensor:
    """As the dropout of any numbers, by the same draws and bits; a CPU keeps a byte instead of a factor."""
    if weights.device.type not in ("cpu", "meta") or are_operations_rewritten():
        return dropout(weights)
    kept = dropout.draw(weights.shape, weights)
    if kept is None:
        return weights
    if kept.is_floating_point():
        return weights * kept
    return _Dropped.apply(weights, kept, dropout.scale(weights.device))


class _DroppedContext(FunctionCtx):
    """What the backward pass finds."""

    scale: float
    saved_tensors: tuple[Tensor]


class _Dropped(torch.autograd.Function):
    """Numbers by what is kept and its scale, as factors that are made anew for the backward pass."""

    @staticmethod
    def forward(ctx: _DroppedContext, x: Tensor, kept: Tensor, scale: float) -> Tensor:
        """Any shape to the same."""
        ctx.scale = scale
        ctx.save_for_backward(kept)
        ctx.save_for_forward(kept)
        return _scaled(kept, scale, x.dtype).mul_(x)

    @staticmethod
    def jvp(ctx: _DroppedContext, dx: Tensor, *_: None) -> Tensor:  # pyright: ignore -- no varargs
        """What becomes of a change, by the same factors."""
        return dx * _scaled(ctx.saved_tensors[0], ctx.scale, dx.dtype)

    @staticmethod
    @one_gradient_at_a_time
    def backward(ctx: _DroppedContext, dy: Tensor) -> tuple[Tensor, None, None]:  # pyright: ignore -- no varargs
        """The gradient by the same factors."""
        (kept,) = ctx.saved_tensors
        return dy * _scaled(kept, ctx.scale, dy.dtype), None, None


def _scaled(kept: Tensor, scale: float, dtype: torch.dtype) -> Tensor:
    """Zeros, and the scale where something is kept."""
    return kept.to(dtype).mul_(scale)


def draw_keys(count: int, device: torch.device) -> Tensor:
    """So many random whole numbers, (count,), whose order is any with the same chance."""
    if _given is not None:
        return _given.keys(count, device)
    return torch.randint(-(2**63), 2**63 - 1, (count,), device=device)


@dataclass(frozen=True, slots=True)
class DropoutCall:
    """What one dropout of a model is called with in a forward pass."""

    shape: torch.Size
    rate: float
    dtype: torch.dtype

    @property
    def num_draws(self) -> int:
        """The draws of 64 bits that it takes on a CPU."""
        return _num_draws(prod(self.shape))


@dataclass(frozen=True, slots=True)
class KeyCall:
    """How many keys a model draws at once in a forward pass."""

    num_draws: int


RandomCall = DropoutCall | KeyCall
"""What draws in a forward pass."""


@dataclass(slots=True)
class _Given:
    """What stands in for draws: factors in the order of the calls; without any the calls are noted."""

    factors: Iterator[Tensor] | None = None
    calls: list[RandomCall] = field(default_factory=list[RandomCall])

    def drop(self, x: Tensor, rate: float) -> Tensor:
        """The numbers by the next factors."""
        factors = self.draw(x.shape, rate, x.dtype)
        return x if factors is None else x * factors

    def draw(self, shape: torch.Size, rate: float, dtype: torch.dtype) -> Tensor | None:
        """The next factors; None where calls are noted."""
        if self.factors is None:
            self.calls.append(DropoutCall(shape, rate, dtype))
            return None
        factors = next(self.factors)
        if factors.shape != shape:
            raise RuntimeError(f"expected dropout on {tuple(factors.shape)}, got {tuple(shape)}")
        return factors

    def keys(self, count: int, device: torch.device) -> Tensor:
        """The next draw, as keys."""
        if self.factors is not None:
            return next(self.factors)
        self.calls.append(KeyCall(count))
        return torch.zeros(count, dtype=torch.int64, device=device)


_given: _Given | None = None


@contextmanager
def _giving(given: _Given) -> Iterator[None]:
    global _given  # noqa: PLW0603 -- blocks are called without a context of ours
    before, _given = _given, given
    try:
        yield
    finally:
        _given = before


@contextmanager
def noting_dropout() -> Iterator[list[RandomCall]]:
    """A context in which nothing is dropped or drawn; what would be, in the order of the calls."""
    given = _Given()
    with _giving(given):
        yield given.calls


def is_dropout_noted() -> bool:
    """Whether it is noted now what would be dropped, by a pass whose numbers nobody needs."""
    return _given is not None and _given.factors is None


@contextmanager
def given_dropout(factors: Sequence[Tensor]) -> Iterator[None]:
    """A context in which each call multiplies by the next of these, as those of `draw_dropout` in a vmap."""
    with _giving(_Given(iter(factors))):
        yield


def draw_dropout(
    calls: Sequence[RandomCall], generators: Sequence[Generator], device: torch.device
) -> list[Tensor]:
    """For each call the factors or keys of stacked models, (models, …), drawn as each draws alone."""
    if not calls:
        return []
    if device.type != "cpu":
        return [_device_draws(call, generators, device) for call in calls]
    ends = [0]
    for call in calls:
        ends.append(ends[-1] + call.num_draws)
    draws = torch.empty(len(generators), ends[-1], dtype=torch.int64)
    for row, generator in zip(draws, generators, strict=True):  # one draw of all is as many draws in turn
        _draw_into(row, generator)
    bits = draws.view(torch.int16)
    drawn: list[Tensor] = []
    for call, (begin, end) in zip(calls, pairwise(ends), strict=True):
        if isinstance(call, KeyCall):
            drawn.append(draws[:, begin:end])
            continue
        part = bits[:, 4 * begin : 4 * end][:, : prod(call.shape)]
        drawn.append(_factors(part, call.rate, call.dtype).unflatten(1, call.shape))
    return drawn


def _device_draws(call: RandomCall, generators: Sequence[Generator], device: torch.device) -> Tensor:
    """What torch's own dropout multiplies by, drawn from each generator of this device; keys as they are."""
    if isinstance(call, KeyCall):
        bounds, shape = (-(2**63), 2**63 - 1), (call.num_draws,)
        return torch.stack(
            [torch.randint(*bounds, shape, generator=each, device=device) for each in generators]
        )
    ones = torch.ones(call.shape, dtype=call.dtype, device=device)
    return torch.stack([_device_factors(ones, call.rate, each) for each in generators])


def _device_factors(ones: Tensor, rate: float, generator: Generator) -> Tensor:
    """What is left of ones; torch's dropout takes no generator, and a graph can have this recorded."""
    place = generator.device.index  # None where it was made for "cuda", as a worker's are
    process = torch.cuda.default_generators[torch.cuda.current_device() if place is None else place]
    before = process.graphsafe_get_state()
    try:
        process.graphsafe_set_state(generator)
        return functional.dropout(ones, rate)
    finally:
        process.graphsafe_set_state(before)


def _num_draws(numbers: int) -> int:
    """The draws of 64 bits for so many numbers."""
    return (numbers + 3) // 4


def _draw_bits(shape: torch.Size) -> Tensor:
    """16 random bits for each number, from the process's generator on a CPU."""
    count = _num_draws(shape.numel())
    if are_operations_rewritten():  # the same numbers
        draws = torch.randint(-(2**63), 2**63 - 1, (count,))
    else:
        draws = _draw_into(torch.empty(count, dtype=torch.int64))
    return _split(draws)[: shape.numel()].view(shape)


def _draw_into(draws: Tensor, generator: Generator | None = None) -> Tensor:
    """Fill it with 64 random bits each, on a CPU in little more than half the time of `torch.randint`.

    That takes the remainder of each draw by 2^64 - 1, and 2^63 off: the same bits but for the first one.
    """
    return draws.random_(-(2**63), None, generator=generator).bitwise_xor_(-(2**63))


def _split(draws: Tensor) -> Tensor:
    """The four times as many numbers of 16 bits of draws of 64, the lowest bits of each first."""
    try:
        return draws.view(torch.int16)
    except RuntimeError:  # a vmap of older versions of torch, which knows no view of another type
        return torch.stack([draws >> shift for shift in (0, 16, 32, 48)], -1).flatten().to(torch.int16)


def _is_kept(bits: Tensor, rate: float) -> Tensor:
    """Whether 16 bits are not among the lowest."""
    return bits >= _least_kept(rate)


def _factors(bits: Tensor, rate: float, dtype: torch.dtype) -> Tensor:
    """Zero where 16 bits are among the lowest, what scales the rest elsewhere."""
    if torch.compiler.is_compiling() or debug_unwrap(bits) is not bits:  # a vmap knows no `out`
        return _is_kept(bits, rate).to(dtype).mul_(_scale(rate))
    kept = torch.empty(bits.shape, dtype=dtype, device=bits.device)  # in one pass less
    return torch.ge(bits, _least_kept(rate), out=kept).mul_(_scale(rate))


def _least_kept(rate: float) -> int:
    """The least number that is kept of those that 16 bits are."""
    return round(rate * _VALUES) - _VALUES // 2


def _scale(rate: float) -> float:
    """What numbers that are kept are multiplied by."""
    return _VALUES / (_VALUES - round(rate * _VALUES))
