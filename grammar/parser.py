"""Tokenizer and parser of recipes, and their syntax tree.

The docstring of each parsing method is its grammar rule. The parser continues after a fault with the most
likely meaning: it inserts a missing operator or comma, and ignores an extra bracket. The text around a fault
becomes an ErrorSyntax, so that one mistake gets one message. Nothing is evaluated, and nothing nested deeper
than MAX_DEPTH is read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..errors import FaultCollector, describe_character

MAX_DIGITS = 18
"""The maximum length of a number; every whole number of this length fits 64 bits."""


class Token(NamedTuple):
    """A token of a text; the last token has the kind "end" and no text."""

    kind: str
    text: str
    start: int
    end: int
    value: int | float = 0  # of a number


class Tokenizer:
    """A tokenizer with a pattern for each kind of token; the first pattern that matches is used.

    The last pattern must match any character, so that every text has tokens. Tokens of the kind "space" are
    left out.
    """

    def __init__(self, rules: Mapping[str, str], flags: re.RegexFlag = re.NOFLAG) -> None:
        pattern = "|".join(f"(?P<{kind}>{rule})" for kind, rule in rules.items())
        self._pattern = re.compile(pattern, re.DOTALL | flags)

    def __call__(self, text: str) -> Iterator[Token]:
        """Yield the tokens of a text in order, and then the token "end"."""
        for match in self._pattern.finditer(text):
            kind = match.lastgroup
            assert kind is not None, f"no rule fits at {match.start()}"
            if kind != "space":
                yield Token(kind, match[0], *match.span())
        yield Token("end", "", len(text), len(text))


class TokenReader:
    """Base class of parsers, which read tokens in order; `token` is the next unread token."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens
        self._at = 0
        self.token = tokens[0]

    def _advance(self) -> Token:
        token = self.token
        if token.kind != "end":
            self._at += 1
            self.token = self._tokens[self._at]
        return token

    def _end(self) -> int:
        return self._tokens[self._at - 1].end if self._at else 0


_cut = Tokenizer(
    {
        "space": r"[ \t\r\n]+",
        "number": r"(?:\d|\.\d)(?:[eE][+-](?=\d)|[\w.])*",
        "name": r"[A-Za-z_]\w*",
        "quoted": r""" "[^"]*"|'[^']*' """.strip(),
        "sign": r">>?|\*\*|[-+*(){},=]",
        "list": r"\[[^][(){}]*\]",
        "wrong": r"""[^][\w\s"'>+*(){},=-]+|.""",
    },
    re.ASCII,
)
_INTEGER = re.compile(r"0|[1-9](?:_?[0-9])*", re.ASCII)
_REAL = re.compile(r"(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][+-]?[0-9]+)?", re.ASCII)
_TIMES = ("×", "·", "⋅", "∗")
_VALUE_END_KINDS = ("number", "name", ")", "}")


def tokenize(text: str, faults: FaultCollector) -> list[Token]:
    """Split the text into tokens.

    A token's kind is "number", "name", "wrong", "end", or the sign itself, such as ">>".
    """
    tokens: list[Token] = []
    for cut in _cut(text):
        match cut.kind:
            case "sign":
                tokens.append(_sign(cut.text, cut.start, tokens, faults))
            case "number":
                tokens.append(_number(cut.text, cut.start, faults))
            case "quoted":
                tokens.append(_quoted(cut.text, cut.start, faults))
            case "name" if cut.text in ("x", "X") and tokens and tokens[-1].kind in ("number", "}"):
                faults.add(cut.start, cut.end, f"expected '*', got '{cut.text}'")
                tokens.append(cut._replace(kind="*"))
            case "list":
                inside = faults.quote(cut.start + 1, cut.end - 1) or "…"
                faults.add(cut.start, cut.end, f"a recipe has no lists; a choice is choice({inside})")
                tokens.append(cut._replace(kind="wrong"))
            case "wrong" if cut.text in _TIMES:
                faults.add(cut.start, cut.end, f"expected '*', got {describe_character(cut.text)}")
                tokens.append(cut._replace(kind="*"))
            case _:
                tokens.append(cut)
        if tokens[-1].kind == cut.kind == "wrong":
            faults.add(cut.start, cut.end, f"unexpected character {describe_character(cut.text[0])}")
    return tokens


