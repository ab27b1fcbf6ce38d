"""`best(…) is level`: which level of a factor comes first, expanded into comparisons with the others.

Of the levels a, b, c and d, `best(x) is a` says that a is ahead of b, of c and of d. `best(x) in [a, b]` says
that a or b is ahead of c and d; it does not say which of the two is ahead of the other.
"""

from __future__ import annotations

from collections.abc import Callable

from ..catalog.metrics import metric_family
from ..schema.level_names import NamedLevels, level_text
from ..schema.settings import Level
from . import syntax_tree as syntax
from .cell_selection import select_quantities
from .comparisons import AllOf, AnyOf, Comparison, Number, Statement, iter_quantities
from .context import Bindings, BoundLevel, ClaimContext
from .level_sets import loop_bindings, resolve_level_set

RANKING_FUNCTIONS = ("best", "worst", "argmax", "argmin")

Candidate = tuple[str, Number]
"""A level, as text, and the number it is ranked by."""

NumberResolver = Callable[[ClaimContext, syntax.SyntaxNode, Bindings], Number | None]
"""Resolves a number; it is passed in because the resolver of numbers calls this module."""


def resolve_membership(
    context: ClaimContext, node: syntax.MembershipTest, bound: Bindings, number: NumberResolver
) -> Statement | None:
    """One of the named levels is ahead of every other level.

    A named level that is not compared is a fault, and so is a set that leaves no other level.
    """
    winner = node.ranking
    if not isinstance(winner, syntax.FunctionCall) or winner.function.text not in RANKING_FUNCTIONS:
        if not isinstance(winner, syntax.SyntaxErrorNode):
            context.report_error(
                winner.start,
                winner.end,
                f"expected one of {', '.join(RANKING_FUNCTIONS)} before 'is' and 'in'",
            )
        return None
    candidates = _candidates(context, winner, bound, number)
    named = resolve_level_set(context, node.candidates, bound)
    if candidates is None or context.faults:
        return None
    sign = _sign(context, winner, candidates)
    levels = _find_candidates(context, named, candidates)
    if sign is None or levels is None:
        return None
    ahead = [value for name in levels for level, value in candidates if level == name]
    others = [value for level, value in candidates if level not in levels]
    if not others:
        context.report_error(
            node.candidates.start,
            node.candidates.end,
            "expected a level less: nothing is left to be ahead of",
        )
        return None
    ways = tuple(_all([Comparison(one, sign, other) for other in others]) for one in ahead)
    return ways[0] if len(ways) == 1 else AnyOf(ways)


def _candidates(
    context: ClaimContext, winner: syntax.FunctionCall, bound: Bindings, number: NumberResolver
) -> list[Candidate] | None:
    """Return the levels to compare: those of a loop, or of the one factor that a metric leaves open."""
    first = winner.arguments[0]
    if winner.loops:
        rounds = loop_bindings(context, winner, bound)
        loop, *more = winner.loops
        if more or len(winner.arguments) > 1:
            message = f"expected one number and one 'for' in {winner.function.text}(…)"
            context.report_error(winner.start, winner.end, message)
            return None
        variable = loop.variable.text
        values = [(inner[variable].text, number(context, first, inner)) for inner in rounds]
        known = [(level, value) for level, value in values if value is not None]
        return known if known and len(known) == len(values) else None
    if not isinstance(first, syntax.MetricReference) or len(winner.arguments) > 1:
        message = f"expected a metric, or a number and 'for', in {winner.function.text}(…)"
        context.report_error(winner.start, winner.end, message)
        return None
    found = select_quantities(context, first, bound)
    if found is None:
        return None
    open_factors = list(context.scope.varying_factors(each.cell for each in found))
    if len(open_factors) != 1:
        got = " and ".join(open_factors) or "none"
        context.report_error(first.start, first.end, f"expected one factor to be left open, got {got}")
        return None
    return [(level_text(dict(each.cell)[open_factors[0]]), each) for each in found]


def _find_candidates(
    context: ClaimContext, named: tuple[BoundLevel, ...], candidates: list[Candidate]
) -> list[Level] | None:
    """Return the candidates that are named; None if a name is not one of them, which is reported."""
    names = NamedLevels(dict.fromkeys(level for level, _ in candidates), "among those compared")
    found: list[Level] = []
    for one in named:
        try:
            found.append(names.find(one.text))
        except ValueError as error:
            context.report_error(one.start, one.end, str(error))
    return found if len(found) == len(named) else None


def _sign(context: ClaimContext, winner: syntax.FunctionCall, candidates: list[Candidate]) -> str | None:
    """Return the sign between a level and one that it beats.

    `best` and `worst` follow the metrics' direction. Metrics without a better direction, or with opposite
    ones, are faults.
    """
    function = winner.function.text
    if function in ("argmax", "argmin"):
        return ">" if function == "argmax" else "<"
    names = {metric_family(each.metric) for _, value in candidates for each in iter_quantities(value)}
    sides = {context.scope.metrics[name].higher_is_better for name in names}
    if len(sides) > 1 or None in sides:
        listed = ", ".join(sorted(names))
        message = f"expected metrics with one better direction, got {listed}; say argmax or argmin"
        context.report_error(winner.function.start, winner.function.end, message)
        return None
    return ">" if (True in sides) == (function == "best") else "<"


def _all(parts: list[Statement]) -> Statement:
    return parts[0] if len(parts) == 1 else AllOf(tuple(parts))
