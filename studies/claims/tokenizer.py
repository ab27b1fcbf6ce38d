"""The text of a claim cut into tokens, each with its span."""

from __future__ import annotations

import math

from ...diagnostics import FaultCollector, describe_character
from ...tokenizer import Token, Tokenizer

KEYWORDS = frozenset(
    "all any and argmax argmin best except for in is law max mean min not of or within worst".split()  # noqa: SIM905 -- easier to read than a list
)
"""Reserved words: names of levels may be among them, names of variables may not."""

_cut = Tokenizer(
    {
        "space": r"[ \t\r\n]+",
        "number": r"(?:[0-9]|\.[0-9])(?:[eE][+-](?=[0-9])|[\w.])*",
        "name": r"[A-Za-z_]\w*",
        "quoted": r""" "[^"\n]*"|'[^'\n]*' """.strip(),
        "sign": r">>|[<>=!]=|[-+*/<>=()\[\]{},]",
        "other": r".",
    }
)


def tokenize(text: str) -> list[Token]:
    """Return all tokens of the text, of the kinds "number", "name", "quoted", "other", "end".

    A word or sign of the language is its own kind. "other" is a character outside the language, which may
    appear only inside a level.
    """
    return [
        token._replace(kind=token.text)
        if token.kind == "sign" or (token.kind == "name" and token.text in KEYWORDS)
        else token
        for token in _cut(text)
    ]


def parse_number(token: Token, faults: FaultCollector) -> float | None:
    """Return the value of a number in Python's notation; report a fault and return None for another text."""
    try:
        value = float(token.text)
    except ValueError:
        faults.add(token.start, token.end, f"expected a number, got '{faults.quote(token.start, token.end)}'")
        return None
    if math.isinf(value):
        faults.add(token.start, token.end, "expected a finite number, got one too large")
        return None
    return value


def describe_token(token: Token, faults: FaultCollector) -> str:
    """Return a token as messages quote it."""
    if token.kind == "end":
        return "the end"
    if token.kind == "other":
        return describe_character(token.text)
    return f"'{faults.quote(token.start, token.end)}'"
