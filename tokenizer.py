"""A tokenizer by rules, and a reader of its tokens, for the languages of recipes and claims."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple


class Token(NamedTuple):
    """A piece of the text; the last token has the kind "end" and no text."""

    kind: str
    text: str
    start: int
    end: int
    value: int | float = 0  # of a number


class Tokenizer:
    """A tokenizer by rules: kinds of token with their patterns, of which the first that matches wins.

    Every text must fit: the last rule takes any character. What fits the rule "space" is left out.
    """

    def __init__(self, rules: Mapping[str, str], flags: re.RegexFlag = re.NOFLAG) -> None:
        pattern = "|".join(f"(?P<{kind}>{rule})" for kind, rule in rules.items())
        self._pattern = re.compile(pattern, re.DOTALL | flags)

    def __call__(self, text: str) -> Iterator[Token]:
        """Yield the tokens of a text in order, and the end."""
        for match in self._pattern.finditer(text):
            kind = match.lastgroup
            assert kind is not None, f"no rule fits at {match.start()}"
            if kind != "space":
                yield Token(kind, match[0], *match.span())
        yield Token("end", "", len(text), len(text))


class TokenReader:
    """A reader of tokens; `token` is the next unread one."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens
        self._at = 0
        self.token = tokens[0]

    def _advance(self) -> Token:
        """Return the next token and move past it; the end is never passed."""
        token = self.token
        if token.kind != "end":
            self._at += 1
            self.token = self._tokens[self._at]
        return token

    def _end(self) -> int:
        """Return the end of the last read token."""
        return self._tokens[self._at - 1].end if self._at else 0
