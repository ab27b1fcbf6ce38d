"""The concrete syntax tree: a claim with all of its spans, names not yet looked up."""

from __future__ import annotations

from dataclasses import dataclass

from ...tokenizer import Token


@dataclass(frozen=True, slots=True, kw_only=True)
class Identifier:
    """A name where it stands."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelLiteral:
    """A level as written: at least one token."""

    start: int
    end: int
    text: str
    tokens: tuple[Token, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelSet:
    """All levels of a factor, or the listed ones (exactly one of the two is given).

    The excepted ones are left out.
    """

    start: int
    end: int
    factor: Identifier | None = None
    levels: tuple[LevelLiteral, ...] = ()
    excluded: tuple[LevelLiteral, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ForClause:
    """`for variable in set`."""

    variable: Identifier
    iterates: LevelSet


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntaxErrorNode:
    """A part that could not be read, whose fault is noted already."""

    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberLiteral:
    """A number."""

    start: int
    end: int
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricReference:
    """A metric with the selectors of its cell, or a variable, which has no brackets."""

    start: int
    end: int
    word: Identifier
    index: tuple[str, ...] = ()
    selectors: tuple[tuple[Identifier, LevelLiteral], ...] = ()
    bare: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class SumExpression:
    """Terms, each with its sign, 1 or −1."""

    start: int
    end: int
    terms: tuple[tuple[int, SyntaxNode], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotientExpression:
    """`numerator / denominator`."""

    start: int
    end: int
    numerator: SyntaxNode
    denominator: SyntaxNode


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionCall:
    """A function with its arguments, over every combination of its loops' levels."""

    start: int
    end: int
    function: Identifier
    arguments: tuple[SyntaxNode, ...]
    loops: tuple[ForClause, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonChain:
    """`a > b >= c`, with one more operand than signs."""

    start: int
    end: int
    operands: tuple[SyntaxNode, ...]
    signs: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WithinExpression:
    """`left within margin of right`."""

    start: int
    end: int
    left: SyntaxNode
    margin: float
    right: SyntaxNode


@dataclass(frozen=True, slots=True, kw_only=True)
class MembershipTest:
    """`best(…) is level`, `best(…) in set`."""

    start: int
    end: int
    ranking: SyntaxNode
    candidates: LevelSet


@dataclass(frozen=True, slots=True, kw_only=True)
class BooleanOperation:
    """Statements joined by `and`, or by `or`."""

    start: int
    end: int
    operator: str
    parts: tuple[SyntaxNode, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Negation:
    """`not statement`."""

    start: int
    end: int
    part: SyntaxNode


SyntaxNode = (
    SyntaxErrorNode
    | NumberLiteral
    | MetricReference
    | SumExpression
    | QuotientExpression
    | FunctionCall
    | ComparisonChain
    | WithinExpression
    | MembershipTest
    | BooleanOperation
    | Negation
)
