"""Limits on the costs and metrics of models: the key `limits` of [study]."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..catalog.metrics import COSTS, METRICS, MODEL_COSTS, Metric, is_target, unknown_metric
from ..text.strict_model import InvalidTableError, ValidationProblem

_LIMIT = re.compile(r"\s*(<=|>=|<|>)\s*([-+]?(?:\d[\d_]*\.?[\d_]*|\.\d+)(?:[eE][-+]?\d+)?)\s*")

_HOLDS: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True, slots=True)
class Limit:
    """A bound such as `seconds < 60`, for the mean over a point's seeds."""

    name: str
    sign: str
    bound: float

    def holds(self, value: float) -> bool:
        """Return whether a value respects the bound."""
        return _HOLDS[self.sign](value, self.bound)

    def excess(self, value: float) -> float:
        """Return how far a value is beyond the bound. It is positive only if the bound is violated."""
        beyond = value - self.bound if self.sign.startswith("<") else self.bound - value
        # a value exactly at a bound such as `< 60` violates it, so the result must be positive
        return beyond if self.holds(value) or beyond > 0 else 1e-12

    def __str__(self) -> str:
        return f"{self.name} {self.sign} {self.bound:g}"


def read_limit(name: str, text: str) -> Limit:
    """Parse a limit such as `< 60`; raise ValueError for other texts."""
    found = _LIMIT.fullmatch(text)
    if found is None:
        raise ValueError(f"expected <, <=, > or >= and a number, as in '< 60', got {text!r}")
    return Limit(name, found[1], float(found[2].replace("_", "")))


def is_known_before(name: str) -> bool:
    """Return whether a quantity is known before any training."""
    return name in MODEL_COSTS


def find_quantity(name: str) -> Metric | None:
    """Return the metric, training cost or model cost with this name, or None."""
    return MODEL_COSTS.get(name) or COSTS.get(name) or METRICS.get(name)


def quantity_fault(name: str) -> str:
    """Return the message about a name that no limit or objective can have."""
    if is_target(name):
        return f"limits and objectives are about final values, but {name} is computed from a learning curve"
    return unknown_metric(name, dict.fromkeys((*METRICS, *COSTS, *MODEL_COSTS)))


def check_limits(limits: dict[str, str]) -> dict[str, str]:
    """Return the table `limits` unchanged; raise InvalidTableError with every fault."""
    problems: list[ValidationProblem] = []
    for name, text in limits.items():
        if find_quantity(name) is None:
            problems.append(ValidationProblem((name,), quantity_fault(name), key=True))
        try:
            read_limit(name, text)
        except ValueError as error:
            problems.append(ValidationProblem((name,), str(error)))
    if problems:
        raise InvalidTableError(tuple(problems))
    return limits
