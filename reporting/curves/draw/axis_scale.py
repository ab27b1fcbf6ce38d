"""Scales: map numbers to positions along an axis, and choose a few ticks.

Matplotlib's locators choose the ticks. Logarithms are computed here, because matplotlib's log axis cannot
show 0, often the first level of an ablation.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..curve import Axis, Curve, Point

if TYPE_CHECKING:
    from matplotlib.ticker import Locator, MaxNLocator

_MIN_LOG_TICKS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Map from numbers to positions: linear, or logarithmic with 0 one step below the smallest number."""

    low: float  # the positions at which the axis begins and ends
    high: float
    log: bool = False
    min_positive: float = 1.0  # of the positive numbers
    step: float = 1.0  # between 0 and it
    ticks: tuple[tuple[float, str], ...] = ()

    def at(self, number: float) -> float:
        """Return the position of a number; a logarithmic axis places negative numbers at 0."""
        if not self.log:
            return number
        return math.log10(number if number > 0 else self.min_positive) - (self.step if number <= 0 else 0)


def make_scale(numbers: Iterable[float], axis: Axis, *, margin: float = 0.0) -> Scale:
    """Return the scale of an axis for these numbers; `margin` is added at both ends, relative to its length.

    A single number, or none, gets a range around it. Ticks of the axis are kept.
    """
    every = sorted(set(numbers)) or [0.0, 1.0]
    positive = [number for number in every if number > 0] or [1.0]
    step = _step([place for place, _ in axis.ticks if place > 0] or positive)
    bare = Scale(low=0, high=0, log=axis.log, min_positive=positive[0], step=step)
    low, high = bare.at(every[0]), bare.at(every[-1])
    if low == high:
        low, high = (low - 0.5, high + 0.5) if axis.log or not low else sorted((0.9 * low, 1.1 * high))
    room = margin * (high - low)
    found = replace(bare, low=low - room, high=high + room)
    ticks = axis.ticks
    if axis.log and not ticks:
        places = [0.0] * (every[0] <= 0) + _log_ticks(positive[0], positive[-1])
        ticks = zip(places, tick_texts(places), strict=True)
    elif not ticks:
        integers = all(float(number).is_integer() for number in every)
        places = _ticks(_round_numbers(integers=integers), found.low, found.high)
        ticks = zip(places, tick_texts(places), strict=True)
    return replace(found, ticks=tuple((found.at(place), text) for place, text in ticks))


def point_scales(
    curve: Curve,
    points: Sequence[Point],
    published: Sequence[tuple[float, float]] = (),
    *,
    margins: tuple[float, float],
) -> tuple[Scale, Scale]:
    """Return the scales of both axes of a figure, for all points, intervals and published numbers."""
    across, up = [point.x for point in points], [number for _, number in published]
    up += [y for point in points for y in (point.y, point.low, point.high) if y is not None]
    return (
        make_scale([*across, *(place for place, _ in published)], curve.x, margin=margins[0]),
        make_scale([y for y in up if y > 0 or not curve.y.log], curve.y, margin=margins[1]),
    )


def tick_texts(numbers: Sequence[float]) -> list[str]:
    """Return the numbers as tick labels: with the fewest exact decimals, or with SI prefixes if large."""
    if max(map(abs, numbers), default=0.0) >= 1e4:
        from matplotlib.ticker import EngFormatter  # noqa: PLC0415 -- slow to load, and data do without it

        prefixed = EngFormatter(sep="")
        return [prefixed(number) if abs(number) >= 1 else f"{number:g}" for number in numbers]
    decimals = next(
        (digits for digits in range(9) if all(_is_round(number, digits) for number in numbers)), 9
    )
    return [format(number, f"z,.{decimals}f").replace("-", "−") for number in numbers]


def _is_round(number: float, digits: int) -> bool:
    return math.isclose(round(number, digits), number, rel_tol=1e-9, abs_tol=1e-12)


def _step(positive: Sequence[float]) -> float:
    """Return the distance between 0 and the smallest number: the mean distance between the numbers."""
    places = sorted({math.log10(number) for number in positive})
    return max((places[-1] - places[0]) / (len(places) - 1), 0.1) if len(places) > 1 else 1.0


def _round_numbers(*, integers: bool = False) -> MaxNLocator:
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415 -- as above

    return MaxNLocator(nbins=5, steps=[1, 2, 5, 10], min_n_ticks=1, integer=integers)


def _log_ticks(low: float, high: float) -> list[float]:
    """Return powers of ten, with 2 and 5 times each if they are few, or else a few round numbers."""
    from matplotlib.ticker import LogLocator  # noqa: PLC0415 -- as above

    if low == high:
        return [low]
    for locator in (LogLocator(), LogLocator(subs=[1, 2, 5])):
        if len(found := _ticks(locator, low, high)) >= _MIN_LOG_TICKS:
            return found
    return _ticks(_round_numbers(), low, high)


def _ticks(locator: Locator, low: float, high: float) -> list[float]:
    return [
        float(tick)
        for tick in locator.tick_values(low, high)
        if low <= tick <= high or math.isclose(tick, low) or math.isclose(tick, high)
    ]
