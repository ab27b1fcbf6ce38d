"""Targets: the steps, tokens, operations or seconds that a training took to a value of a metric.

`steps_to[dev_loss <= 1.5]` is the step of the first evaluation in which dev_loss is at most 1.5.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Literal

Currency = Literal["steps", "tokens", "flops", "seconds"]

CURRENCIES: dict[str, Currency] = {
    "steps_to": "steps",
    "tokens_to": "tokens",
    "flops_to": "flops",
    "seconds_to": "seconds",
}
"""The currency of each family of targets."""

_TARGET = re.compile(
    r"(?P<family>[a-z]+_to)\[\s*(?P<metric>[A-Za-z_]\w*)\s*(?P<sign><=|>=)\s*(?P<value>[^\s\]]+)\s*\]"
)
_SIGNS = {"<=": "≤", ">=": "≥"}


@dataclass(frozen=True, slots=True)
class Target:
    """A value of a metric that a training is to reach, and the currency in which the way there counts."""

    currency: Currency
    metric: str
    at_most: bool
    value: float

    def __str__(self) -> str:
        """Return the target in words: `dev_loss ≤ 1.5`."""
        return f"{self.metric} {_SIGNS['<=' if self.at_most else '>=']} {self.value:g}".replace("-", "−")


def is_target(name: str) -> bool:
    """Return whether a metric's name begins like a target: `steps_to[…]`."""
    return name.partition("[")[0] in CURRENCIES


def read_target(name: str) -> Target | None:
    """Return the target of a name, spaces aside; None if it is none, or is written wrong."""
    found = _TARGET.fullmatch(name)
    if found is None or found["family"] not in CURRENCIES:
        return None
    try:
        value = float(found["value"])
    except ValueError:
        return None
    if not math.isfinite(value):
        return None
    return Target(CURRENCIES[found["family"]], found["metric"], found["sign"] == "<=", value)
