"""The syntax tree of a recipe's text with spans, before anything is checked for sense."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NumberSyntax:
    """A whole or real number, its sign included."""

    value: int | float
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class HoleSyntax:
    """`{name}`."""

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
        """The position after the name, or the begin of the argument if it has no name."""
        return self.start + len(self.name or "")


@dataclass(frozen=True, slots=True)
class CallSyntax:
    """`name(arguments)`, or a bare name, which has `arguments` None: a block, a form or a word."""

    name: str
    arguments: tuple[ArgumentSyntax, ...] | None
    start: int
    end: int

    @property
    def name_end(self) -> int:
        """The position after the name."""
        return self.start + len(self.name)


@dataclass(frozen=True, slots=True)
class OperationSyntax:
    """Two or more operands with one operator between all of them: ">>", "+" or "*"."""

    operator: str
    operands: tuple[Syntax, ...]
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class ErrorSyntax:
    """A place that has a fault already; only what could be read inside it is looked at further."""

    start: int
    end: int
    parts: tuple[Syntax, ...] = ()


Syntax = NumberSyntax | HoleSyntax | CallSyntax | OperationSyntax | ErrorSyntax
