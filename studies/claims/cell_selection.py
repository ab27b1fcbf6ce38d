"""The cells that a quantity refers to, selected by the levels named in its brackets.

Factors that are not named are left open. That is fine if one cell alone has the named levels: the other
factors have one level, follow from those named, as in a zip, or, in a design of one at a time, are as in the
baseline. The seed is never named: a quantity has a value for each seed, and is compared seed by seed.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...diagnostics import nearest_hint
from ..schema.factors import SEED
from ..schema.level_names import level_text
from .comparisons import Constant, Number, Quantity
from .context import Bindings, ClaimContext
from .level_sets import resolve_level
from .syntax_tree import LevelLiteral, MetricReference


def resolve_name(context: ClaimContext, node: MetricReference, bound: Bindings) -> Number | None:
    """Return the number that a name means: a variable's, or a metric's in one cell.

    Returns None if the name is wrong or matches several cells; the message says which level must be named.
    """
    if node.bare and node.word.text in bound:
        return _variable(context, node, bound)
    found = select_quantities(context, node, bound)
    if found is None or len(found) == 1:
        return found and found[0]
    ways = " and ".join(
        f"{factor} ({', '.join(map(level_text, levels))})"
        for factor, levels in context.scope.varying_factors(each.cell for each in found).items()
    )
    message = f"'{node.word.text}' stands for {len(found)} cells here; expected one level of {ways}"
    context.report_error(node.word.start, node.word.end, message)
    return None


def select_quantities(
    context: ClaimContext, node: MetricReference, bound: Bindings
) -> tuple[Quantity, ...] | None:
    """Return a metric in each cell with the named levels; report faults and return None."""
    metric = _metric(context, node, bound)
    each, sound = context.each, metric is not None
    named = {} if each is None else {each: context.scope.factors[each][0]}
    for factor, level in _selectors(context, node):
        known = resolve_level(context, factor, level, bound) if factor in context.scope.factors else None
        if known is not None:
            named[factor] = known
        else:
            sound = False
    if not sound or metric is None:
        return None
    cells = context.scope.select(named)
    if not cells:
        text = ", ".join(f"{factor}={level_text(level)}" for factor, level in named.items())
        context.report_error(node.start, node.end, f"the study has no cell with {text}")
        return None
    return tuple(Quantity(metric, cell) for cell in cells)


def _variable(context: ClaimContext, node: MetricReference, bound: Bindings) -> Number | None:
    """Return a variable as a number."""
    text = bound[node.word.text].text
    try:
        return Constant(float(text))
    except ValueError:
        context.report_error(node.start, node.end, f"expected a number, got '{text}' for '{node.word.text}'")
        return None


def _metric(context: ClaimContext, node: MetricReference, bound: Bindings) -> str | None:
    """Return the metric's name with its index if there is such a metric."""
    word = node.word
    if word.text not in context.scope.metrics:
        what = "unknown metric" if not node.bare or not bound else "unknown metric or variable"
        hint = nearest_hint(word.text, (*context.scope.metrics, *(bound if node.bare else ())))
        context.report_error(word.start, word.end, f"{what} '{word.text}'{hint}")
        return None
    index = ",".join(node.index)
    return f"{word.text}[{index}]" if index else word.text


def _selectors(context: ClaimContext, node: MetricReference) -> Iterator[tuple[str, LevelLiteral]]:
    """Yield the named factors with their levels; report faulty ones and yield them all the same."""
    met: set[str] = set()
    for word, level in node.selectors:
        if word.text == SEED:
            message = "expected no seed: cells are compared seed by seed"
            context.report_error(word.start, level.end, message)
            continue
        if word.text == context.each:
            message = f"expected no {word.text}: the claim is made at each of its levels"
            context.report_error(word.start, level.end, message)
            continue
        if word.text in met:
            context.report_error(word.start, word.end, f"'{word.text}' is named twice")
        elif word.text not in context.scope.factors:
            hint = nearest_hint(word.text, context.scope.factors)
            context.report_error(word.start, word.end, f"unknown factor '{word.text}'{hint}")
        met.add(word.text)
        yield word.text, level
