"""The effects of comparisons in a paper's printed numbers, beside the measured effects."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping

from ...studies.claims.comparisons import (
    Comparison,
    Constant,
    Number,
    Quantity,
    Quotient,
    Reduction,
    SignedSum,
    number_parts,
)
from ...studies.claims.reader import cell_key
from ...studies.resolve.trial import CellKey

PrintedValues = Mapping[tuple[str, CellKey], float]
"""Printed numbers by the metric and the cell of the study that repeats them."""

_REDUCTIONS: Mapping[str, Callable[[Collection[float]], float]] = {
    "mean": lambda values: math.fsum(values) / len(values),
    "min": min,
    "max": max,
}


def printed_effect(comparison: Comparison, printed: PrintedValues) -> float | None:
    """Return the effect of a comparison in a paper's numbers: left minus right.

    As in `ComparisonResult`, the margin of the comparison is not part of the effect. Return None if the paper
    does not print one of the numbers.
    """
    left, right = _value(comparison.left, printed), _value(comparison.right, printed)
    return None if left is None or right is None else left - right + comparison.added


def _value(number: Number, printed: PrintedValues) -> float | None:  # noqa: PLR0911 -- one return for each kind
    if isinstance(number, Constant):
        return number.value
    if isinstance(number, Quantity):
        return printed.get((number.metric, cell_key(number.cell)))
    if not isinstance(number, SignedSum | Reduction | Quotient):  # a paper's table has no law and no speedup
        return None
    values = [_value(part, printed) for part in number_parts(number)]
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return None
    match number:
        case SignedSum():
            return math.fsum(sign * value for (sign, _), value in zip(number.terms, known, strict=True))
        case Reduction():
            return _REDUCTIONS[number.function](known)
        case Quotient():
            return known[0] / known[1] if known[1] else None
