"""The random numbers of a model's forward pass: for dropout, and for randomised positional encodings.

Packed trainings draw their random numbers in advance:

- `record_dropout` records which draws a model makes in a forward pass.
- `draw_dropout` makes these draws for each training.
- `replay_dropout` passes the drawn numbers to the model.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional

_KEY_BOUNDS = -(2**63), 2**63 - 1  # all of int64: two keys of a draw are practically never equal


class Dropout(nn.Module):
    """Dropout: in training, set numbers to zero with probability `rate`, and scale the others up."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    @property
    def active(self) -> bool:
        """Return whether the layer zeroes numbers: in training mode, with a rate above 0."""
        return self.training and self.rate > 0.0

    @property
    def scale(self) -> float:
        """Return the factor by which kept numbers are multiplied, 1 / (1 - rate)."""
        return 1.0 / (1.0 - self.rate)

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.rate == 0.0:
            return x
        if _current is not None:
            return _current.drop(x, self.rate)
        return torch.dropout(x.contiguous(), self.rate, train=True)  # draws depend on strides

    def draw_mask(self, shape: torch.Size, like: Tensor) -> Tensor | None:
        """Draw a mask that is 1 where a number is kept and 0 where it is dropped; None without dropout.

        In a packed step the mask has the scaled factors that were drawn in advance.
        """
        if not self.active:
            return None
        if _current is not None:
            return _current.factors_of(shape, self.rate, like.dtype)
        if like.is_cuda:
            return torch.native_dropout(like.new_ones(shape), self.rate, train=True)[1]
        return torch.empty(shape, dtype=torch.bool, device=like.device).bernoulli_(1.0 - self.rate)


def draw_keys(count: int, device: torch.device) -> Tensor:
    """Draw `count` random sort keys, which are whole numbers. Their argsort is a uniform permutation."""
    if _current is not None:
        return _current.keys(count, device)
    return torch.randint(*_KEY_BOUNDS, (count,), device=device)


@dataclass(frozen=True, slots=True)
class DropoutCall:
    """Record of one call of dropout in a forward pass."""

    shape: torch.Size
    rate: float
    dtype: torch.dtype


@dataclass(frozen=True, slots=True)
class KeyCall:
    """Record of one call of `draw_keys` in a forward pass. `count` is how many numbers it draws."""

    count: int


RandomCall = DropoutCall | KeyCall


@dataclass(slots=True)
class _Recording:
    """Recorder of the draws of a forward pass or, with `drawn`, the source of one tensor for each call."""

    drawn: Iterator[Tensor] | None = None
    calls: list[RandomCall] = field(default_factory=list[RandomCall])

    def drop(self, x: Tensor, rate: float) -> Tensor:
        factors = self.factors_of(x.shape, rate, x.dtype)
        return x if factors is None else x * factors

    def factors_of(self, shape: torch.Size, rate: float, dtype: torch.dtype) -> Tensor | None:
        if self.drawn is None:
            self.calls.append(DropoutCall(shape, rate, dtype))
            return None
        factors = next(self.drawn)
        if factors.shape != shape:
            raise RuntimeError(f"expected dropout of shape {tuple(factors.shape)}, got {tuple(shape)}")
        return factors

    def keys(self, count: int, device: torch.device) -> Tensor:
        if self.drawn is not None:
            return next(self.drawn)
        self.calls.append(KeyCall(count))
        return torch.zeros(count, dtype=torch.int64, device=device)


_current: _Recording | None = None


@contextmanager
def _using(given: _Recording) -> Iterator[None]:
    global _current  # noqa: PLW0603 -- blocks get no context argument
    before, _current = _current, given
    try:
        yield
    finally:
        _current = before


@contextmanager
def record_dropout() -> Iterator[list[RandomCall]]:
    """Return a context manager that records the calls of dropout and of `draw_keys`.

    In this context dropout changes nothing, and all keys are zero.
    """
    given = _Recording()
    with _using(given):
        yield given.calls


@contextmanager
def replay_dropout(drawn: Sequence[Tensor]) -> Iterator[None]:
    """Return a context manager that replaces a model's random draws by the numbers in `drawn`.

    `drawn` has one tensor for each call of dropout or `draw_keys`.
    """
    with _using(_Recording(iter(drawn))):
        yield


def draw_dropout(
    calls: Sequence[RandomCall], generators: Sequence[Generator], device: torch.device
) -> list[Tensor]:
    """Draw the random numbers of each recorded call for several trainings, stacked to (trainings, …).

    Each training draws with its own generator, so it gets the numbers that it would draw alone.
    """
    return [_draw(call, generators, device) for call in calls]


def _draw(call: RandomCall, generators: Sequence[Generator], device: torch.device) -> Tensor:
    if isinstance(call, KeyCall):
        keys = partial(torch.randint, *_KEY_BOUNDS, (call.count,), device=device)
        return torch.stack([keys(generator=each) for each in generators])
    if device.type == "cpu":
        kept = torch.empty(len(generators), *call.shape, dtype=call.dtype)
        for own, generator in zip(kept, generators, strict=True):
            own.bernoulli_(1.0 - call.rate, generator=generator)
        return kept.div_(1.0 - call.rate)
    ones = torch.ones(call.shape, dtype=call.dtype, device=device)
    return torch.stack([_draw_on_gpu(ones, call.rate, each) for each in generators])


def _draw_on_gpu(ones: Tensor, rate: float, generator: Generator) -> Tensor:
    # torch's dropout takes no generator, so the process's generator gets the state of this one for one call
    index = generator.device.index  # None for a generator made for "cuda"
    process = torch.cuda.default_generators[torch.cuda.current_device() if index is None else index]
    before = process.graphsafe_get_state()
    try:
        process.graphsafe_set_state(generator)
        return functional.dropout(ones, rate)
    finally:
        process.graphsafe_set_state(before)
