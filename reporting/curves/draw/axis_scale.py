"""Scales: where a number stands along an axis, and the few ticks that say so.

Logarithms are taken here and not by matplotlib, which has no place for 0: it often is an ablation's first
level.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..curve import Axis

_PREFIXES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_MAX_TICKS = 5  # ticks of round numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Numbers to places: themselves, or their logarithms, with 0 one step in front of the smallest."""

    log: bool
    min_positive: float  # of the positive numbers
    step: float  # between 0 and it
    low: float  # the places at which the axis begins and ends
    high: float
    ticks: tuple[tuple[float, str], ...]

    def at(self, number: float) -> float:
        """The place of a number; on a logarithmic axis what is not positive stands where 0 does."""
        if not self.log:
            return number
        return math.log10(number if number > 0 else self.min_positive) - (self.step if number <= 0 else 0)


def make_scale(numbers: Iterable[float], axis: Axis, *, margin: float = 0.0) -> Scale:
    """The scale of an axis that has these numbers on it; `margin` is a share of its length at both ends.

    A single number, or none, gets a stretch around it. Ticks that the axis has are kept as they are.
    """
    every = sorted(set(numbers)) or [0.0, 1.0]
    positive = [number for number in every if number > 0] or [1.0]
    whole = all(float(number).is_integer() for number in every)
    step = _step([place for place, _ in axis.ticks if place > 0] or positive)
    bare = Scale(log=axis.log, min_positive=positive[0], step=step, low=0, high=0, ticks=())
    low, high = bare.at(every[0]), bare.at(every[-1])
    if low == high:
        low, high = (low - 0.5, high + 0.5) if axis.log or not low else sorted((0.9 * low, 1.1 * high))
    room = margin * (high - low)
    found = Scale(
        log=axis.log, min_positive=positive[0], step=step, low=low - room, high=high + room, ticks=()
    )
    if axis.ticks:
        ticks = tuple((found.at(place), text) for place, text in axis.ticks)
    else:
        rounds = (
            _log_ticks(positive[0], positive[-1])
            if axis.log
            else _round_ticks(found.low, found.high, integers=whole)
        )
        slack = 1e-9 * (found.high - found.low)
        inside = [number for number in rounds if found.low - slack <= found.at(number) <= found.high + slack]
        if axis.log and every[0] <= 0:
            inside.insert(0, 0.0)
        ticks = tuple(zip(map(found.at, inside), tick_texts(inside), strict=True))
    return Scale(
        log=axis.log, min_positive=positive[0], step=step, low=found.low, high=found.high, ticks=ticks
    )


def tick_texts(numbers: Sequence[float]) -> list[str]:
    """The numbers as an axis has them: no more decimals than tell them apart, large ones with a prefix."""
    most = max(map(abs, numbers), default=0.0)
    if most >= 1e4:
        return [_prefixed(number) for number in numbers]
    decimals = next(
        (digits for digits in range(9) if all(_is_round(number, digits) for number in numbers)), 9
    )
    return [format(number, f"z,.{decimals}f").replace("-", "−") for number in numbers]


def _prefixed(number: float) -> str:
    """A large number with the prefix of its size: `2.5M`."""
    for size, letter in _PREFIXES:
        if abs(number) >= size:
            return f"{number / size:g}{letter}".replace("-", "−")
    return f"{number:g}".replace("-", "−")


def _is_round(number: float, digits: int) -> bool:
    """Whether so many decimals say all of a number."""
    return math.isclose(round(number, digits), number, rel_tol=1e-9, abs_tol=1e-12)


def _step(positive: Sequence[float]) -> float:
    """How far 0 stands in front of the smallest: as far as the numbers are from each other, in the mean."""
    places = sorted({math.log10(number) for number in positive})
    return max((places[-1] - places[0]) / (len(places) - 1), 0.1) if len(places) > 1 else 1.0


def _round_ticks(low: float, high: float, *, integers: bool = False) -> list[float]:
    """At most a few round numbers between two, no fractions where only whole ones are meant."""
    rough = (high - low) / _MAX_TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    size = next(size for size in (power, 2 * power, 5 * power, 10 * power) if size >= rough)
    size = max(size, 1.0) if integers else size
    return [
        size * number for number in range(math.ceil(low / size - 1e-9), math.floor(high / size + 1e-9) + 1)
    ]


def _log_ticks(low: float, high: float) -> list[float]:
    """Powers of ten, or 1, 2 and 5 times such where there are few; round numbers within less than these."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for steps in ((1.0,), (1.0, 2.0, 5.0)):
        found = [step * 10.0**power for power in range(first, last + 1) for step in steps]
        inside = [number for number in found if low <= number * (1 + 1e-9) and number <= high * (1 + 1e-9)]
        if len(inside) >= 3:
            return inside[:: math.ceil(len(inside) / 7)]
    return _round_ticks(low, high)
