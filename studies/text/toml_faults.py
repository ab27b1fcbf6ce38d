"""Faults of a text that is not TOML, shown where a person would correct them."""

from __future__ import annotations

import re

from .errors import StudyFault, fault_at
from .toml_positions import STRING, Span
from .units import truncate

MAX_QUOTED = 60
"""The most characters of an unquoted value that a message repeats."""

_REPORTED = re.compile(
    r"(?P<what>.*) \(at (?:line (?P<line>\d+), column (?P<column>\d+)|end of document)\)", re.DOTALL
)

_UNCLOSED_QUOTE = re.compile(r"""^[^"'#\n]*=\s*("(?!"")[^"\n]*|'(?!'')[^'\n]*)$""", re.MULTILINE)

_TYPOGRAPHIC_QUOTES = "“”„‟‘’‚‛«»"

_INVALID = "Invalid value"

_BEHIND_A_VALUE = "Expected newline or end of document after a statement"

_TWICE = ("Cannot overwrite a value", "Cannot declare")

_BEFORE_UNQUOTED = re.compile(r"[^=\n]*=[ \t]*(?=[^\s\"'\[{])")

_BRACKET = re.compile(rf"{STRING.pattern}|#[^\n]*|(?P<bracket>[\[\]])", re.DOTALL)

_STATEMENT = re.compile(
    r"""^[ \t]*(?:(?P<header>\[\[?[^\[\]\n]+\]\]?)|(?P<key>(?:[\w.-]|"[^"\n]*"|'[^'\n]*')+)[ \t]*=)""",
    re.MULTILINE,
)

_ITEM = re.compile(r"""["'\[{+\d-]|true\b|false\b""")

_DECIMAL_COMMA = re.compile(
    r"=[ \t]*(?P<number>[+-]?(?:0|[1-9]\d*),\d+(?:[eE][+-]?\d+)?)[ \t]*"
    r"(?=[}#\n]|$|,(?![ \t]*[+-]?\d))"  # not in 1,2,3
)

# a number of TOML has no leading zero
_DECIMAL_COMMA_IN_LIST = re.compile(r"(?<=[\[,\s])(?P<number>[+-]?(?:0|[1-9]\d*),0\d+(?:[eE][+-]?\d+)?)")


def syntax_fault(text: str, error: str) -> StudyFault:
    """Return the fault of a text for the message of tomllib's error."""
    # before Python 3.14, tomllib states a position only in the text of its message
    match = _REPORTED.fullmatch(error)
    what = match["what"] if match else error
    if unclosed := _UNCLOSED_QUOTE.search(text):
        message = f"this text has no closing quote{_quotes_hint(unclosed[1])}"
        return fault_at(text, unclosed.span(1), f"TOML: {message}")
    if match is None or match["line"] is None:
        first = start = len(text.rstrip())
    else:
        first = sum(len(line) + 1 for line in text.split("\n")[: int(match["line"]) - 1])
        start = first + int(match["column"]) - 1
    span, message = _meant(text, first, start, what) or _as_reported(text, first, start, what)
    return fault_at(text, span, f"TOML: {message}")


def _meant(text: str, first: int, start: int, what: str) -> tuple[Span, str] | None:
    """Return the span and the message of a frequent mistake; `first` is the start of the faulty line."""
    if what in ("Unclosed array", _INVALID):
        opened = _open_brackets(text[:first])
        at_next = start == len(text.rstrip()) or _STATEMENT.match(text, first)
        if opened and at_next and _open_brackets(text):
            return (opened[-1], opened[-1] + 1), "this list has no closing bracket"
        if what != _INVALID:
            if decimal := _decimal_comma(text, first, start, _DECIMAL_COMMA_IN_LIST):
                return decimal
            if _ITEM.match(text, start):
                return (start, _item_end(text, start)), "a comma is missing before this value"
            return (start, start + 1), "expected a comma or a closing bracket"
    if what.startswith(_TWICE):
        return _twice(text, first)
    return _decimal_comma(text, first, start, _DECIMAL_COMMA)


