"""The concrete syntax tree of a claim, with all spans; names are not looked up yet."""

from __future__ import annotations

from dataclasses import dataclass

from ...tokenizer import Token


@dataclass(frozen=True, slots=True, kw_only=True)
class Spanned:
    """A part of a claim's text."""

    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Identifier(Spanned):
    """A name with its position."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelLiteral(Spanned):
    """A level as written: at least one token."""

    text: str
    tokens: tuple[Token, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelSet(Spanned):
    """A set of levels: every level of `factor`, or the listed `levels`, without the `excluded` ones.

    Exactly one of `factor` and `levels` is given.
    """

    factor: Identifier | None = None
    levels: tuple[LevelLiteral, ...] = ()
    excluded: tuple[LevelLiteral, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ForClause:
    """`for variable in set`."""

    variable: Identifier
    iterates: LevelSet


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntaxErrorNode(Spanned):
    """A part that could not be read; its fault is already recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberLiteral(Spanned):
    """A number."""

    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricReference(Spanned):
    """A metric with the selectors of its cell, or a variable (without brackets)."""

    word: Identifier
    index: tuple[str, ...] = ()
    selectors: tuple[tuple[Identifier, LevelLiteral], ...] = ()
    bare: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class SumExpression(Spanned):
    """Terms, each with its sign, 1 or −1."""

    terms: tuple[tuple[int, SyntaxNode], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotientExpression(Spanned):
    """`numerator / denominator`."""

    numerator: SyntaxNode
    denominator: SyntaxNode


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedupExpression(Spanned):
    """`speedup(fast over slow, target)`: two levels of the one factor that the target leaves open."""

    fast: LevelLiteral
    slow: LevelLiteral
    target: MetricReference


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionCall(Spanned):
    """A function with its arguments, over every combination of its loops' levels."""

    function: Identifier
    arguments: tuple[SyntaxNode, ...]
    loops: tuple[ForClause, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonChain(Spanned):
    """`a > b >= c`, with one more operand than signs."""

    operands: tuple[SyntaxNode, ...]
    signs: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WithinExpression(Spanned):
    """`left within margin of right`."""

    left: SyntaxNode
    margin: float
    right: SyntaxNode


@dataclass(frozen=True, slots=True, kw_only=True)
class MembershipTest(Spanned):
    """`best(…) is level`, `best(…) in set`."""

    ranking: SyntaxNode
    candidates: LevelSet


@dataclass(frozen=True, slots=True, kw_only=True)
class BooleanOperation(Spanned):
    """Statements joined by `and`, or by `or`."""

    operator: str
    parts: tuple[SyntaxNode, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Negation(Spanned):
    """`not statement`."""

    part: SyntaxNode


SyntaxNode = (
    SyntaxErrorNode
    | NumberLiteral
    | MetricReference
    | SumExpression
    | QuotientExpression
    | SpeedupExpression
    | FunctionCall
    | ComparisonChain
    | WithinExpression
    | MembershipTest
    | BooleanOperation
    | Negation
)
