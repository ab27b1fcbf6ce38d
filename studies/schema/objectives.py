"""Objectives and limits of a search: quantities by name, measured or known from the text."""

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
        """Return the value with its sign turned so that less is better."""
        return -value if self.maximise else value


@dataclass(frozen=True, slots=True)
class Limit:
    """A bound of a quantity, such as `seconds < 60`; a mean over seeds must respect it."""

    name: str
    sign: str
    bound: float

    def holds(self, value: float) -> bool:
        """Return whether a value respects the bound."""
        return _HOLDS[self.sign](value, self.bound)

    def excess(self, value: float) -> float:
        """Return how far a value is beyond the bound: above 0 only if it does not hold."""
        beyond = value - self.bound if self.sign.startswith("<") else self.bound - value
        return beyond if self.holds(value) or beyond > 0 else 1e-12  # at a bound that is excluded

    def __str__(self) -> str:
        return f"{self.name} {self.sign} {self.bound:g}"


def read_limit(name: str, text: str) -> Limit:
    """Return the limit of a text such as `< 60`; raise ValueError for any other."""
    found = _LIMIT.fullmatch(text)
    if found is None:
        raise ValueError(f"expected <, <=, > or >= and a number, as in '< 60', got {text!r}")
    return Limit(name, found[1], float(found[2].replace("_", "")))


def is_known_before(name: str) -> bool:
    """Return whether a quantity is known from the text of a point, before it is trained."""
    return name in MODEL_COSTS


def find_quantity(name: str) -> Metric | None:
    """Return the metric, the cost of a training or that of a model by this name; None if there is none."""
    return MODEL_COSTS.get(name) or COSTS.get(name) or METRICS.get(name)


def quantity_fault(name: str) -> str:
    """Return what is wrong with a name that is no quantity."""
    return unknown_metric(name, dict.fromkeys((*METRICS, *COSTS, *MODEL_COSTS)))


def usual_direction(name: str) -> Direction | None:
    """Return which way of a quantity is better; None if neither is known to be."""
    metric = find_quantity(name)
    if metric is None or metric.higher_is_better is None:
        return None
    return "max" if metric.higher_is_better else "min"
