"""What a search optimises and what its points must keep to: quantities by name, measured or of the text."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from ..catalog.metrics import COSTS, METRICS, MODEL_COSTS, Metric, unknown_metric

Direction = Literal["max", "min"]
"""Which way is better."""

_LIMIT = re.compile(r"\s*(<=|>=|<|>)\s*([-+]?(?:\d[\d_]*\.?[\d_]*|\.\d+)(?:[eE][-+]?\d+)?)\s*")

_HOLDS: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True, slots=True)
class SearchObjective:
    """A quantity of a point, the mean over its seeds, and which way is better."""

    name: str
    direction: Direction

    @property
    def maximise(self) -> bool:
        """Whether more is better."""
        return self.direction == "max"

    def loss(self, value: float) -> float:
        """The value as something of which less is better."""
        return -value if self.maximise else value


@dataclass(frozen=True, slots=True)
class Limit:
    """A bound of a quantity, as `seconds < 60` has it; a mean over seeds must keep to it."""

    name: str
    sign: str
    bound: float

    def holds(self, value: float) -> bool:
        """Whether a value keeps to it."""
        return _HOLDS[self.sign](value, self.bound)

    def excess(self, value: float) -> float:
        """How far a value is beyond it: above 0 only if it does not hold."""
        beyond = value - self.bound if self.sign.startswith("<") else self.bound - value
        return beyond if self.holds(value) or beyond > 0 else 1e-12  # at a bound that is excluded

    def __str__(self) -> str:
        return f"{self.name} {self.sign} {self.bound:g}"


def read_limit(name: str, text: str) -> Limit:
    """The limit of a text such as `< 60`; ValueError for any other."""
    found = _LIMIT.fullmatch(text)
    if found is None:
        raise ValueError(f"expected <, <=, > or >= and a number, as in '< 60', got {text!r}")
    return Limit(name, found[1], float(found[2].replace("_", "")))


def is_known_before(name: str) -> bool:
    """Whether a quantity is known from the text of a point, before it is trained."""
    return name in MODEL_COSTS


def find_quantity(name: str) -> Metric | None:
    """The metric, the cost of a training or that of a model by this name; None if there is none."""
    return MODEL_COSTS.get(name) or COSTS.get(name) or METRICS.get(name)


def quantity_fault(name: str) -> str:
    """What is wrong with a name that is no quantity."""
    return unknown_metric(name, dict.fromkeys((*METRICS, *COSTS, *MODEL_COSTS)))


def usual_direction(name: str) -> Direction | None:
    """Which way is better of a quantity by itself; None where neither is known to be."""
    metric = find_quantity(name)
    if metric is None or metric.higher_is_better is None:
        return None
    return "max" if metric.higher_is_better else "min"
