"""The fault of a text that is not TOML, with what was probably meant."""

from __future__ import annotations

import re

from .errors import StudyFault, fault_at
from .toml_positions import Span
from .units import truncate

MAX_QUOTED = 60
"""The most characters of an unquoted value that a message repeats."""

_REPORTED = re.compile(
    r"(?P<what>.*) \(at (?:line (?P<line>\d+), column (?P<column>\d+)|end of document)\)", re.DOTALL
)

_UNCLOSED_QUOTE = re.compile(r"^[^\"'#\n]*=\s*('(?!'')[^'\n]*)$", re.MULTILINE)

_UNCLOSED = "this text has no closing quote"

_BEHIND_A_VALUE = "Expected newline or end of document after a statement"

_HINTS = [
    (r"true|yes|on", "expected true or false, got {got}: write true"),
    (r"false|no|off", "expected true or false, got {got}: write false"),
    (r"none|null|nil", "expected a value, got {got}: remove the key if there is none"),
    (r"[\d.,_' +-]+(e[+-]?[\d.]*)?", "expected a number, got {got}: write it as 10000, 0.5 or 1e-3"),
    (r"\(.*", "expected a value, got {got}: write a list in brackets, such as [2, 4]"),
    ("[“”„‘’«].*", 'expected a value, got {got}: write a text in straight quotes, such as "name"'),
    (r".*[\"'].*", "expected one value, got {got}"),
    (r".+", 'expected a value, got {got}: a text needs quotes, "{got}"'),
]
"""For a value without quotes, in small letters, the message that says how to write it; the first counts."""


def syntax_fault(text: str, error: str) -> StudyFault:
    """Return the one fault that tomllib reports, at its position."""
    match = _REPORTED.fullmatch(error)
    what = match["what"] if match else error
    if unclosed := _UNCLOSED_QUOTE.search(text):
        return fault_at(text, unclosed.span(1), f"TOML: {_UNCLOSED}")
    if match is None or match["line"] is None:
        return fault_at(text, (len(text.rstrip()), len(text.rstrip()) + 1), f"TOML: {what}")
    first = sum(len(line) + 1 for line in text.split("\n")[: int(match["line"]) - 1])
    start = first + int(match["column"]) - 1
    span, message = _explain(text, first, start, what)
    return fault_at(text, span, f"TOML: {message}")


def _explain(text: str, first: int, start: int, what: str) -> tuple[Span, str]:
    """Return the span and the message of a fault that tomllib finds at `start` in the line from `first`."""
    span, message, found = (start, start + 1), what, text[start : start + 1]
    if what == "Cannot overwrite a value":  # noticed at the end of the line
        span, message = (first, start), "this key was set before"
    elif what == "Invalid value":
        end = _value_end(text, start)
        span, message = (start, max(end, start + 1)), _expected_value(text[start:end])
    elif what == "Illegal character '\\n'":
        span, message = (max(text.rfind('"', first, start), first), start), _UNCLOSED
    elif found == "\n" and what in {"Unclosed inline table", "Invalid initial character for a key part"}:
        message = "a table in braces must end on its line: expected }"
    elif found.strip() and what == "Unclosed array":
        message = "expected a comma between two values of a list, or ] at its end"
    elif twice := re.fullmatch(r"Cannot declare \((.*?),?\) twice", what):
        names = ".".join(re.findall(r"'([^']*)'", twice[1]))
        span, message = (first, start + 1), f"the table [{names}] occurs twice: keep one of the two"
    elif what == _BEHIND_A_VALUE:
        value = re.compile(r"[^=\n]*=\s*").match(text, first)
        quote = "" if value is None else text[value.end() : value.end() + 1]
        if value is not None and quote and text[start - 1] == quote and quote in "\"'":
            other = "'" if quote == '"' else '"'
            message = f"the text ends at {quote}: enclose a text that has {quote} within by {other}"
        elif value is not None and value.end() < start and quote not in "\"'[{":
            span = (value.end(), _value_end(text, value.end(), ends="#"))
            message = _expected_value(text[slice(*span)])
    return span, message


def _value_end(text: str, start: int, ends: str = ",]}#") -> int:
    """Return where an unquoted value ends: before one of these characters outside parentheses."""
    line = text[start:].split("\n", 1)[0]
    depth = 0
    for position, character in enumerate(line):
        if depth <= 0 and character in ends:
            return start + len(line[:position].rstrip())
        depth += (character in "([{") - (character in ")]}")
    return start + len(line.rstrip())


def _expected_value(got: str) -> str:
    """Return what was expected in place of a value without quotes, and how to write what was meant."""
    for pattern, message in _HINTS:
        if re.fullmatch(pattern, got.lower()):
            return message.format(got=truncate(got, MAX_QUOTED))
    return "expected a value, got nothing"
