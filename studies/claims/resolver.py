"""Resolves a claim's syntax tree into comparisons, looking each name up in the study.

Loops are unrolled, chains cut into pairs, and `best` into comparisons with the other levels, so that only
comparisons of numbers in known cells are left to be tested on results:

    all(loss[mixer=m] > loss[mixer=sa] > 1 for m in [conv(k=3), cgru(k=3)])

is an AllOf of two AllOf, of two comparisons each. Whatever is wrong is noted and gives None, as does all
that it is a part of; the other parts are still resolved, so that their faults are reported too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from . import syntax_tree as syntax
from .best_of import RANKING_FUNCTIONS, resolve_membership
from .cell_selection import resolve_name, select_quantities
from .comparisons import (
    AllOf,
    AnyOf,
    Comparison,
    Constant,
    NotOf,
    Number,
    Quotient,
    Reduction,
    SignedSum,
    Statement,
    iter_comparisons,
    iter_quantities,
)
from .context import Bindings, ClaimContext
from .extrapolation import resolve_extrapolation
from .level_sets import MAX_COMBINATIONS, loop_bindings

_FOLDS: Mapping[str, Literal["min", "max", "mean"]] = {"min": "min", "max": "max", "mean": "mean"}


def resolve_claim(context: ClaimContext, said: syntax.SyntaxNode) -> Statement | None:
    """Return the statement that a claim makes about the study; report faults and return None."""
    found = resolve_statement(context, said, {})
    if found is None or context.faults:
        return None
    count = sum(1 for _ in iter_comparisons(found))
    if count > MAX_COMBINATIONS:
        context.report_error(
            said.start, said.end, f"expected at most {MAX_COMBINATIONS:,} comparisons, got {count:,}"
        )
        return None
    return found


def resolve_statement(  # noqa: PLR0911 -- one return for each kind
    context: ClaimContext, node: syntax.SyntaxNode, bound: Bindings
) -> Statement | None:
    """Return the statement of a node: a comparison, a combination of statements, or a loop over them.

    A number in its place, or a `best` without `is` or `in`, is a fault.
    """
    match node:
        case syntax.BooleanOperation():
            parts = [resolve_statement(context, part, bound) for part in node.parts]
            return _joined(AllOf if node.operator == "and" else AnyOf, parts)
        case syntax.Negation():
            part = resolve_statement(context, node.part, bound)
            return None if part is None else NotOf(part)
        case syntax.ComparisonChain():
            return _chain(context, node, bound)
        case syntax.WithinExpression():
            left, right = (
                resolve_number(context, node.left, bound),
                resolve_number(context, node.right, bound),
            )
            return _resolve_comparison(context, node, (left, right), "within", node.margin)
        case syntax.MembershipTest():
            return resolve_membership(context, node, bound, resolve_number)
        case syntax.FunctionCall() if node.function.text in ("all", "any"):
            rounds = loop_bindings(context, node, bound)
            parts = [resolve_statement(context, each, inner) for inner in rounds for each in node.arguments]
            return _joined(AllOf if node.function.text == "all" else AnyOf, parts)
        case syntax.FunctionCall() if node.function.text in RANKING_FUNCTIONS:
            message = f"expected 'is' or 'in' after {node.function.text}(…)"
            context.report_error(node.start, node.end, message)
        case syntax.SyntaxErrorNode():
            pass
        case _:
            context.report_error(node.start, node.end, "expected a statement, as a > b, got a number")
    return None


def resolve_number(  # noqa: PLR0911 -- one return for each kind
    context: ClaimContext, node: syntax.SyntaxNode, bound: Bindings
) -> Number | None:
    """Return the number of a node: a metric in one cell, a constant, a variable, a sum or a reduction.

    A statement in its place is a fault, and so is the level that `best` gives.
    """
    match node:
        case syntax.NumberLiteral():
            return Constant(node.value)
        case syntax.MetricReference():
            return resolve_name(context, node, bound)
        case syntax.SumExpression():
            terms = [(sign, resolve_number(context, term, bound)) for sign, term in node.terms]
            known = tuple((sign, term) for sign, term in terms if term is not None)
            return SignedSum(known) if len(known) == len(terms) else None
        case syntax.QuotientExpression():
            above = resolve_number(context, node.numerator, bound)
            below = resolve_number(context, node.denominator, bound)
            return None if above is None or below is None else Quotient(above, below)
        case syntax.FunctionCall() if node.function.text in _FOLDS:
            return _fold(context, node, bound)
        case syntax.FunctionCall() if node.function.text == "law":
            return resolve_extrapolation(context, node, bound, resolve_number)
        case syntax.FunctionCall() if node.function.text in RANKING_FUNCTIONS:
            context.report_error(
                node.start, node.end, f"expected a number, got the level that {node.function.text} gives"
            )
        case syntax.SyntaxErrorNode():
            pass
        case _:
            context.report_error(node.start, node.end, "expected a number, got a statement")
    return None


def _chain(context: ClaimContext, node: syntax.ComparisonChain, bound: Bindings) -> Statement | None:
    """Return the comparisons of neighbouring operands; a chain holds if all of them do."""
    operands = [resolve_number(context, each, bound) for each in node.operands]
    pairs = zip(operands, node.signs, operands[1:], strict=False)
    return _joined(
        AllOf, [_resolve_comparison(context, node, (left, right), sign) for left, sign, right in pairs]
    )


def _resolve_comparison(
    context: ClaimContext,
    node: syntax.SyntaxNode,
    sides: tuple[Number | None, Number | None],
    sign: str,
    margin: float = 0.0,
) -> Statement | None:
    """One comparison, which must have a metric; `a != b` becomes `not a == b`."""
    left, right = sides
    if left is None or right is None:
        return None
    found = Comparison(left, "==" if sign == "!=" else sign, right, margin)
    if not any(iter_quantities(found)):
        context.report_error(node.start, node.end, "expected a metric on one side, got numbers alone")
        return None
    return NotOf(found) if sign == "!=" else found


def _fold(context: ClaimContext, node: syntax.FunctionCall, bound: Bindings) -> Number | None:
    """Return the minimum, maximum or mean over a call's loops, its arguments, or the factors left open.

    `max(loss[task=sort])` is over every mixer; the maximum of a single number is a fault.
    """
    function, first = _FOLDS[node.function.text], node.arguments[0]
    if not node.loops and len(node.arguments) == 1:
        found = (
            select_quantities(context, first, bound) if isinstance(first, syntax.MetricReference) else None
        )
        if not isinstance(first, syntax.MetricReference) or (found and len(found) == 1):
            message = f"expected several numbers, as {function}(a, b) or {function}(a for m in mixer)"
            context.report_error(node.start, node.end, message)
            return None
        return Reduction(function, found) if found else None
    rounds = loop_bindings(context, node, bound)
    parts = [resolve_number(context, each, inner) for inner in rounds for each in node.arguments]
    known = tuple(part for part in parts if part is not None)
    return Reduction(function, known) if known and len(known) == len(parts) else None


def _joined(kind: type[AllOf] | type[AnyOf], parts: list[Statement | None]) -> Statement | None:
    """Return the statements joined into one: a single one stays itself, and None if none is sound."""
    known = tuple(part for part in parts if part is not None)
    if not known or len(known) < len(parts):
        return None
    return known[0] if len(known) == 1 else kind(known)