def _sign(text: str, start: int, before: list[Token], faults: FaultCollector) -> Token:
    """Return the token of a sign; report `>`, which is then read as `>>`, and arithmetic such as `3 - 1`."""
    end = start + len(text)
    if text == ">":
        faults.add(start, end, "expected '>>', got '>'")
        return Token(">>", text, start, end)
    after_value = bool(before) and before[-1].kind in _VALUE_END_KINDS
    if text == "**" or (text == "-" and after_value):
        names = ", and names no hyphens" if text == "-" and before[-1].kind == "name" else ""
        faults.add(start, end, f"unexpected '{text}': recipes have no arithmetic{names}")
        return Token("wrong", text, start, end)
    return Token(text, text, start, end)


def _number(text: str, start: int, faults: FaultCollector) -> Token:
    """Return the token of a number, which is written as in Python, but real numbers without underscores."""
    end, is_integer = start + len(text), _INTEGER.fullmatch(text) is not None
    # a real number has room for a point and an exponent
    if len(text) > MAX_DIGITS + 6 or (is_integer and len(text.replace("_", "")) > MAX_DIGITS):
        digits = sum(character.isdigit() for character in text)
        faults.add(start, end, f"expected a number of at most {MAX_DIGITS} digits, got one of {digits}")
    elif is_integer:
        return Token("number", text, start, end, int(text))
    elif not _REAL.fullmatch(text):
        faults.add(start, end, f"expected a number, got '{text}'")
    elif math.isinf(float(text)):
        faults.add(start, end, f"expected a finite number, got {text}")
    else:
        return Token("number", text, start, end, float(text))
    return Token("wrong", text, start, end)


def _quoted(text: str, start: int, faults: FaultCollector) -> Token:
    end = start + len(text)
    word = text[1:-1]
    inside = faults.quote(start + 1, end - 1)
    faults.add(start, end, f"a recipe has no quotes: {f'write {inside}' if inside else 'remove them'}")
    if word.isascii() and word.isidentifier():
        return Token("name", word, start, end)
    return Token("wrong", text, start, end)


@dataclass(frozen=True, slots=True)
class NumberSyntax:
    """A whole or real number with its sign."""

    value: int | float
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class HoleSyntax:
    """A hole `{name}`."""

    name: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class ArgumentSyntax:
    """`value` or `name=value` between the parentheses of a call."""

    name: str | None
    value: Syntax
    start: int
    end: int

    @property
    def name_end(self) -> int:
        """Return the position after the name, or the start of the argument if it has no name."""
        return self.start + len(self.name or "")


@dataclass(frozen=True, slots=True)
class CallSyntax:
    """`name(arguments)`, or a bare name whose `arguments` is None.

    The name is a block, a function of the language such as `tied`, or a word.
    """

    name: str
    arguments: tuple[ArgumentSyntax, ...] | None
    start: int
    end: int

    @property
    def name_end(self) -> int:
        """Return the position after the name."""
        return self.start + len(self.name)


@dataclass(frozen=True, slots=True)
class OperationSyntax:
    """Two or more operands of the same operator: ">>", "+" or "*"."""

    operator: str
    operands: tuple[Syntax, ...]
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class ErrorSyntax:
    """A piece of the text with a fault that is already reported.

    `parts` are the readable pieces inside it, in which the checker finds further faults.
    """

    start: int
    end: int
    parts: tuple[Syntax, ...] = ()


Syntax = NumberSyntax | HoleSyntax | CallSyntax | OperationSyntax | ErrorSyntax


MAX_DEPTH = 32
"""The maximum nesting depth of parentheses."""

_OPERATORS = (">>", "+", "*")
_OPERAND_START_KINDS = ("number", "name", "(", "{", "-")
_STRAY_MESSAGES = {
    ")": "this parenthesis was never opened",
    "}": "this brace was never opened",
    ",": "a comma is allowed only between arguments",
    "=": "'=' is allowed only after the name of a parameter",
}


