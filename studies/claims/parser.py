"""Tokeniser and parser of claims: one method for each grammar rule, with the rule in its docstring.

Nothing is evaluated, and brackets nest at most MAX_DEPTH deep. Names are not looked up: `resolver` decides
whether `loss` is a metric and `m` a variable. A level is read token by token up to a comma or bracket of the
claim itself, so that it may be any recipe.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from ...errors import ActivememError, FaultCollector, describe_character
from ...grammar.parser import Token, Tokenizer, TokenReader


@dataclass(frozen=True, slots=True, kw_only=True)
class Spanned:
    """Base class of the nodes of a parsed claim, with their positions in the text."""

    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Identifier(Spanned):
    """A name in a claim's text, with its position."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelLiteral(Spanned):
    """A level in a claim's text, such as `conv(k=3)`: a sequence of one or more tokens."""

    text: str
    tokens: tuple[Token, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelSet(Spanned):
    """A set of levels, such as all levels of a factor except some.

    `excluded` levels are removed from the levels of `factor`, or from `levels`. Exactly one of `factor` and
    `levels` is given.
    """

    factor: Identifier | None = None
    levels: tuple[LevelLiteral, ...] = ()
    excluded: tuple[LevelLiteral, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ForClause:
    """The clause `for variable in set` at the end of a call's arguments.

    The arguments are evaluated once for each level in the set, with this level as the variable's value.
    """

    variable: Identifier
    iterates: LevelSet


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberLiteral(Spanned):
    """A number in a claim's text."""

    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricReference(Spanned):
    """A metric, such as `loss[mixer=sa]` with brackets that select cells.

    A name without brackets is a metric or the variable of a `for` clause.
    """

    word: Identifier
    index: tuple[str, ...] = ()
    selectors: tuple[tuple[Identifier, LevelLiteral], ...] = ()
    bare: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation(Spanned):
    """Parts joined by an operator, which determines their kind.

    Statements are joined by `and`, `or` and `not`; numbers by `+` (each added with the sign `+` or `-`) and
    by `/`. Numbers are compared by `compare`, a chain such as `a > b >= c` with one more part than signs, and
    by `within`, which needs a margin.
    """

    operator: str
    parts: tuple[SyntaxNode, ...]
    signs: tuple[str, ...] = ()
    margin: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedupExpression(Spanned):
    """The speedup `speedup(fast over slow, target)`. `fast` and `slow` are levels of one factor."""

    fast: LevelLiteral
    slow: LevelLiteral
    target: MetricReference


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionCall(Spanned):
    """A function call such as `mean(loss[mixer=m] for m in mixer)`: its arguments and its `for` clauses."""

    function: Identifier
    arguments: tuple[SyntaxNode, ...]
    loops: tuple[ForClause, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MembershipTest(Spanned):
    """The statement `best(…) is level` or `best(…) in set`."""

    ranking: SyntaxNode
    candidates: LevelSet


SyntaxNode = NumberLiteral | MetricReference | SpeedupExpression | FunctionCall | MembershipTest | Operation


KEYWORDS = frozenset(
    "all any and argmax argmin best except for in is law max mean min not of or over".split()  # noqa: SIM905 -- easier to read than a list
) | {"speedup", "within", "worst"}
"""Reserved words: levels may have these names, variables may not."""

_cut = Tokenizer(
    {
        "space": r"[ \t\r\n]+",
        "number": r"(?:[0-9]|\.[0-9])(?:[eE][+-](?=[0-9])|[\w.])*",
        "path": r"[A-Za-z_]\w*(?:[/.][A-Za-z_]\w*)+(?=[ \t]*\[)",  # a column of another program's runs
        "name": r"[A-Za-z_]\w*",
        "quoted": r""" "[^"\n]*"|'[^'\n]*' """.strip(),
        "sign": r">>|[<>=!]=|[-+*/<>=()\[\]{},]",
        "other": r".",
    }
)


def tokenize(text: str) -> list[Token]:
    """Split a claim's text into tokens.

    Kinds of tokens are "number", "name", "quoted", "other" and "end". A word or sign of the language is its
    own kind. "other" is a character outside the language, which may appear only inside a level.
    """
    return [
        token._replace(kind=token.text)
        if token.kind == "sign" or (token.kind == "name" and token.text in KEYWORDS)
        else token._replace(kind="name" if token.kind == "path" else token.kind)
        for token in _cut(text)
    ]


MAX_DEPTH = 16
"""The maximum nesting depth of brackets."""

RANKING_FUNCTIONS = ("best", "worst", "argmax", "argmin")
FUNCTIONS = ("all", "any", "min", "max", "mean", "law", *RANKING_FUNCTIONS)
SIGNS = (">", ">=", "<", "<=", "==", "!=")

_OPEN = {"(": ")", "[": "]", "{": "}"}
_ENDS = (")", "]", "}", ",")  # signs that end a level, outside its own brackets
# words that end a level, unless they are the whole level
_LEVEL_KEYWORDS = ("and", "or", "for", "except", "over")

RuleResult = TypeVar("RuleResult")


class ClaimFaultError(ActivememError):
    """Exception for a fault of a claim that is already recorded."""


def parse_claim(text: str, faults: FaultCollector) -> SyntaxNode:
    """Parse a claim into a tree. Raise ClaimFaultError for its first fault, which is added to `faults`."""
    return _ClaimParser(text, faults).claim()


def parse_cells(text: str, faults: FaultCollector) -> tuple[MetricReference, ...]:
    """Parse the cells with which a text begins, such as `loss[mixer=sa], loss[mixer=conv], any words`.

    Raise ClaimFaultError for the first fault, which is added to `faults`.
    """
    return _ClaimParser(text, faults).cells()


_EXPECTED_FOR = {
    "=": "expected > >= < <= == or !=",
    "beats": "expected > or <, or best(METRIC) is LEVEL",
    "by": 'expected a margin as in "a > b + 0.1"',
    "(": "expected a cell in brackets, as max_length[mixer=sa]",
    "*": "a claim can add, subtract and divide numbers, but not multiply them: expected the end",
    ")": "expected the end",
    "\u2265": "expected >=",
    "\u2264": "expected <=",
}
"""Messages for tokens after a complete statement, which say what is probably meant."""


class _ClaimParser(TokenReader):
    """Recursive-descent parser of one claim. A rule that cannot continue raises ClaimFaultError."""

    def __init__(self, text: str, faults: FaultCollector) -> None:
        super().__init__(tokenize(text))
        self._faults = faults
        self._depth = 0  # the number of open brackets

    def claim(self) -> SyntaxNode:
        """Parse `claim = either END`."""
        found = self.either()
        if self.token.kind != "end":
            expected = _EXPECTED_FOR.get(self.token.text, "expected 'and', 'or' or the end")
            raise self._error(f"{expected}, got {self._found()}")
        return found

    def cells(self) -> tuple[MetricReference, ...]:
        """Parse `cells = quantity { "," quantity } [ "," WORDS ]`; a further quantity must have brackets."""
        self._require("name", "a metric of a cell, such as loss[mixer=sa]")
        found = [self.quantity()]
        while self.token.kind == "," and [each.kind for each in self._tokens[self._at + 1 :][:2]] == [
            "name",
            "[",
        ]:
            self._advance()
            found.append(self.quantity())
        if self.token.kind not in (",", "end"):
            raise self._error(f"expected ',' or the end after the cell, got {self._found()}")
        return tuple(found)

    def either(self) -> SyntaxNode:
        """Parse `either = both { "or" both }`."""
        return self._junction("or", self.both)

    def both(self) -> SyntaxNode:
        """Parse `both = denial { "and" denial }`."""
        return self._junction("and", self.denial)

    def denial(self) -> SyntaxNode:
        """Parse `denial = { "not" } relation`."""
        start, denied = self.token.start, False
        while self.token.kind == "not":
            self._advance()
            denied = not denied
        part = self.relation()
        return Operation(start=start, end=self._end(), operator="not", parts=(part,)) if denied else part

    def relation(self) -> SyntaxNode:
        """Parse `relation = sum { sign sum } | sum "within" NUMBER "of" sum | sum ( "is" level | "in" set )`.

        The kinds of operands, such as `best` before `is`, are not checked yet.
        """
        start, first = self.token.start, self.sum()
        is_ranking = isinstance(first, FunctionCall) and first.function.text in RANKING_FUNCTIONS
        if is_ranking and self.token.kind in ("=", *SIGNS):
            called = self._faults.quote(first.start, first.end)
            raise self._error(f"this gives a level: expected 'is', as in {called} is sa, got {self._found()}")
        match self.token.kind:
            case "within":
                self._advance()
                token = self.token
                self._require("number", "a number after 'within'")
                margin = self._value()
                self._skip("of", "'of' after the margin")
                parts = (first, self.sum())
                if margin <= 0:
                    raise self._error(f"expected a margin above 0, got {token.text}", token)
                return Operation(start=start, end=self._end(), operator="within", parts=parts, margin=margin)
            case "is":
                self._advance()
                level = self.level()
                among = LevelSet(start=level.start, end=level.end, levels=(level,))
                return MembershipTest(start=start, end=self._end(), ranking=first, candidates=among)
            case "in":
                self._advance()
                return MembershipTest(start=start, candidates=self.set(), end=self._end(), ranking=first)
        operands, signs = [first], []
        while self.token.kind in SIGNS:
            signs.append(self._advance().kind)
            operands.append(self.sum())
        if not signs:
            return first
        return Operation(
            start=start, end=self._end(), operator="compare", parts=tuple(operands), signs=tuple(signs)
        )

    def sum(self) -> SyntaxNode:
        """Parse `sum = [ "-" ] quotient { ( "+" | "-" ) quotient }`."""
        start = self.token.start
        signs = [self._advance().kind if self.token.kind == "-" else "+"]
        terms = [self.quotient()]
        while self.token.kind in ("+", "-"):
            signs.append(self._advance().kind)
            terms.append(self.quotient())
        if signs == ["+"]:
            return terms[0]
        return Operation(start=start, end=self._end(), operator="+", parts=tuple(terms), signs=tuple(signs))

    def quotient(self) -> SyntaxNode:
        """Parse `quotient = term { "/" term }`."""
        start, found = self.token.start, self.term()
        while self.token.kind == "/":
            self._advance()
            below = self.term()
            found = Operation(start=start, end=self._end(), operator="/", parts=(found, below))
        return found

    def term(self) -> SyntaxNode:
        """Parse `term = NUMBER | call | speedup | quantity | VARIABLE | "(" either ")"`."""
        kind = self.token.kind
        if kind == "number":
            start, value = self.token.start, self._value()
            return NumberLiteral(start=start, end=self._end(), value=value)
        if kind == "name":
            return self.quantity()
        if kind == "(":
            return self._bracketed(self.either)
        if kind in FUNCTIONS:
            return self.call()
        if kind == "speedup":
            return self.speedup()
        raise self._error(
            f"expected a metric such as loss[mixer=sa], a number or a function, got {self._found()}"
        )

    def call(self) -> SyntaxNode:
        """Parse `call = FUNCTION "(" either { "," either } { "for" VARIABLE "in" set } ")"`."""
        function = self._word()
        arguments, loops = self._called(function, self._arguments)
        return FunctionCall(
            start=function.start, end=self._end(), function=function, arguments=arguments, loops=loops
        )

    def speedup(self) -> SyntaxNode:
        """Parse `speedup = "speedup" "(" level "over" level "," quantity ")"`."""
        word = self._word()
        fast, slow, target = self._called(word, self._speedup)
        return SpeedupExpression(start=word.start, end=self._end(), fast=fast, slow=slow, target=target)

    def quantity(self) -> MetricReference:
        """Parse `quantity = METRIC [ "[" selectors "]" ]`; for `selectors`, see `_selectors`."""
        word = self._word()
        if self.token.kind != "[":
            return MetricReference(start=word.start, end=word.end, word=word)
        index, selectors = self._bracketed(self._selectors)
        if self.token.kind == "[":
            raise self._error("expected one pair of brackets, as in bleu[10-20, mixer=sa]")
        return MetricReference(
            start=word.start, end=self._end(), word=word, index=index, selectors=selectors, bare=False
        )

    def set(self) -> LevelSet:
        """Parse `set = ( FACTOR | "[" levels "]" ) [ "except" "[" levels "]" ]`."""
        start, factor, levels = self.token.start, None, ()
        if self.token.kind == "name":
            factor = self._word()
        else:
            levels = self._listed("a factor or a list of levels")
        less = ()
        if self.token.kind == "except":
            self._advance()
            less = self._listed("a list of levels")
        return LevelSet(start=start, end=self._end(), factor=factor, levels=levels, excluded=less)

    def level(self) -> LevelLiteral:
        """Parse a factor's level, spelled as in a study file; stop at a token that cannot belong to it.

        Its own brackets belong to it. A single quoted token is the text between the quotes. `and`, `or`,
        `for` or `except` ends a level unless it is the whole level: there is a task `and`.
        """
        tokens: list[Token] = []
        inside: list[str] = []  # the closing signs of the brackets that the level has opened
        while self.token.kind != "end":
            kind = self.token.kind
            if not inside and (kind in _ENDS or (tokens and kind in _LEVEL_KEYWORDS)):
                break
            if kind in _OPEN:
                inside.append(_OPEN[kind])
            elif inside and kind == inside[-1]:
                inside.pop()
            elif kind in _OPEN.values():
                break
            elif kind == "=" and not inside:
                before = self._found(self._tokens[self._at - 1])
                message = f"unexpected '='; is there a comma missing before {before}?"
                raise self._error(f"{message} A level with = in its name needs quotes: 'lr = 0.006'")
            tokens.append(self._advance())
        if not tokens:
            raise self._error(f"expected a level, got {self._found()}")
        start, end = tokens[0].start, tokens[-1].end
        text = self._faults.text[start:end]
        if len(tokens) == 1 and tokens[0].kind == "quoted":
            text = text[1:-1]
        return LevelLiteral(start=start, end=end, text=" ".join(text.split()), tokens=tuple(tokens))

    def _junction(self, word: str, part: Callable[[], SyntaxNode]) -> SyntaxNode:
        """Parse `part { word part }`, in which `word` is "and" or "or"."""
        start, parts = self.token.start, self._separated(word, part)
        if len(parts) == 1:
            return parts[0]
        return Operation(start=start, end=self._end(), operator=word, parts=parts)

    def _arguments(self) -> tuple[tuple[SyntaxNode, ...], tuple[ForClause, ...]]:
        """Parse `either { "," either } { "for" VARIABLE "in" set }`."""
        arguments = self._separated(",", self.either)
        loops: list[ForClause] = []
        while self.token.kind == "for":
            self._advance()
            if self.token.kind in KEYWORDS:
                word = self.token.text
                raise self._error(f"'{word}' is a reserved word; expected the name of a variable")
            self._require("name", "the name of a variable")
            variable = self._word()
            self._skip("in", f"'in' after '{variable.text}'")
            loops.append(ForClause(variable=variable, iterates=self.set()))
        return arguments, tuple(loops)

    def _speedup(self) -> tuple[LevelLiteral, LevelLiteral, MetricReference]:
        """Parse `level "over" level "," quantity`."""
        fast = self.level()
        self._skip("over", "'over' and a level, as in speedup(a over b, …)")
        slow = self.level()
        self._skip(",", "', ' and a target, as flops_to[loss <= 1]")
        self._require("name", "a target, as flops_to[loss <= 1]")
        return fast, slow, self.quantity()

    def _selectors(self) -> tuple[tuple[str, ...], tuple[tuple[Identifier, LevelLiteral], ...]]:
        """Parse `selectors = [ INDEX { "," INDEX } ] { FACTOR "=" level }`; commas separate all items."""
        index: list[str] = []
        selectors: list[tuple[Identifier, LevelLiteral]] = []
        while True:
            named = self.token.kind in ("name", *KEYWORDS) and self._tokens[self._at + 1].kind == "="
            if not named and selectors:
                raise self._error(f"expected FACTOR=LEVEL, got {self._found()}")
            if named:
                factor = self._word()
                self._advance()
                selectors.append((factor, self.level()))
            else:
                index.append(self.level().text.replace(" ", ""))
            if self.token.kind != ",":
                return tuple(index), tuple(selectors)
            self._advance()

    def _listed(self, expected: str) -> tuple[LevelLiteral, ...]:
        """Parse `"[" level { "," level } "]"`."""
        self._require("[", expected)
        return self._bracketed(lambda: self._separated(",", self.level))

    def _separated(self, sign: str, rule: Callable[[], RuleResult]) -> tuple[RuleResult, ...]:
        """Parse `rule { sign rule }`."""
        found = [rule()]
        while self.token.kind == sign:
            self._advance()
            found.append(rule())
        return tuple(found)

    def _called(self, word: Identifier, rule: Callable[[], RuleResult]) -> RuleResult:
        """Parse `"(" rule ")"` after the name of a function."""
        self._require("(", f"'(' after '{word.text}'")
        return self._bracketed(rule)

    def _bracketed(self, rule: Callable[[], RuleResult]) -> RuleResult:
        """Parse `rule` between brackets, and return its node."""
        opened = self._advance()
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self._error(f"expected at most {MAX_DEPTH} open brackets, got more", opened)
        inside = rule()
        if self.token.kind == "end":
            raise self._error("this bracket is never closed", opened)
        if self.token.kind != _OPEN[opened.kind]:
            raise self._error(f"expected '{_OPEN[opened.kind]}' or ',', got {self._found()}")
        self._depth -= 1
        self._advance()
        return inside

    def _require(self, kind: str, expected: str) -> None:
        if self.token.kind != kind:
            raise self._error(f"expected {expected}, got {self._found()}")

    def _skip(self, kind: str, expected: str) -> None:
        self._require(kind, expected)
        self._advance()

    def _value(self) -> float:
        token = self._advance()
        try:
            value = float(token.text)
        except ValueError:
            got = self._faults.quote(token.start, token.end)
            raise self._error(f"expected a number, got '{got}'", token) from None
        if math.isinf(value):
            raise self._error(f"expected a finite number, got {token.text}", token)
        return value

    def _found(self, token: Token | None = None) -> str:
        token = token or self.token
        if token.kind == "end":
            return "the end"
        if token.kind == "other":
            return describe_character(token.text)
        return f"'{self._faults.quote(token.start, token.end)}'"

    def _word(self) -> Identifier:
        token = self._advance()
        return Identifier(start=token.start, end=token.end, text=token.text)

    def _error(self, message: str, token: Token | None = None) -> ClaimFaultError:
        """Record a fault at a token, by default the next one, and return an exception to raise."""
        token = token or self.token
        self._faults.add(token.start, token.end, message)
        return ClaimFaultError()
