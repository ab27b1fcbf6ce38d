"""The text of a recipe cut into tokens, each with its span; what is no token becomes a fault.

Names and numbers are ASCII. A token with a fault has the kind "wrong", and the parser says nothing more about
it.
"""

from __future__ import annotations

import math
import re

from ...diagnostics import FaultCollector, describe_character
from ...tokenizer import Token, Tokenizer

MAX_DIGITS = 18
"""Longer numbers are refused; every whole number up to this length fits 64 bits."""

_cut = Tokenizer(
    {
        "space": r"[ \t\r\n]+",
        "number": r"(?:\d|\.\d)(?:[eE][+-](?=\d)|[\w.])*",
        "name": r"[A-Za-z_]\w*",
        "quoted": r""" "[^"]*"|'[^']*' """.strip(),
        "sign": r">>?|\*\*|[-+*(){},=]",
        "wrong": r"""[^\w\s"'>+*(){},=-]+|.""",
    },
    re.ASCII,
)
_INTEGER = re.compile(r"0|[1-9](?:_?[0-9])*", re.ASCII)
_REAL = re.compile(r"(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][+-]?[0-9]+)?", re.ASCII)
_VALUE_END_KINDS = ("number", "name", ")", "}")


def tokenize(text: str, faults: FaultCollector) -> list[Token]:
    """Return all tokens of the text; a kind is "number", "name", "wrong", "end", or the sign itself."""
    tokens: list[Token] = []
    for cut in _cut(text):
        match cut.kind:
            case "sign":
                tokens.append(_sign(cut.text, cut.start, tokens, faults))
            case "number":
                tokens.append(_number(cut.text, cut.start, faults))
            case "quoted":
                tokens.append(_quoted(cut.text, cut.start, faults))
            case _:
                tokens.append(cut)
        if cut.kind == "wrong":
            faults.add(cut.start, cut.end, f"unexpected character {describe_character(cut.text[0])}")
    return tokens


def _sign(text: str, start: int, before: list[Token], faults: FaultCollector) -> Token:
    """Return an operator or bracket; `>` is read as `>>`, and a minus between two values is wrong."""
    end = start + len(text)
    if text == ">":
        faults.add(start, end, "expected '>>', got '>'")
        return Token(">>", text, start, end)
    after_value = bool(before) and before[-1].kind in _VALUE_END_KINDS
    if text == "**" or (text == "-" and after_value):
        faults.add(start, end, f"unexpected '{text}': nothing is calculated in a recipe")
        return Token("wrong", text, start, end)
    return Token(text, text, start, end)


def _number(text: str, start: int, faults: FaultCollector) -> Token:
    """Return a number in Python's notation: no underscores in a real number, no bases but ten."""
    end = start + len(text)
    if len(text) > MAX_DIGITS + 6:  # room for a point and an exponent
        faults.add(start, end, f"expected a number of at most {MAX_DIGITS} digits, got {_count_digits(text)}")
    elif _INTEGER.fullmatch(text):
        if len(text.replace("_", "")) <= MAX_DIGITS:
            return Token("number", text, start, end, int(text))
        faults.add(start, end, f"expected a number of at most {MAX_DIGITS} digits, got {_count_digits(text)}")
    elif not _REAL.fullmatch(text):
        faults.add(start, end, f"expected a number, got '{text}'")
    elif math.isinf(float(text)):
        faults.add(start, end, f"expected a finite number, got {text}")
    else:
        return Token("number", text, start, end, float(text))
    return Token("wrong", text, start, end)


def _count_digits(text: str) -> int:
    return sum(character.isdigit() for character in text)


def _quoted(text: str, start: int, faults: FaultCollector) -> Token:
    """Return a word in quotes as the plain word, so that what follows can still be read."""
    end = start + len(text)
    word = text[1:-1]
    if word.isascii() and word.isidentifier():
        faults.add(start, end, f"words are written without quotes: {faults.quote(start + 1, end - 1)}")
        return Token("name", word, start, end)
    faults.add(start, end, "there are no quoted texts in a recipe")
    return Token("wrong", text, start, end)
