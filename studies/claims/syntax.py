"""What the parser reads: the sentence with all of its spans, names not yet looked up."""

from __future__ import annotations

from dataclasses import dataclass

from .tokens import Token


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """A name where it stands."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelText:
    """A level as it is written: at least one token."""

    start: int
    end: int
    text: str
    tokens: tuple[Token, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Set:
    """Levels to go through: all of a factor's, or those listed, less some; exactly one of the first two."""

    start: int
    end: int
    factor: Word | None = None
    levels: tuple[LevelText, ...] = ()
    less: tuple[LevelText, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """`for variable in set`."""

    variable: Word
    over: Set


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """What could not be read and has its fault already."""

    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """A number."""

    start: int
    end: int
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Name:
    """A metric with what selects its cell, or a variable, which has no brackets."""

    start: int
    end: int
    word: Word
    index: tuple[str, ...] = ()
    selectors: tuple[tuple[Word, LevelText], ...] = ()
    bare: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Addition:
    """Terms, each with its sign, 1 or −1."""

    start: int
    end: int
    terms: tuple[tuple[int, Syntax], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A function with its arguments, over every combination of what its loops go through."""

    start: int
    end: int
    function: Word
    arguments: tuple[Syntax, ...]
    loops: tuple[Loop, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """`a > b >= c`: one operand more than signs."""

    start: int
    end: int
    operands: tuple[Syntax, ...]
    signs: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Nearness:
    """`left within margin of right`."""

    start: int
    end: int
    left: Syntax
    margin: float
    right: Syntax


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """`best(…) is level`, `best(…) in set`."""

    start: int
    end: int
    winner: Syntax
    among: Set


@dataclass(frozen=True, slots=True, kw_only=True)
class Junction:
    """Statements joined by `and`, or by `or`."""

    start: int
    end: int
    word: str
    parts: tuple[Syntax, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Denial:
    """`not statement`."""

    start: int
    end: int
    part: Syntax


Syntax = Broken | Number | Name | Addition | Call | Chain | Nearness | Membership | Junction | Denial
