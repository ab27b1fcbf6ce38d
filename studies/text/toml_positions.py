"""Positions of keys and values in a TOML text.

The module tomllib does not report them. Other functions here write TOML tables.

The text must be valid for `tomllib.loads`, with single line feeds as line ends.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from textwrap import wrap
from typing import Any

KeyPath = tuple[str | int, ...]
"""Keys and indices from the top of the text to a value."""

Span = tuple[int, int]
"""Start and end as offsets into the text; the end is exclusive."""

_BLANK = re.compile(r"[ \t]*")
_GAP = re.compile(r"(?:[ \t\n]|#[^\n]*)*")
_KEY = re.compile(r"""[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|'[^']*'""")
# TOML allows up to two quotes directly before the closing three of a multi-line string
STRING = re.compile(
    r'''"""(?:\\.|[^\\])*?"""(?:"{0,2})|\'\'\'.*?\'\'\'(?:'{0,2})|"(?:[^"\\]|\\.)*"|'[^']*\'''', re.DOTALL
)
_SCALAR = re.compile(r"[^,\]}#\n]*[^,\]}#\n \t]")  # a date may have a space inside


@dataclass(frozen=True, slots=True)
class KeyValueSpan:
    """The positions of a key and its value; an item of an array has its own position for both."""

    key: Span
    value: Span


def locate(text: str) -> dict[KeyPath, KeyValueSpan]:
    """Return the positions of all keys and values in a TOML text, by path.

    A table that is opened several times, or only implied by a longer name, has the first position at which it
    is named.
    """
    scanner = _Scanner(text)
    scanner.document()
    return scanner.places


@dataclass(slots=True)
class _Scanner:
    """Scanner of a TOML text, with one method for each rule of the grammar.

    `lengths` has the number of tables in each array of tables.
    """

    text: str
    offset: int = 0
    table: KeyPath = ()
    places: dict[KeyPath, KeyValueSpan] = field(default_factory=dict)
    lengths: dict[KeyPath, int] = field(default_factory=dict)

    def document(self) -> None:
        """Scan `document = { header | pair }`."""
        self.skip(_GAP)
        while self.offset < len(self.text):
            if self.text[self.offset] == "[":
                self.header()
            else:
                self.pair(self.table)
            self.skip(_GAP)

    def header(self) -> None:
        """Scan `header = "[" keys "]" | "[[" keys "]]"`."""
        start = self.offset
        many = self.text.startswith("[[", start)
        self.offset += 1 + many
        keys = self.keys()
        self.offset += 1 + many
        span = (start, self.offset)
        *outer, (name, key) = keys
        path = (*self.descend((), outer), name)
        self.places.setdefault(path, KeyValueSpan(key, span))
        if many:
            self.lengths[path] = self.lengths.get(path, 0) + 1
            path = (*path, self.lengths[path] - 1)
            self.places.setdefault(path, KeyValueSpan(key, span))
        elif path in self.lengths:
            path = (*path, self.lengths[path] - 1)
        self.table = path

    def pair(self, table: KeyPath) -> None:
        """Scan `pair = keys "=" value`."""
        *outer, (name, key) = self.keys()
        path = (*self.descend(table, outer), name)
        self.offset += 1
        self.skip(_BLANK)
        self.value(path, key)

    def keys(self) -> list[tuple[str, Span]]:
        """Scan `keys = key { "." key }`; return each key with its span."""
        keys: list[tuple[str, Span]] = []
        while True:
            self.skip(_BLANK)
            start = self.offset
            raw = self.skip(_KEY)
            name = tomllib.loads(f"key = {raw}")["key"] if raw[0] in "\"'" else raw
            keys.append((name, (start, self.offset)))
            self.skip(_BLANK)
            if not self.text.startswith(".", self.offset):
                return keys
            self.offset += 1

    def descend(self, path: KeyPath, keys: list[tuple[str, Span]]) -> KeyPath:
        """Return the path of dotted keys below `path`.

        Record the position of each key. In an array of tables they belong to the last table.
        """
        for name, span in keys:
            path = (*path, name)
            self.places.setdefault(path, KeyValueSpan(span, span))
            if path in self.lengths:
                path = (*path, self.lengths[path] - 1)
        return path

    def value(self, path: KeyPath, key: Span | None = None) -> None:
        """Scan `value = array | inline_table | string | scalar`."""
        start = self.offset
        opening = self.text[start]
        # recorded before the values inside, so that paths are in the order of the text; completed below
        self.places.setdefault(path, KeyValueSpan((start, start), (start, start)))
        if opening == "[":
            self.array(path)
        elif opening == "{":
            self.inline_table(path)
        else:
            self.skip(STRING if opening in "\"'" else _SCALAR)
        span = (start, self.offset)
        self.places[path] = KeyValueSpan(key or span, span)

    def array(self, path: KeyPath) -> None:
        """Scan `array = "[" [ value { "," value } [ "," ] ] "]"`."""
        index = 0
        while self.next_item("]"):
            self.value((*path, index))
            index += 1

    def inline_table(self, path: KeyPath) -> None:
        """Scan `inline_table = "{" [ pair { "," pair } ] "}"`."""
        while self.next_item("}"):
            self.pair(path)

    def next_item(self, closing: str) -> bool:
        """Consume a comma or the closing bracket, and return whether another item follows."""
        self.skip(_GAP)
        if self.text[self.offset] != closing:
            self.offset += 1
            self.skip(_GAP)
        if self.text[self.offset] != closing:
            return True
        self.offset += 1
        return False

    def skip(self, pattern: re.Pattern[str]) -> str:
        """Consume the match of a pattern at the current position, and return its text."""
        match = pattern.match(self.text, self.offset)
        assert match is not None, f"no {pattern.pattern} at {self.offset}"
        self.offset = match.end()
        return match.group()


_BARE = re.compile(r"[A-Za-z0-9_-]+")
_WIDTH = 100


def toml_comment(text: str) -> str:
    """Return a sentence as the lines of a TOML comment."""
    return "\n".join(wrap(text, _WIDTH, initial_indent="# ", subsequent_indent="# "))


def toml_table(head: str, keys: Mapping[str, Any]) -> str:
    """Return a TOML table: its header, then its keys."""
    return "\n".join([head, *(f"{toml_key(key)} = {toml_value(value)}" for key, value in keys.items()), ""])


def toml_key(key: str) -> str:
    """Return a key as TOML code, in quotes if necessary."""
    return key if _BARE.fullmatch(key) else _text(key)


def toml_value(value: Any) -> str:  # noqa: ANN401 -- TOML holds anything
    """Return a value as TOML code on one line."""
    if isinstance(value, Mapping):
        inner = ", ".join(f"{toml_key(key)} = {toml_value(each)}" for key, each in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_value, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value) if isinstance(value, int | float) else _text(str(value))


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
