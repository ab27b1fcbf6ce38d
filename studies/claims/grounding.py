"""From what a claim says to the comparisons that it asks for, each name held against the study.

Loops are written out, chains cut into pairs, and `best` into what it is better than, so that nothing but
comparisons of numbers in known cells is left for the test of the results:

    all(loss[mixer=m] > loss[mixer=sa] > 1 for m in [conv(k=3), cgru(k=3)])

is an AllOf of two AllOf, of two comparisons each. Whatever is wrong is noted and gives None, and so does all
that it is a part of; the other parts are still read, so that their faults are told too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from . import syntax
from .context import Bindings, Context
from .levels import MOST, bindings
from .selecting import one, select
from .statements import (
    Absent,
    AllOf,
    AnyOf,
    Comparison,
    Constant,
    Fold,
    NotOf,
    Number,
    Statement,
    Total,
    comparisons,
    quantities,
)
from .winning import WINNERS, membership

_FOLDS: Mapping[str, Literal["min", "max", "mean"]] = {"min": "min", "max": "max", "mean": "mean"}


def ground(context: Context, said: syntax.Syntax) -> Statement | None:
    """The statement that a claim makes of the study; None where something is wrong, which is noted."""
    found = statement(context, said, {})
    if found is None or context.faults:
        return None
    count = sum(1 for _ in comparisons(found))
    if count > MOST:
        context.note(said.start, said.end, f"expected at most {MOST:,} comparisons, got {count:,}")
        return None
    return found


def statement(  # noqa: PLR0911 -- one return for each kind
    context: Context, node: syntax.Syntax, bound: Bindings
) -> Statement | None:
    """What is true or not: comparisons, what joins them, and what a loop makes of them.

    A number in its place, or a `best` of which nothing is said, is a fault.
    """
    match node:
        case syntax.Junction():
            parts = [statement(context, part, bound) for part in node.parts]
            return _joined(AllOf if node.word == "and" else AnyOf, parts)
        case syntax.Denial():
            part = statement(context, node.part, bound)
            return None if part is None else NotOf(part)
        case syntax.Chain():
            return _chain(context, node, bound)
        case syntax.Nearness():
            left, right = number(context, node.left, bound), number(context, node.right, bound)
            return _compared(context, node, (left, right), "within", node.margin)
        case syntax.Membership():
            return membership(context, node, bound, number)
        case syntax.Call() if node.function.text in ("all", "any"):
            rounds = bindings(context, node, bound)
            parts = [statement(context, each, inner) for inner in rounds for each in node.arguments]
            return _joined(AllOf if node.function.text == "all" else AnyOf, parts)
        case syntax.Call() if node.function.text in WINNERS:
            message = f"expected 'is' or 'in' after {node.function.text}(…)"
            context.note(node.start, node.end, message)
        case syntax.Broken():
            pass
        case _:
            context.note(node.start, node.end, "expected a statement, as a > b, got a number")
    return None


def number(context: Context, node: syntax.Syntax, bound: Bindings) -> Number | None:
    """What has a value for each seed: a metric in one cell, a number, a variable's, a sum, a fold.

    A statement in its place is a fault, and so is the level that `best` gives.
    """
    match node:
        case syntax.Number():
            return Constant(node.value)
        case syntax.Name():
            return one(context, node, bound)
        case syntax.Addition():
            terms = [(sign, number(context, term, bound)) for sign, term in node.terms]
            known = tuple((sign, term) for sign, term in terms if term is not None)
            return Total(known) if len(known) == len(terms) else None
        case syntax.Call() if node.function.text in _FOLDS:
            return _fold(context, node, bound)
        case syntax.Call() if node.function.text in WINNERS:
            context.note(
                node.start, node.end, f"expected a number, got the level that {node.function.text} gives"
            )
        case syntax.Broken():
            pass
        case _:
            context.note(node.start, node.end, "expected a number, got a statement")
    return None


def _chain(context: Context, node: syntax.Chain, bound: Bindings) -> Statement | None:
    """Each operand beside the next; a chain holds if all of these do."""
    operands = [number(context, each, bound) for each in node.operands]
    pairs = zip(operands, node.signs, operands[1:], strict=False)
    return _joined(AllOf, [_compared(context, node, (left, right), sign) for left, sign, right in pairs])


def _compared(
    context: Context,
    node: syntax.Syntax,
    sides: tuple[Number | None, Number | None],
    sign: str,
    margin: float = 0.0,
) -> Statement | None:
    """One comparison, in which something must have been measured; `!=` is written as no `==`."""
    left, right = sides
    if left is None or right is None:
        return None
    if not any(_measured(side) for side in (left, right)):
        context.note(node.start, node.end, "expected a metric on one side, got numbers alone")
        return None
    if sign == "!=":
        return NotOf(Comparison(left, "==", right))
    return Comparison(left, sign, right, margin)


def _measured(side: Number) -> bool:
    return any(True for _ in quantities(side)) or _absent(side)


def _absent(side: Number) -> bool:
    match side:
        case Total():
            return any(_absent(term) for _, term in side.terms)
        case Fold():
            return any(map(_absent, side.parts))
        case _:
            return isinstance(side, Absent)


def _fold(context: Context, node: syntax.Call, bound: Bindings) -> Number | None:
    """The least, greatest or mean over a call's loops, over its arguments, or over the factors left open.

    `max(loss[task=sort])` is over every mixer; one number alone has no greatest, which is a fault.
    """
    function, first = _FOLDS[node.function.text], node.arguments[0]
    if not node.loops and len(node.arguments) == 1:
        found = select(context, first, bound) if isinstance(first, syntax.Name) else None
        if not isinstance(first, syntax.Name) or (found and len(found.numbers) == 1 and found.cells):
            message = f"expected several numbers, as {function}(a, b) or {function}(a for m in mixer)"
            context.lack(node.start, node.end, message)
            return None
        return found and Fold(function, found.numbers)
    rounds = bindings(context, node, bound)
    parts = [number(context, each, inner) for inner in rounds for each in node.arguments]
    known = tuple(part for part in parts if part is not None)
    return Fold(function, known) if known and len(known) == len(parts) else None


def _joined(kind: type[AllOf] | type[AnyOf], parts: list[Statement | None]) -> Statement | None:
    """Statements as one; a single one stays itself, and without a sound one there is none."""
    known = tuple(part for part in parts if part is not None)
    if not known or len(known) < len(parts):
        return None
    return known[0] if len(known) == 1 else kind(known)
