"""The number of pairs that a t test needs to find an effect."""

from __future__ import annotations

import math

from .estimates import t_quantile

POWER = 0.8
"""The chance of finding a true effect at which a number of pairs counts as enough."""

MAX_PAIRS = 10_000
"""For an effect that needs more pairs than these, no number is given."""


def pairs_needed(
    effect_size: float, level: float, *, min_pairs: int = 2, degrees_per_pair: float = 1.0
) -> int | None:
    """Return how many pairs a t test needs to find an effect, in standard deviations, with a chance of POWER.

    Each pair but the first adds `degrees_per_pair` degrees of freedom: more than 1 if the variance is
    pooled. At least `min_pairs`; None above MAX_PAIRS.
    """

    def power(n: int) -> float:
        return _power(effect_size, n, degrees_per_pair * (n - 1), level)

    low, high = min_pairs - 1, min_pairs
    while power(high) < POWER:
        if high > MAX_PAIRS:
            return None
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if power(middle) >= POWER else (middle, high)
    return high if high <= MAX_PAIRS else None


def _power(effect_size: float, n: int, degrees: float, level: float) -> float:
    """Return the chance that a t test of n pairs finds an effect of so many standard deviations."""
    from scipy.special import nctdtr  # noqa: PLC0415 -- a table without tests does not need it

    return 1.0 - float(nctdtr(degrees, effect_size * math.sqrt(n), t_quantile(level, degrees + 1)))


def detectable(error: float, degrees: int, level: float) -> float:
    """Return the difference that a two-sided t test at this level finds with a chance of POWER.

    `error` is its standard error, with so many degrees of freedom.
    """
    from scipy.special import nctdtr  # noqa: PLC0415 -- as above

    limit, low, high = t_quantile(1 - level, degrees + 1), 0.0, 1.0
    while 1.0 - float(nctdtr(degrees, high, limit)) < POWER:
        low, high = high, 2 * high
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if 1.0 - float(nctdtr(degrees, middle, limit)) < POWER else (low, middle)
    return high * error