def _decimal_comma(text: str, first: int, start: int, pattern: re.Pattern[str]) -> tuple[Span, str] | None:
    """Return the span and the message of a number with a decimal comma around `start`."""
    for comma in pattern.finditer(text, first, _line_end(text, first)):
        if comma.start("number") < start <= comma.end():
            got = comma["number"]
            # 1,000 can be a thousand
            thousand = f" or {got.replace(',', '')}" if re.fullmatch(r"[+-]?[1-9]\d*,\d{3}", got) else ""
            write = f"{got.replace(',', '.')}{thousand}"
            return comma.span("number"), f"expected a number, got {got}; write {write}"
    return None


def _as_reported(text: str, first: int, start: int, what: str) -> tuple[Span, str]:
    span, ends = (start, start + 1), ",]}#"
    if text[start : start + 1] == "\n" and what != _INVALID:  # the fault is in the line that ends here
        span = (first, start)
    elif what == _BEHIND_A_VALUE and (before := _BEFORE_UNQUOTED.match(text, first)):
        span, ends, what = (before.end(), start), "#", _INVALID
    if what == _INVALID:
        end = _value_end(text, span[0], ends)
        got = text[span[0] : end]
        forms = 'a number, true or false, a list in brackets, or a text in "quotes"'
        write = f"; write {got.lower()}" if got in ("True", "False") else _quotes_hint(got)
        shown = truncate(got, MAX_QUOTED) or "nothing"
        span, what = (span[0], max(end, span[1])), f"expected {forms}, got {shown}{write}"
    return span, what


def _open_brackets(text: str) -> list[int]:
    """Return the positions of the brackets that are still open where the text ends."""
    opened: list[int] = []
    for match in _BRACKET.finditer(text):
        if match["bracket"] == "[":
            opened.append(match.start())
        elif match["bracket"] and opened:
            opened.pop()
    return opened


def _twice(text: str, first: int) -> tuple[Span, str] | None:
    """Return the span and the message of a key or table that is written twice, with its first line."""
    statements = list(_STATEMENT.finditer(text, 0, _line_end(text, first)))
    if not statements:
        return None
    statement = statements[-1]  # its value can have several lines
    before, header, key = text[: statement.start()], statement["header"], statement["key"]
    if header:
        span, name = statement.span("header"), re.escape(header.strip("[] \t"))
        found = list(re.finditer(rf"^[ \t]*(\[\[?[ \t]*{name}[ \t]*\]\]?)", before, re.MULTILINE))
    else:
        span, before_table = statement.span("key"), max(before.rfind("\n["), 0)
        pattern = re.compile(rf"^[ \t]*({re.escape(key)})[ \t]*=", re.MULTILINE)
        found = list(pattern.finditer(before, before_table))
    if found:
        line, written = text.count("\n", 0, found[-1].start(1)) + 1, found[-1][1]
        differs = f", as {written}" if header and written != header else ""
        return span, f"{header or key} is already in line {line}{differs}"
    if header and statement.start() == first:
        return span, f"{header} already has a value, or is a table that other lines define"
    return None


def _quotes_hint(value: str) -> str:
    """Return a hint if a value begins or ends with typographic quotes."""
    found = [quote for quote in dict.fromkeys(value[:1] + value[-1:]) if quote in _TYPOGRAPHIC_QUOTES]
    mark = "'" if value.startswith("'") else '"'
    return f"; write {mark} in place of {' and '.join(found)}" if found else ""


def _line_end(text: str, start: int) -> int:
    end = text.find("\n", start)
    return len(text) if end < 0 else end


def _item_end(text: str, start: int) -> int:
    quoted = STRING.match(text, start)
    return quoted.end() if quoted else max(_value_end(text, start, " ,]}#"), start + 1)


def _value_end(text: str, start: int, ends: str) -> int:
    """Return where an unquoted value ends. It ends before the first character in `ends` outside brackets."""
    line = text[start : _line_end(text, start)]
    depth = 0
    for position, character in enumerate(line):
        if depth <= 0 and character in ends:
            return start + len(line[:position].rstrip())
        depth += (character in "([{") - (character in ")]}")
    return start + len(line.rstrip())
