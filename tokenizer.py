"""A rule-based tokenizer and a reader of its tokens, for the languages of recipes and claims."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple


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
    """A reader of tokens; `token` is the next unread token."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens
        self._at = 0
        self.token = tokens[0]

    def _advance(self) -> Token:
        """Return the next token and move to the one after it; stay at the token "end"."""
        token = self.token
        if token.kind != "end":
            self._at += 1
            self.token = self._tokens[self._at]
        return token

    def _end(self) -> int:
        """Return the position at which the last read token ends."""
        return self._tokens[self._at - 1].end if self._at else 0
