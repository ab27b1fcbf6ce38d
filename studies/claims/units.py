"""Units of the metrics in claims, which say whether two numbers may be compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import permutations, product

from ..catalog.metrics import COSTS, CURRENCIES, Metric, Target, metric_family, read_target
from .comparisons import (
    Comparison,
    Constant,
    Number,
    Picked,
    Quantity,
    Quotient,
    SignedSum,
    Speedup,
    iter_numbers,
    number_parts,
)

_Kind = tuple[str, Target | None]
"""A metric by its family, and the target to which it is a cost, if it is one."""


def _kinds(number: Number) -> list[_Kind]:
    """Return the kinds of metrics whose unit a number has.

    A constant and a speedup have no unit. A quotient of two kinds has none, either, but two costs to
    different targets stay different.
    """
    match number:
        case Quantity() | Picked():
            return [(metric_family(number.metric), read_target(number.metric))]
        case Speedup():
            return []
        case Quotient():
            above, below = _kinds(number.numerator), _kinds(number.denominator)
            if not below:
                return above
            return [kind for kind in (*above, *below) if kind[1] and set(above) != set(below)]
        case _:
            return [kind for part in number_parts(number) for kind in _kinds(part)]


def comparison_faults(comparison: Comparison, metrics: Mapping[str, Metric]) -> Iterator[str]:
    """Yield why the two sides cannot be compared."""
    left, right = (_kinds(side) for side in number_parts(comparison))
    targets = sorted({target for _, target in (*left, *right) if target is not None}, key=repr)
    costs = list(dict.fromkeys(f"{each.currency}_to" for each in targets))
    if len(costs) > 1:
        yield f"expected one kind of cost on all sides, got {' and '.join(costs)}"
    if len(targets) > 1:
        yield f"expected the same target on all sides, got {' and '.join(map(str, targets))}"
    for number in iter_numbers(comparison):
        terms = [metrics[name] for name, _ in _kinds(number)] if isinstance(number, SignedSum) else []
        for term in terms[1:]:
            if _unit(term) != _unit(terms[0]):
                yield f"expected one unit in a sum, got {_with_unit(terms[0])} and {_with_unit(term)}"
    for side, other in permutations(number_parts(comparison)):
        if isinstance(side, Quantity | Picked) and isinstance(other, Constant):
            metric = metrics[metric_family(side.metric)]
            if metric.is_share and not 0 <= other.value <= 1:
                yield f"{metric.name} is a share, from 0 to 1, and never reaches {other.value:g}"
    pairs = [(metrics[one], metrics[other]) for (one, _), (other, _) in product(left, right)]
    alike = [pair for pair in pairs if _unit(pair[0]) == _unit(pair[1])]
    if pairs and not alike:
        yield f"expected both sides in one unit, got {' and '.join(map(_with_unit, pairs[0]))}"
    elif alike and all({each.higher_is_better for each in pair} == {True, False} for pair in alike):
        ways = (
            f"{each.name} ({'higher' if each.higher_is_better else 'lower'} is better)" for each in alike[0]
        )
        yield f"expected metrics with one direction on both sides, got {' and '.join(ways)}"


def _unit(metric: Metric) -> str:
    """Return a metric's unit: "steps" for `steps_to[…]`, "share", a cost's name, or "" for most others."""
    if metric.name in CURRENCIES:
        return CURRENCIES[metric.name]
    if metric.is_share:
        return "share"
    return metric.name if metric.name in COSTS else metric.unit


def _with_unit(metric: Metric) -> str:
    unit = _unit(metric)
    return metric.name if unit == metric.name else f"{metric.name} ({unit or 'no unit'})"
