"""Resolves a claim's syntax tree into comparisons, looking each name up in the study.

Loops are unrolled, chains cut into pairs, and `best` into comparisons with the other levels, so that only
comparisons of numbers in known cells are left to be tested on results:

    all(loss[mixer=m] > loss[mixer=sa] > 1 for m in [conv(k=3), cgru(k=3)])

is an AllOf of two AllOf, of two comparisons each. Whatever is wrong is noted and gives None, as does all
that it is a part of; the other parts are still resolved, so that their faults are reported too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal

from ...diagnostics import FaultCollector, nearest_hint
from ...grammar import RecipeError, lookup
from ..catalog.metrics import metric_family
from ..schema.factors import SEED
from ..schema.level_names import NamedLevels, level_text
from ..schema.settings import Level, read_recipe
from . import syntax_tree as syntax
from .comparisons import (
    AllOf,
    AnyOf,
    Comparison,
    Constant,
    Extrapolation,
    NotOf,
    Number,
    Quantity,
    Quotient,
    Reduction,
    SignedSum,
    Statement,
    iter_comparisons,
    iter_quantities,
)
from .scope import Cell, Scope
from .syntax_tree import ForClause, FunctionCall, LevelLiteral, LevelSet, MetricReference


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundLevel:
    """The value of a variable: a level as text, and where that is written."""

    start: int
    end: int
    text: str


Bindings = Mapping[str, BoundLevel]
"""Every variable with its value."""


@dataclass(slots=True, kw_only=True)
class ClaimContext:
    """The study's names and the faults of the text, each noted once, however often a loop meets it.

    `each` is the factor at each of whose levels the claim is made, if any; `scope` has one of them.
    `num_iterations` counts all iterations of loops, so that nested loops stay bounded.
    """

    scope: Scope
    faults: FaultCollector
    each: str | None = None
    num_iterations: int = 0

    def report_error(self, start: int, end: int, message: str) -> None:
        """Note a fault, once."""
        if all((fault.start, fault.end, fault.message) != (start, end, message) for fault in self.faults):
            self.faults.add(start, end, message)


MAX_COMBINATIONS = 1000
"""The most combinations of levels, or comparisons, that a claim may have."""

_MAX_ITERATIONS = 10 * MAX_COMBINATIONS
_OPERATOR = re.compile(r"[+*>]")


def substitute_variables(context: ClaimContext, level: LevelLiteral, bound: Bindings) -> BoundLevel:
    """Return the level with its variables substituted.

    The name of an argument, such as `k` in `conv(k=20)`, is no variable.
    """
    tokens = level.tokens
    if len(tokens) == 1:
        known = bound.get(level.text) if tokens[0].kind == "name" else None
        return known or BoundLevel(start=level.start, end=level.end, text=level.text)
    pieces, at = "", level.start
    for token, after in zip(tokens, (*tokens[1:], None), strict=True):
        named = after is not None and after.kind in ("=", "(")
        if token.kind == "name" and token.text in bound and not named:
            text = bound[token.text].text
            pieces += context.faults.text[at : token.start]
            pieces += f"({text})" if _OPERATOR.search(text) else text
            at = token.end
    text = " ".join((pieces + context.faults.text[at : level.end]).split())
    with suppress(RecipeError):  # not every level is a recipe
        text = read_recipe(text).text if text != level.text else text
    return BoundLevel(start=level.start, end=level.end, text=text)


def resolve_level(context: ClaimContext, factor: str, level: LevelLiteral, bound: Bindings) -> Level | None:
    """Return the level of a factor that is meant; report a fault and return None if there is none."""
    found = substitute_variables(context, level, bound)
    try:
        return context.scope.level(factor, found.text)
    except ValueError as error:
        context.report_error(found.start, found.end, str(error))
        return None


def resolve_level_set(context: ClaimContext, level_set: LevelSet, bound: Bindings) -> tuple[BoundLevel, ...]:
    """Return the levels of a set in its order, without those after `except`.

    Reports an unknown factor, an exception that is not in the set, and an empty result.
    """
    listed = tuple(substitute_variables(context, level, bound) for level in level_set.levels)
    factor = level_set.factor
    if factor is not None:
        levels = context.scope.factors.get(factor.text)
        if levels is None:
            hint = nearest_hint(factor.text, context.scope.factors)
            context.report_error(factor.start, factor.end, f"unknown factor '{factor.text}'{hint}")
            return ()
        listed = tuple(
            BoundLevel(start=factor.start, end=factor.end, text=level_text(level)) for level in levels
        )
    names = NamedLevels(dict.fromkeys(other.text for other in listed), "among those of the loop")
    less = set[Level]()
    for one in (substitute_variables(context, level, bound) for level in level_set.excluded):
        try:
            less.add(names.find(one.text))
        except ValueError as error:
            context.report_error(one.start, one.end, str(error))
    kept = tuple(one for one in listed if one.text not in less)
    if less and not kept:
        context.report_error(level_set.start, level_set.end, "no level is left")
    return kept


def loop_bindings(context: ClaimContext, call: FunctionCall, bound: Bindings) -> list[Bindings]:
    """Return the values of variables in each iteration of a call's loops, the last varying fastest.

    A set may use the variables before it. A call without loops has one iteration.
    """
    found: list[Bindings] = [bound]
    for loop in call.loops:
        _check_variable(context, call, loop)
        found = [
            {**each, loop.variable.text: level}
            for each in found
            for level in resolve_level_set(context, loop.iterates, each)
        ]
        if len(found) > MAX_COMBINATIONS:
            message = f"expected at most {MAX_COMBINATIONS:,} combinations of levels, got {len(found):,}"
            context.report_error(loop.variable.start, loop.iterates.end, message)
            return []
    context.num_iterations += len(found)
    if context.num_iterations > _MAX_ITERATIONS:
        context.report_error(
            call.start, call.end, f"expected at most {_MAX_ITERATIONS:,} rounds of all loops, got more"
        )
        return []
    return found


def _check_variable(context: ClaimContext, call: FunctionCall, loop: ForClause) -> None:
    """Note a variable whose name is taken, and one that is not used."""
    name, scope = loop.variable.text, context.scope
    owners = [factor for factor, levels in scope.factors.items() if name in map(level_text, levels)]
    taken = None
    if name in scope.metrics:
        taken = "a metric"
    elif owners:
        taken = f"a level of {owners[0]}"
    elif lookup(name) is not None:
        taken = "a block"
    if taken:
        message = f"'{name}' is {taken}; expected another name for the variable"
        context.report_error(loop.variable.start, loop.variable.end, message)
    elif len(re.findall(rf"\b{re.escape(name)}\b", context.faults.text[call.start : call.end])) < 2:
        context.report_error(loop.variable.start, loop.variable.end, f"nothing uses '{name}'")


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


ResolveNumber = Callable[[ClaimContext, syntax.SyntaxNode, Bindings], Number | None]

_FEWEST = 2  # sizes that a law goes through


def resolve_extrapolation(
    context: ClaimContext, node: syntax.FunctionCall, bound: Bindings, resolve: ResolveNumber
) -> Number | None:
    """Return the extrapolation to the size of its argument; report faults and return None."""
    sizes = context.scope.ladder
    fault = None
    if not sizes:
        fault = "law(…) goes through the sizes of a [ladder], and the study has none"
    elif node.loops or len(node.arguments) != 1:
        fault = "expected one number, as law(test_loss[width=64])"
    if fault is not None:
        context.report_error(node.start, node.end, fault)
        return None
    number = resolve(context, node.arguments[0], bound)
    if number is None:
        return None
    cells = [each.cell for each in iter_quantities(number)]
    places = {_place(context, cell) for cell in cells}
    if len(places) != 1 or (place := next(iter(places))) < _FEWEST:
        message = f"expected cells of one size, with at least {_FEWEST} smaller ones in the [ladder]"
        context.report_error(node.start, node.end, f"{message}, got {_sizes_words(context, places)}")
        return None
    parts = tuple((_at(context, cells[0], each), _moved(context, number, each)) for each in range(place))
    return Extrapolation(of=number, cell=cells[0], parts=parts)


def _place(context: ClaimContext, cell: Cell) -> int:
    """Return the index of a cell's size."""
    levels, sizes = dict(cell), context.scope.ladder
    rungs = list(zip(*sizes.values(), strict=True))
    return rungs.index(tuple(levels[name] for name in sizes))


def _sizes_words(context: ClaimContext, places: Set[int]) -> str:
    """`width=24`, `width=24 and width=32`, or none."""
    sizes = context.scope.ladder
    words = [
        ", ".join(f"{name}={levels[place]}" for name, levels in sizes.items()) for place in sorted(places)
    ]
    return " and ".join(words) or "none"


def _at(context: ClaimContext, cell: Cell, place: int) -> Cell:
    """Return the cell with another size."""
    sizes = context.scope.ladder
    return tuple((name, sizes[name][place] if name in sizes else level) for name, level in cell)


def _moved(context: ClaimContext, number: Number, place: int) -> Number:
    """Return the number with another size in all of its cells."""
    match number:
        case Quantity():
            return replace(number, cell=_at(context, number.cell, place))
        case SignedSum():
            return SignedSum(tuple((sign, _moved(context, term, place)) for sign, term in number.terms))
        case Quotient():
            above, below = number.numerator, number.denominator
            return Quotient(_moved(context, above, place), _moved(context, below, place))
        case Reduction():
            return Reduction(number.function, tuple(_moved(context, part, place) for part in number.parts))
        case _:
            return number


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
