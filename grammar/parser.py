"""The rules of the recipe language: one method a rule, whose docstring is the rule; goes on after every fault."""

from __future__ import annotations

from collections.abc import Callable

from .faults import Faults
from .syntax import Argument, Call, Gap, Number, Operation, Syntax, Wrong
from .tokens import Token, tokenize

DEEPEST = 32
"""So many parentheses may be open at once."""

_OPERATORS = (">>", "+", "*")
_STARTS = ("number", "name", "(", "{", "-")
_NEVER_OPENED = {")": "this parenthesis was never opened", "}": "this brace was never opened"}


def read(text: str, faults: Faults) -> Syntax:
    """What the text says; whatever cannot be read is noted in `faults` and stands as Wrong."""
    return _Parser(tokenize(text, faults), faults).recipe()


class _Parser:
    def __init__(self, tokens: list[Token], faults: Faults) -> None:
        self._tokens = tokens
        self._faults = faults
        self._at = 0
        self._depth = 0
        self.token = tokens[0]

    def recipe(self) -> Syntax:
        """`recipe = series END`."""
        return self._until("end")

    def series(self) -> Syntax:
        """`series = sum { ">>" sum }`."""
        return self._operation(">>", self.sum)

    def sum(self) -> Syntax:
        """`sum = product { "+" product }`."""
        return self._operation("+", self.product)

    def product(self) -> Syntax:
        """`product = operand { "*" operand }`."""
        return self._operation("*", self.operand)

    def operand(self) -> Syntax:
        """`operand = number | hole | call | group`."""
        before = self._before()
        noted = self._skip_wrong()
        match self.token.kind:
            case "number" | "-":
                return self.number()
            case "{":
                return self.hole()
            case "name":
                return self.call()
            case "(":
                return self.group()
        if not noted:
            self._fault(f"expected a block{before}, got {self._got()}")
        return Wrong(self.token.start, self.token.end)

    def number(self) -> Syntax:
        """`number = [ "-" ] NUMBER`."""
        sign = self.token if self.token.kind == "-" else None
        if sign is not None:
            self._advance()
            if self.token.kind != "number":
                self._faults.add(sign.start, sign.end, "'-' stands only before a number")
                return (
                    self.operand() if self.token.kind in ("name", "(", "{") else Wrong(sign.start, sign.end)
                )
        token = self._advance()
        value = token.value if sign is None else -token.value
        return Number(value, token.start if sign is None else sign.start, token.end)

    def hole(self) -> Syntax:
        """`hole = "{" NAME "}"`."""
        brace = self._advance()
        if self.token.kind != "name":
            self._fault(f"expected a name after '{{', got {self._got()}")
            while self.token.kind in ("number", "wrong", "-"):
                self._advance()
            end = self._advance().end if self.token.kind == "}" else self.token.start
            return Wrong(brace.start, end)
        name = self._advance()
        if self.token.kind != "}":
            self._faults.add(brace.start, brace.start + 1, "this brace is never closed", self.token.start)
            return Wrong(brace.start, name.end)
        if name.text.startswith("_"):
            self._faults.add(name.start, name.end, "the name of a hole starts with a letter")
        return Gap(name.text, brace.start, self._advance().end)

    def call(self) -> Syntax:
        """`call = NAME [ "(" [ argument { "," argument } [ "," ] ] ")" ]`."""
        name = self._advance()
        if self.token.kind != "(":
            return Call(name.text, None, name.start, name.end)
        opened = self._open()
        if opened is None:
            return Wrong(name.start, self._end())
        arguments: list[Argument] = []
        while self.token.kind not in (")", "end"):
            arguments.append(self.argument())
            if self.token.kind == ",":
                self._advance()
            else:
                self._between_arguments()
        self._close(opened)
        return Call(name.text, tuple(arguments), name.start, self._end())

    def argument(self) -> Argument:
        """`argument = [ NAME "=" ] series`."""
        start = self.token.start
        name: str | None = None
        if self.token.kind == "name" and self._tokens[self._at + 1].kind == "=":
            name = self._advance().text
            self._advance()
        value = self.series()
        return Argument(name, value, start, max(self._end(), start))

    def group(self) -> Syntax:
        """`group = "(" series ")"`."""
        opened = self._open()
        if opened is None:
            return Wrong(self._end(), self._end())
        inside = self._until(")")
        self._close(opened)
        return inside

    def _operation(self, operator: str, operand: Callable[[], Syntax]) -> Syntax:
        start = self.token.start
        operands = [operand()]
        while self.token.kind == operator:
            self._advance()
            operands.append(operand())
        if len(operands) == 1:
            return operands[0]
        return Operation(operator, tuple(operands), start, self._end())

    def _until(self, close: str) -> Syntax:
        """A series that ends at `close`; what stands between two expressions is noted and passed over."""
        start = self.token.start
        parts = [self.series()]
        while self.token.kind not in (close, "end"):
            self._between_expressions()
            if self.token.kind not in (close, "end"):
                parts.append(self.series())
        return parts[0] if len(parts) == 1 else Operation(">>", tuple(parts), start, self._end())

    def _between_expressions(self) -> None:
        kind = self.token.kind
        if kind in _STARTS:
            repeat = kind == "(" and self._tokens[self._at - 1].kind == "number"
            self._fault(f"expected {'*' if repeat else 'an operator'} before {self._got()}")
            return
        if kind != "wrong":
            only = {
                ",": "a comma stands only between arguments",
                "=": "'=' stands only after a parameter's name",
            }
            self._fault(_NEVER_OPENED.get(kind) or only[kind])
        self._advance()
        self._skip_wrong()
        if self.token.kind in _OPERATORS:
            self._advance()

    def _between_arguments(self) -> None:
        """Note what stands where a comma should; afterwards an argument or the end can be read."""
        kind = self.token.kind
        if kind in (")", "end"):
            return
        if kind in _STARTS:
            self._fault(f"expected a comma before {self._got()}")
            return
        if kind != "wrong":
            self._fault(_NEVER_OPENED.get(kind) or f"unexpected {self._got()}")
        self._advance()
        if self.token.kind in (*_OPERATORS, ","):
            self._advance()

    def _open(self) -> Token | None:
        """Step over "("; one that is too deep is passed over with all that it holds, and gives None."""
        opened = self._advance()
        if self._depth < DEEPEST:
            self._depth += 1
            return opened
        self._faults.add(
            opened.start, opened.end, f"expected at most {DEEPEST} parentheses in each other, got more"
        )
        inside = 1
        while inside and self.token.kind != "end":
            inside += {"(": 1, ")": -1}.get(self._advance().kind, 0)
        return None

    def _close(self, opened: Token) -> None:
        self._depth -= 1
        if self.token.kind == ")":
            self._advance()
        else:
            found = self.token.start
            self._faults.add(opened.start, opened.end, "this parenthesis is never closed", found)

    def _skip_wrong(self) -> bool:
        """Step over what has a fault already; whether there was any."""
        start = self._at
        while self.token.kind == "wrong":
            self._advance()
        return self._at > start

    def _advance(self) -> Token:
        token = self.token
        if token.kind != "end":
            self._at += 1
            self.token = self._tokens[self._at]
        return token

    def _end(self) -> int:
        """Where the last token that was read ends."""
        return self._tokens[self._at - 1].end if self._at else 0

    def _fault(self, message: str) -> None:
        self._faults.add(self.token.start, self.token.end, message)

    def _got(self) -> str:
        if self.token.kind == "end":
            return "the end"
        return f"'{self._faults.quote(self.token.start, self.token.end)}'"

    def _before(self) -> str:
        """Where an operand is missing, as a message says it."""
        if self._at == 0:
            return ""
        last = self._tokens[self._at - 1]
        return f" after '{self._faults.quote(last.start, last.end)}'" if last.kind != "name" else ""
