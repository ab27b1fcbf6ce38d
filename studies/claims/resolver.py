"""Resolver of the text of a claim into comparisons of numbers in known cells, to be tested on results.

Loops are unrolled, chains are cut into pairs, and `best` becomes comparisons with the other levels:

all(loss[mixer=m] > loss[mixer=sa] > 1 for m in [conv(k=3), cgru(k=3)])

is an AllOf of two AllOf, of two comparisons each. A part with a fault raises ClaimFaultError; the parts
beside it are still resolved, so that their faults are reported too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import product
from string import ascii_lowercase
from typing import Literal, TypeVar, cast

from ...errors import FaultCollector, nearest, nearest_hint
from ...grammar import RecipeError, lookup
from ..catalog.metrics import CURRENCIES, metric_family
from ..schema.factors import SEED, NamedLevels, level_key, level_text
from ..schema.settings import Level, read_recipe
from . import parser as syntax
from .comparisons import (
    AllOf,
    AnyOf,
    Cell,
    ClaimSpec,
    Comparison,
    Constant,
    Extrapolation,
    NotOf,
    Number,
    Picked,
    Quantity,
    Quotient,
    Ratio,
    Reduction,
    SignedSum,
    Speedup,
    Statement,
    iter_comparisons,
    iter_numbers,
    iter_quantities,
    replace_metrics,
)
from .parser import RANKING_FUNCTIONS, ClaimFaultError, parse_cells, parse_claim
from .scope import Scope
from .units import comparison_faults

_REDUCTIONS: Mapping[str, Literal["min", "max", "mean"]] = {"min": "min", "max": "max", "mean": "mean"}
_EXAMPLE = "loss[mixer=sa]"
_MAX_COMBINATIONS = 1000  # the most combinations of levels in a loop, and the most comparisons in a claim
_MAX_ROUNDS = 10 * _MAX_COMBINATIONS
_FEWEST_SIZES = 2  # the fewest smaller sizes from which `law` predicts
_MIRRORED = {">": "<", "<": ">", ">=": "<=", "<=": ">=", "==": "==", "!=": "!="}
_OPERATOR = re.compile(r"[+*>]")


Bindings = Mapping[str, syntax.Identifier]
"""Every loop variable with its level, at the position of this level in the claim's text."""


def resolve_claim(scope: Scope, faults: FaultCollector, spec: ClaimSpec) -> Statement | None:
    """Parse a claim and resolve it to a statement about cells; return None if it has faults.

    If the claim is made at each level of a factor, `scope` has one level of it.
    """
    resolver = _Resolver(scope, faults, spec)
    try:
        said = parse_claim(spec.holds, faults)
        found = resolver.statement(said, {})
        count = sum(1 for _ in iter_comparisons(found))
        if count > _MAX_COMBINATIONS:
            raise resolver.fail(said, f"expected at most {_MAX_COMBINATIONS:,} comparisons, got {count:,}")
    except ClaimFaultError:
        return None
    return None if faults else found


def resolve_number(scope: Scope, faults: FaultCollector, spec: ClaimSpec) -> Comparison | None:
    """Parse an expression and resolve it to a comparison whose effect is the value of the expression.

    It compares the expression with 0, or with 1 if the expression is a speedup. Return None if it has faults.
    """
    resolver = _Resolver(scope, faults, spec)
    try:
        said = parse_claim(spec.holds, faults)
        left = resolver.number(said, {}, is_side=True)
        found = resolver.compared(said, left, ">", Constant(float(isinstance(left, Speedup))))
    except ClaimFaultError:
        return None
    return found if isinstance(found, Comparison) and not faults else None


def resolve_cells(scope: Scope, faults: FaultCollector, text: str) -> tuple[Quantity, ...] | None:
    """Resolve the cells with which a text begins, such as `loss[mixer=sa], any words`; None if it has faults.

    A metric that leaves a factor open means all cells that it matches.
    """
    resolver = _Resolver(scope, faults, ClaimSpec(name="cells", holds=""))
    try:
        found = resolver.each(resolver.cells, parse_cells(text, faults))
    except ClaimFaultError:
        return None
    return None if faults else tuple(dict.fromkeys(quantity for each in found for quantity in each))


ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")