def parse_syntax(text: str, faults: FaultCollector) -> Syntax:
    """Return the syntax tree of the text.

    Unreadable parts are reported in `faults` and become ErrorSyntax.
    """
    return _RecipeParser(text, faults).recipe()


class _RecipeParser(TokenReader):
    def __init__(self, text: str, faults: FaultCollector) -> None:
        super().__init__(tokenize(text, faults))
        self._faults = faults
        self._depth = 0
        self._too_deep = False  # whether text was skipped because it is nested too deeply
        self._blamed = -1  # index of the last token that `_report_here` reported

    def recipe(self) -> Syntax:
        """`recipe = series END`."""
        return self._series_until("end")

    def series(self) -> Syntax:
        """`series = sum { ">>" sum }`."""
        return self._operation(">>", self.sum)

    def sum(self) -> Syntax:
        """`sum = product { "+" product }`."""
        return self._operation("+", self.product)

    def product(self) -> Syntax:
        """`product = operand { "*" operand }`; a "wrong" token between two operands is an operator."""
        start, first = self.token.start, self._at
        operands = [self.operand()]
        while self.token.kind in ("*", "wrong"):
            joined = self._advance().kind == "*"
            if joined or self.token.kind in _OPERAND_START_KINDS:
                operands.append(self.operand())
        if len(operands) == 1:
            return operands[0]
        if any(token.kind == "wrong" for token in self._tokens[first : self._at]):
            return ErrorSyntax(start, self._end(), tuple(operands))
        return OperationSyntax("*", tuple(operands), start, self._end())

    def operand(self) -> Syntax:
        """`operand = number | hole | call | group`."""
        start, first = self.token.start, self._at
        while self.token.kind == "wrong":
            self._advance()
        match self.token.kind:
            case "number" | "-":
                return self.number()
            case "{":
                return self.hole()
            case "name":
                return self.call()
            case "(":
                return self.group()
        if first == self._at:
            self._report_here(f"expected {self._describe_expected()}, got {self._describe_token()}")
        return ErrorSyntax(start, self._end())

    def number(self) -> Syntax:
        """`number = [ "-" ] NUMBER`."""
        first = self.token
        if first.kind == "-":
            self._advance()
            if self.token.kind != "number":
                self._report(first.start, first.end, "'-' is allowed only before a number")
                return (
                    self.operand()
                    if self.token.kind in ("name", "(", "{")
                    else ErrorSyntax(first.start, first.end)
                )
        token = self._advance()
        return NumberSyntax(-token.value if first.kind == "-" else token.value, first.start, token.end)

    def hole(self) -> Syntax:
        """`hole = "{" NAME "}"`; names that start with `_` are for Python's internal use."""
        brace = self._advance()
        if self.token.kind != "name":
            self._report_here(f"expected a name after '{{', got {self._describe_token()}")
            while self.token.kind in ("number", "wrong", "-"):
                self._advance()
            if self.token.kind == "}":
                self._advance()
            return ErrorSyntax(brace.start, self._end())
        name = self._advance()
        if self.token.kind != "}":
            self._report(brace.start, brace.end, "this brace is never closed", self.token.start)
            return ErrorSyntax(brace.start, name.end)
        if name.text.startswith("_"):
            self._report(name.start, name.end, "the name of a hole starts with a letter")
        return HoleSyntax(name.text, brace.start, self._advance().end)

    def call(self) -> Syntax:
        """`call = NAME [ "(" [ argument { "," argument } [ "," ] ] ")" ]`."""
        name = self._advance()
        if self.token.kind != "(":
            return CallSyntax(name.text, None, name.start, name.end)
        opened = self._open()
        if opened is None:
            return ErrorSyntax(name.start, self._end())
        arguments: list[ArgumentSyntax] = []
        while self.token.kind not in (")", "end"):
            arguments.append(self.argument())
            if self.token.kind == ",":
                self._advance()
            elif self.token.kind not in (")", "end"):
                self._report_unexpected("a comma")
        self._close(opened)
        return CallSyntax(name.text, tuple(arguments), name.start, self._end())

    def argument(self) -> ArgumentSyntax:
        """`argument = [ NAME "=" ] series`; the parameter decides how the series is read."""
        start = self.token.start
        name: str | None = None
        # a token always follows a name, because the last token is the end
        if self.token.kind == "name" and self._tokens[self._at + 1].kind == "=":
            name = self._advance().text
            self._advance()
        elif self.token.kind == "=":
            self._report_here("expected the name of a parameter before '='")
            self._advance()
            return ArgumentSyntax(None, ErrorSyntax(start, self._end(), (self.series(),)), start, self._end())
        value = self.series()
        return ArgumentSyntax(name, value, start, max(self._end(), start))

    def group(self) -> Syntax:
        """`group = "(" series ")"`."""
        start, is_blamed = self.token.start, self._blamed == self._at
        opened = self._open()
        if opened is None:
            return ErrorSyntax(start, self._end())
        if is_blamed and self.token.kind == ")":  # as in sa()()
            self._close(opened)
            return ErrorSyntax(start, self._end())
        inside = self._series_until(")")
        self._close(opened)
        return inside

    def _operation(self, operator: str, operand: Callable[[], Syntax]) -> Syntax:
        start = self.token.start
        first = operand()
        if self.token.kind != operator:
            return first
        operands = [first]
        while self.token.kind == operator:
            self._advance()
            operands.append(operand())
        return OperationSyntax(operator, tuple(operands), start, self._end())

    def _series_until(self, close: str) -> Syntax:
        start = self.token.start
        parts = [self.series()]
        while self.token.kind not in (close, "end"):
            is_count = self.token.kind == "(" and self._tokens[self._at - 1].kind == "number"
            self._report_unexpected("'*'" if is_count else "an operator")
            if self.token.kind not in (close, "end"):
                parts.append(self.series())
        return parts[0] if len(parts) == 1 else ErrorSyntax(start, self._end(), tuple(parts))

    def _report_unexpected(self, expected: str) -> None:
        if self.token.kind in _OPERAND_START_KINDS:
            self._report_here(f"expected {expected} before {self._describe_token()}")
            return
        before = self._tokens[self._at - 1]
        whole = f": write {{{before.text}}}" if self.token.kind == "}" and before.kind == "name" else ""
        self._report_here(_STRAY_MESSAGES[self.token.kind] + whole)
        self._advance()
        if self.token.kind in _OPERATORS:
            self._advance()

    def _open(self) -> Token | None:
        """Consume "("; if it is nested too deeply, report it, skip to its ")" and return None."""
        opened = self._advance()
        if self._depth < MAX_DEPTH:
            self._depth += 1
            return opened
        self._report(opened.start, opened.end, f"expected at most {MAX_DEPTH} open parentheses, got more")
        self._too_deep = True
        inside = 1
        while inside and self.token.kind != "end":
            inside += {"(": 1, ")": -1}.get(self._advance().kind, 0)
        return None

    def _close(self, opened: Token) -> None:
        """Consume ")", or report the opening bracket.

        Nothing is reported after a part that is nested too deeply, which can hide every later ")".
        """
        self._depth -= 1
        if self.token.kind == ")":
            self._advance()
        elif not self._too_deep:
            message = "this parenthesis is never closed"
            self._report(opened.start, opened.end, message, self.token.start)

    def _report_here(self, message: str) -> None:
        if self._blamed != self._at:
            self._blamed = self._at
            self._report(self.token.start, self.token.end, message)

    def _report(self, start: int, end: int, message: str, detected_at: int | None = None) -> None:
        self._faults.add(start, end, message, detected_at)
        if self._faults.is_full:
            self._at = len(self._tokens) - 1
            self.token = self._tokens[self._at]

    def _describe_token(self) -> str:
        if self.token.kind == "end":
            return "the end"
        return f"'{self._faults.quote(self.token.start, self.token.end)}'"

    def _describe_expected(self) -> str:
        if self._at == 0:
            return "a block"
        last = self._tokens[self._at - 1]
        is_call = last.kind == "(" and self._at > 1 and self._tokens[self._at - 2].kind == "name"
        what = "a value" if is_call or last.kind in ("=", ",") else "a block"
        return f"{what} after '{self._faults.quote(last.start, last.end)}'"
