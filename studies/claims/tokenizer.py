"""The text of a claim cut into tokens, each with its span; what is no token becomes a fault."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

from ...diagnostics import FaultCollector, describe_character

KEYWORDS = frozenset(
    "all any and argmax argmin best except for in is max mean min not of or within worst".split()  # noqa: SIM905 -- easier to read than a list
)
"""Words with a meaning of their own; levels may be called so, variables may not."""

_PATTERN = re.compile(
    r"""
      (?P<space>  [ \t\r\n]+ )
    | (?P<number> (?: [0-9] | \.[0-9] ) (?: [eE][+-](?=[0-9]) | [\w.] )* )
    | (?P<name>   [A-Za-z_] \w* )
    | (?P<quoted> "[^"\n]*" | '[^'\n]*' )
    | (?P<sign>   >> | [<>=!]= | [-+*<>=()\[\]{},] )
    | (?P<other>  . )
    """,
    re.VERBOSE | re.DOTALL,
)


class ClaimToken(NamedTuple):
    """A piece of the text; `kind` is "number", "name", "quoted", "other", "end", or the word or sign."""

    kind: str
    text: str
    start: int
    end: int


def tokenize(text: str) -> list[ClaimToken]:
    """All tokens of the text, white space left out, an "end" token last.

    "other" is a sign that the language does not have; inside a level it may stand all the same.
    """
    tokens: list[ClaimToken] = []
    for match in _PATTERN.finditer(text):
        kind, piece = match.lastgroup or "other", match[0]
        if kind == "sign" or (kind == "name" and piece in KEYWORDS):
            kind = piece
        if kind != "space":
            tokens.append(ClaimToken(kind, piece, *match.span()))
    tokens.append(ClaimToken("end", "", len(text), len(text)))
    return tokens


def parse_number(token: ClaimToken, faults: FaultCollector) -> float | None:
    """The value of a number as Python writes it; None for what is none, which is noted."""
    try:
        value = float(token.text)
    except ValueError:
        faults.add(token.start, token.end, f"expected a number, got '{faults.quote(token.start, token.end)}'")
        return None
    if math.isinf(value):
        faults.add(token.start, token.end, "expected a finite number, got one too large")
        return None
    return value


def describe_token(token: ClaimToken, faults: FaultCollector) -> str:
    """A token as a message says what came."""
    if token.kind == "end":
        return "the end"
    if token.kind == "other":
        return describe_character(token.text)
    return f"'{faults.quote(token.start, token.end)}'"