class _Resolver:
    """Resolver of the names in one claim. It reports each fault once, even if a loop repeats it."""

    def __init__(self, scope: Scope, faults: FaultCollector, spec: ClaimSpec) -> None:
        self._scope, self._faults, self._each = scope, faults, spec.each
        self._over, self._pick_by = set(spec.over), spec.pick_by
        self._num_rounds = 0  # counted over all loops of the claim, so that nested loops stay bounded

    def fail(self, place: syntax.Spanned, message: str) -> ClaimFaultError:
        """Record a fault and return an exception for the caller to raise."""
        new = (place.start, place.end, message)
        if all((each.start, each.end, each.message) != new for each in self._faults):
            self._faults.add(place.start, place.end, message)
        return ClaimFaultError()

    def each(self, resolve: Callable[[ItemT], ResultT], items: Iterable[ItemT]) -> list[ResultT]:
        """Resolve every item, also those after a faulty one. Raise ClaimFaultError if any is faulty."""
        found, is_faulty = list[ResultT](), False
        for item in items:
            try:
                found.append(resolve(item))
            except ClaimFaultError:
                is_faulty = True
        if is_faulty:
            raise ClaimFaultError
        return found

    def cells(self, node: syntax.MetricReference) -> list[Quantity]:
        """Resolve a metric outside of a comparison to all cells that its brackets select."""
        return [each for each in self._quantities(node, {}) if isinstance(each, Quantity)]

    def statement(self, node: syntax.SyntaxNode, bound: Bindings) -> Statement:
        """Resolve a node to a statement: a comparison, a combination of statements, or a loop.

        A number, or a `best` without `is` or `in`, is a fault.
        """
        match node:
            case syntax.Operation(operator="and" | "or" as operator):
                parts = self.each(lambda part: self.statement(part, bound), node.parts)
                return _joined(AllOf if operator == "and" else AnyOf, parts)
            case syntax.Operation(operator="not"):
                return NotOf(self.statement(node.parts[0], bound))
            case syntax.Operation(operator="compare"):  # holds if all comparisons of neighbouring operands do
                operands = self.each(lambda part: self.number(part, bound, is_side=True), node.parts)
                pairs = zip(operands, node.signs, operands[1:], strict=False)
                return _joined(AllOf, self.each(lambda pair: self.compared(node, *pair), pairs))
            case syntax.Operation(operator="within"):
                left, right = self.each(lambda part: self.number(part, bound), node.parts)
                return self.compared(node, left, "within", right, node.margin)
            case syntax.MembershipTest():
                return self._membership(node, bound)
            case syntax.FunctionCall() if node.function.text in ("all", "any"):
                rounds = [(inner, each) for inner in self._rounds(node, bound) for each in node.arguments]
                parts = self.each(lambda one: self.statement(one[1], one[0]), rounds)
                return _joined(AllOf if node.function.text == "all" else AnyOf, parts)
            case syntax.FunctionCall() if node.function.text in RANKING_FUNCTIONS:
                message = f"expected 'is' or 'in' and a level after {node.function.text}(…)"
                raise self.fail(node, f"{message}, as in {node.function.text}(loss) is sa")
            case _:
                raise self.fail(node, f"expected a comparison, such as {_EXAMPLE} > 3, got only a number")

    def number(self, node: syntax.SyntaxNode, bound: Bindings, *, is_side: bool = False) -> Number:  # noqa: PLR0911 -- one return for each kind
        """Resolve a node to a number. Only one that `is_side` of a comparison may be a speedup."""
        match node:
            case syntax.NumberLiteral():
                return Constant(node.value)
            case syntax.MetricReference():
                return self._named_number(node, bound)
            case syntax.Operation(operator="+"):
                terms = self.each(lambda part: self.number(part, bound), node.parts)
                signs = (-1 if sign == "-" else 1 for sign in node.signs)
                return SignedSum(tuple(zip(signs, terms, strict=True)))
            case syntax.Operation(operator="/"):
                above, below = self.each(lambda part: self.number(part, bound), node.parts)
                return Quotient(above, below)
            case syntax.FunctionCall() if node.function.text in _REDUCTIONS:
                return self._reduction(node, bound)
            case syntax.FunctionCall() if node.function.text == "law":
                return self._law(node, bound)
            case syntax.FunctionCall() if node.function.text in RANKING_FUNCTIONS:
                message = f"expected a number, but {node.function.text}(…) gives a level: compare it with one"
                raise self.fail(node, f"{message}, for example `{node.function.text}(loss) is sa`")
            case syntax.SpeedupExpression() if is_side:
                return self._speedup(node, bound)
            case syntax.SpeedupExpression():
                raise self.fail(node, "a speedup can only be compared, as in speedup(a over b, …) > 1.5")
            case _:
                raise self.fail(node, "expected a number, got a comparison")

    def compared(
        self, node: syntax.Spanned, left: Number, sign: str, right: Number, margin: float = 0.0
    ) -> Statement:
        """Return the comparison `left sign right`; for `!=`, the negation of `left == right`."""
        if isinstance(right, Speedup) and not isinstance(left, Speedup):
            left, sign, right = right, _MIRRORED[sign], left
        if isinstance(left, Speedup):
            right = self._beside_speedup(node, left, right)
        found = Comparison(left, "==" if sign == "!=" else sign, right, margin)
        if not any(iter_quantities(found)):
            raise self.fail(node, f"expected a metric, such as {_EXAMPLE}, got only numbers")
        if fault := next(comparison_faults(found, self._scope.metrics), ""):
            raise self.fail(node, fault)
        return NotOf(found) if sign == "!=" else found

    def _beside_speedup(self, node: syntax.Spanned, left: Speedup, right: Number) -> Number:
        """Return the right side of a comparison whose left side is a speedup, or report a fault."""
        if isinstance(right, Speedup):
            ours, theirs = (metric_family(each.fast.metric) for each in (left, right))
            if ours == theirs:
                return right
            raise self.fail(node, f"expected speedups by the same kind of cost, got {ours} and {theirs}")
        if isinstance(right, Constant) and right.value > 0:
            return Ratio(right.value)
        raise self.fail(node, "expected a number above 0 or another speedup to compare with a speedup")

    def _speedup(self, node: syntax.SpeedupExpression, bound: Bindings) -> Speedup:
        """Return the speedup of one level over another level of the same factor."""
        family = node.target.word.text
        if family not in CURRENCIES:
            expected = ", ".join(f"{name}[…]" for name in CURRENCIES)
            raise self.fail(node.target.word, f"expected one of {expected} in a speedup, got {family}")
        found = self._quantities(node.target, bound)
        compared = self._substituted(node.fast, bound).text
        factor = self._open_factor(node.target, "speedup", found, compared)
        levels = self.each(lambda level: self._level(factor, level, bound), (node.fast, node.slow))
        fast, slow = (next(each for each in found if dict(each.cell)[factor] == level) for level in levels)
        if isinstance(fast, Picked) or isinstance(slow, Picked):
            named = " and ".join(sorted(self._over))
            raise self.fail(
                node.target, f"a speedup compares named cells: give {named} a level in the brackets"
            )
        if fast == slow:
            raise self.fail(node.slow, "expected two different levels, got the same level twice")
        return Speedup(fast=fast, slow=slow)

    def _reduction(self, node: syntax.FunctionCall, bound: Bindings) -> Number:
        """Resolve a call of min, max or mean.

        The call combines its arguments, in each round of its loops. A single metric without a loop means all
        of its cells: `max(loss[task=sort])` is over every mixer; the maximum of a single number is a fault.
        """
        function, first = _REDUCTIONS[node.function.text], node.arguments[0]
        if not node.loops and len(node.arguments) == 1:
            found = self._quantities(first, bound) if isinstance(first, syntax.MetricReference) else ()
            if len(found) < 2:
                example = f"{function}(a, b) or {function}(a for m in mixer)"
                raise self.fail(node, f"expected several numbers, such as {example}")
            return Reduction(function, found)
        rounds = [(inner, each) for inner in self._rounds(node, bound) for each in node.arguments]
        return Reduction(function, tuple(self.each(lambda one: self.number(one[1], one[0]), rounds)))

    def _named_number(self, node: syntax.MetricReference, bound: Bindings) -> Number:
        """Resolve a name to a variable's number or to a metric in one cell."""
        name = node.word.text
        if node.bare and name in bound:
            text = bound[name].text
            try:
                return Constant(float(text))
            except ValueError as error:
                raise self.fail(node, f"expected a number, got '{text}' for '{name}'") from error
        found = self._quantities(node, bound)
        if len(found) == 1:
            return found[0]
        varying = self._scope.varying_factors(each.cell for each in found)
        for word, (factor, levels) in product(node.index, varying.items()):
            if nearest(bound[word].text if word in bound else word, map(level_text, levels)) is not None:
                raise self.fail(node, f"a level in brackets needs its factor, as in [{factor}={word}]")
        ways = " and ".join(
            f"{factor} ({', '.join(map(level_text, levels))})" for factor, levels in varying.items()
        )
        first = ", ".join(f"{factor}={level_text(levels[0])}" for factor, levels in varying.items())
        message = f"'{name}' matches {len(found)} cells here; expected one level of {ways}: add {first}"
        numbers = [key for key, levels in varying.items() if all(isinstance(each, float) for each in levels)]
        if numbers and not self._over:
            message += f', or set over = "{numbers[0]}" and pick_by to let a metric choose'
        raise self.fail(node.word, message)

    def _quantities(self, node: syntax.MetricReference, bound: Bindings) -> tuple[Quantity | Picked, ...]:
        """Return a metric of all cells that its brackets select, which are some.

        Of cells that differ only in factors of `over`, the best gives the number.
        """
        met = [word.text for word, _ in node.selectors]
        checks: list[Callable[[], object]] = [lambda: self._check_metric(node, bound)]
        checks += [partial(self._selected, *each, bound, met[:at]) for at, each in enumerate(node.selectors)]
        _, *levels = self.each(lambda check: check(), checks)
        named = {} if self._each is None else {self._each: self._scope.factors[self._each][0]}
        named |= dict(zip(met, cast("list[Level]", levels), strict=True))
        cells = self._scope.select(named)
        if not cells:
            text = ", ".join(f"{factor}={level_text(level)}" for factor, level in named.items())
            raise self.fail(node, f"the study has no cell with {text}")
        index = ",".join(node.index)
        metric = f"{node.word.text}[{index}]" if index else node.word.text
        alike: dict[Cell, list[Cell]] = {}
        for cell in cells:
            alike.setdefault(tuple(pair for pair in cell if pair[0] not in self._over), []).append(cell)
        return tuple(
            Picked(metric, self._pick_by, tuple(group))
            if len(group) > 1 and self._pick_by
            else Quantity(metric, group[0])
            for group in alike.values()
        )

    def _check_metric(self, node: syntax.MetricReference, bound: Bindings) -> None:
        word = node.word
        if word.text not in self._scope.metrics:
            what = "unknown metric" if not node.bare or not bound else "unknown metric or variable"
            hint = nearest_hint(word.text, (*self._scope.metrics, *(bound if node.bare else ())))
            raise self.fail(word, f"{what} '{word.text}'{hint}")

    def _selected(
        self, word: syntax.Identifier, level: syntax.LevelLiteral, bound: Bindings, before: Sequence[str]
    ) -> Level:
        name, whole = word.text, syntax.Spanned(start=word.start, end=level.end)
        if name == SEED:
            raise self.fail(whole, "remove the seed: cells are compared seed by seed")
        if name == self._each:
            raise self.fail(
                whole, f'remove {name}: each = "{name}" checks the claim at every level of {name}'
            )
        if name in before:
            raise self.fail(word, f"'{name}' is named twice")
        if name not in self._scope.factors:
            raise self.fail(word, f"unknown factor '{name}'{nearest_hint(name, self._scope.factors)}")
        return self._level(name, level, bound)

    def _open_factor(
        self, node: syntax.Spanned, function: str, found: Sequence[Quantity | Picked], level: str = ""
    ) -> str:
        """Return the only factor that the brackets of a metric leave open.

        A factor that follows from another one, as a rate of each mixer, is not open. An error suggests levels
        for factors other than the factor of `level`.
        """
        dependent = self._scope.dependent_factors
        varying = self._scope.varying_factors(each.cell for each in found)
        names = [factor for factor in varying if factor not in dependent]
        if len(names) == 1:
            return names[0]
        rule = f"{function}(…) compares the levels of one factor"
        if not names:
            raise self.fail(node, f"{rule}, but every factor has a level here: remove one")
        cells = [dict(each.cell) for each in found]
        compared = next((factor for factor in names if self._scope.names[factor].has(level)), names[0])
        others = (factor for factor in names if factor != compared)
        levels = ", ".join(f"{factor}={level_text(cells[0][factor])}" for factor in others)
        advice = f"add {levels} in the brackets"
        whole = (name for name in names if len({level_key(cell[name]) for cell in cells}) == len(cells))
        if function in RANKING_FUNCTIONS and (name := next(whole, None)):  # it names each cell, as in a zip
            start = self._faults.text[node.start : node.end].removesuffix("]")
            start += ", " if "[" in start else "["
            used = set(re.findall(r"\w+", self._faults.text))
            each = next(letter for letter in (name[0], *ascii_lowercase) if letter not in used)
            advice = f"write {function}({start}{name}={each}] for {each} in {name})"
        raise self.fail(node, f"{rule}, but {' and '.join(names)} have no level here: {advice}")

    # levels and sets of levels, with variables substituted

    def _substituted(self, level: syntax.LevelLiteral, bound: Bindings) -> syntax.Identifier:
        """Substitute variables in a level: `sa + c` becomes `sa + conv(k=3)`.

        A recipe with several parts is put in parentheses. The name of an argument, such as `k` in
        `conv(k=20)`, is not a variable.
        """
        tokens = level.tokens
        if len(tokens) == 1:
            known = bound.get(level.text) if tokens[0].kind == "name" else None
            return known or syntax.Identifier(start=level.start, end=level.end, text=level.text)
        pieces, at = "", level.start
        for token, after in zip(tokens, (*tokens[1:], None), strict=True):
            named = after is not None and after.kind in ("=", "(")
            if token.kind == "name" and token.text in bound and not named:
                text = bound[token.text].text
                pieces += self._faults.text[at : token.start]
                pieces += f"({text})" if _OPERATOR.search(text) else text
                at = token.end
        text = " ".join((pieces + self._faults.text[at : level.end]).split())
        with suppress(RecipeError):  # not every level is a recipe
            text = read_recipe(text).text if text != level.text else text
        return syntax.Identifier(start=level.start, end=level.end, text=text)

    def _level(self, factor: str, level: syntax.LevelLiteral, bound: Bindings) -> Level:
        found, names = self._substituted(level, bound), self._scope.names[factor]
        if not (fault := names.fault(found.text)):
            return names.find(found.text)
        named = [token.text for token in level.tokens if token.kind == "name" and token.text in bound]
        if not named or len(level.tokens) == 1:  # a variable alone: the fault is at its value
            raise self.fail(found, fault)
        # the first values of the variables show the fault
        if all((each.start, each.end) != (level.start, level.end) for each in self._faults):
            values = ", ".join(f"{name} = {bound[name].text}" for name in dict.fromkeys(named))
            raise self.fail(level, f"with {values}: {fault}")
        raise ClaimFaultError

    def _level_set(self, level_set: syntax.LevelSet, bound: Bindings) -> tuple[syntax.Identifier, ...]:
        listed = tuple(self._substituted(level, bound) for level in level_set.levels)
        factor = level_set.factor
        if factor is not None:
            levels = self._scope.factors.get(factor.text)
            if levels is None:
                hint = nearest_hint(factor.text, self._scope.factors)
                raise self.fail(factor, f"unknown factor '{factor.text}'{hint}")
            listed = tuple(replace(factor, text=level_text(level)) for level in levels)
        excluded = [self._substituted(level, bound) for level in level_set.excluded]
        less = set(self._find_all(excluded, (other.text for other in listed), "of the loop"))
        kept = tuple(one for one in listed if one.text not in less)
        if less and not kept:
            raise self.fail(level_set, "'except' leaves no level: list fewer levels after it")
        return kept

    def _find_all(self, named: Iterable[syntax.Identifier], known: Iterator[str], where: str) -> list[Level]:
        names = NamedLevels(dict.fromkeys(known), where)

        def find(one: syntax.Identifier) -> Level:
            if fault := names.fault(one.text):
                raise self.fail(one, fault)
            return names.find(one.text)

        return self.each(find, named)

    def _rounds(self, call: syntax.FunctionCall, bound: Bindings) -> list[Bindings]:
        """Return every combination of values of a call's loop variables; without loops, a single one."""
        found: list[Bindings] = [bound]
        for loop in call.loops:
            self._check_variable(call, loop)
            found = [
                {**each, loop.variable.text: level}
                for each in found
                for level in self._level_set(loop.iterates, each)
            ]
            if len(found) > _MAX_COMBINATIONS:
                whole = syntax.Spanned(start=loop.variable.start, end=loop.iterates.end)
                most = f"expected at most {_MAX_COMBINATIONS:,} combinations of levels"
                raise self.fail(whole, f"{most}, got {len(found):,}")
        before = self._num_rounds
        self._num_rounds += len(found)
        if self._num_rounds > _MAX_ROUNDS:
            if before <= _MAX_ROUNDS:  # reported once, at the call that exceeds the limit
                most = f"the `for` clauses of a claim may repeat its conditions at most {_MAX_ROUNDS:,} times"
                raise self.fail(call, most)
            raise ClaimFaultError
        return found

    def _check_variable(self, call: syntax.FunctionCall, loop: syntax.ForClause) -> None:
        """Record a fault of a loop's variable; the statement is still resolved with it."""
        name, factors = loop.variable.text, self._scope.factors
        owners = [factor for factor, levels in factors.items() if name in map(level_text, levels)]
        taken = None
        if name in self._scope.metrics:
            taken = "a metric"
        elif owners:
            taken = f"a level of {owners[0]}"
        elif lookup(name) is not None:
            taken = "a block"
        if taken:
            self.fail(loop.variable, f"'{name}' is {taken}; expected another name for the variable")
        elif len(re.findall(rf"\b{re.escape(name)}\b", self._faults.text[call.start : call.end])) < 2:
            self.fail(
                loop.variable,
                f"the variable '{name}' is not used: use it in {call.function.text}(…), or remove its 'for'",
            )

    # which level of a factor comes first

    def _membership(self, node: syntax.MembershipTest, bound: Bindings) -> Statement:
        """Resolve `best(…) is level` or `best(…) in set`.

        Of the levels a, b, c and d, `best(x) is a` says that a beats b, c and d. `best(x) in [a, b]` says
        that a or b beats c and d, not which of the two is better. A named level that is not compared is a
        fault, and so is a set that leaves no other level.
        """
        winner = node.ranking
        if not isinstance(winner, syntax.FunctionCall) or winner.function.text not in RANKING_FUNCTIONS:
            calls = ", ".join(f"{name}(…)" for name in RANKING_FUNCTIONS)
            raise self.fail(winner, f"expected one of {calls} before 'is' and 'in', as in best(loss) is sa")
        candidates = self._candidates(winner, bound)
        named = self._level_set(node.candidates, bound)
        sign = self._sign(winner, candidates)
        levels = self._find_all(named, (level for level, _ in candidates), "of the comparison")
        ahead = [value for name in levels for level, value in candidates if level == name]
        others = [value for level, value in candidates if level not in levels]
        if not others:
            raise self.fail(
                node.candidates, "this list has every compared level, so it is always true: name fewer"
            )
        ways = [_joined(AllOf, [Comparison(one, sign, other) for other in others]) for one in ahead]
        return _joined(AnyOf, ways)

    def _candidates(self, winner: syntax.FunctionCall, bound: Bindings) -> list[tuple[str, Number]]:
        """Return the levels that a call such as `best(…)` compares, each with its number.

        The levels are from its loop, or else from the only factor that its metric leaves open.
        """
        first, function = winner.arguments[0], winner.function.text
        if winner.loops:
            rounds = self._rounds(winner, bound)
            loop, *more = winner.loops
            if more or len(winner.arguments) > 1:
                raise self.fail(winner, f"expected one number and one 'for' in {function}(…)")
            variable = loop.variable.text
            return self.each(lambda inner: (inner[variable].text, self.number(first, inner)), rounds)
        if not isinstance(first, syntax.MetricReference) or len(winner.arguments) > 1:
            raise self.fail(winner, f"expected one metric in {function}(…), as in {function}(loss) is sa")
        found = self._quantities(first, bound)
        factor = self._open_factor(first, function, found)
        return [(level_text(dict(each.cell)[factor]), each) for each in found]

    def _sign(self, winner: syntax.FunctionCall, candidates: list[tuple[str, Number]]) -> str:
        """Return > if the winner must have the higher number, or < for the lower one."""
        function = winner.function.text
        if function in ("argmax", "argmin"):
            return ">" if function == "argmax" else "<"
        metrics = (each for _, value in candidates for each in iter_numbers(value))
        names = {metric_family(each.metric) for each in metrics if isinstance(each, Quantity | Picked)}
        sides = {self._scope.metrics[name].higher_is_better for name in names}
        if len(sides) > 1 or None in sides:
            listed = ", ".join(sorted(names))
            message = f"{function}(…) needs to know whether higher or lower {listed} is better"
            raise self.fail(winner.function, f"{message}: use argmax(…) or argmin(…)")
        return ">" if (True in sides) == (function == "best") else "<"

    # a power law through the smaller sizes of a ladder predicts a number

    def _law(self, node: syntax.FunctionCall, bound: Bindings) -> Number:
        design = self._scope.design
        if not (sizes := {name: design.combined_factors[name] for name in design.ladder}):
            raise self.fail(node, "law(…) needs the sizes of a [ladder], but the study has none")
        if node.loops or len(node.arguments) != 1:
            raise self.fail(node, "expected one number, such as law(test_loss[width=64])")
        number = self.number(node.arguments[0], bound)
        rungs = list(zip(*sizes.values(), strict=True))
        cells = [each.cell for each in iter_quantities(number)]
        places = {rungs.index(tuple(dict(cell)[name] for name in sizes)) for cell in cells}
        if len(places) != 1 or (place := next(iter(places))) < _FEWEST_SIZES:
            least = f"at least {_FEWEST_SIZES} smaller sizes in [ladder]"
            words = [", ".join(map("{}={}".format, sizes, rungs[each])) for each in sorted(places)]
            raise self.fail(
                node, f"expected cells of one size that has {least}, got {' and '.join(words) or 'none'}"
            )
        smaller = [dict(zip(sizes, rung, strict=True)) for rung in rungs[:place]]
        parts = tuple((_resized(cells[0], size), _moved(number, size)) for size in smaller)
        return Extrapolation(of=number, cell=cells[0], parts=parts)


def _resized(cell: Cell, size: Mapping[str, Level]) -> Cell:
    return tuple((name, size.get(name, level)) for name, level in cell)


def _moved(number: Number, size: Mapping[str, Level]) -> Number:
    def move(metric: Quantity | Picked) -> Number:
        if isinstance(metric, Quantity):
            return replace(metric, cell=_resized(metric.cell, size))
        return replace(metric, cells=tuple(_resized(cell, size) for cell in metric.cells))

    return replace_metrics(number, move)


def _joined(kind: type[AllOf] | type[AnyOf], parts: list[Statement]) -> Statement:
    return parts[0] if len(parts) == 1 else kind(tuple(parts))
