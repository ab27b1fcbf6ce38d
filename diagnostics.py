"""Faults of a text: their spans, carets below the text, and the known name nearest to an unknown name."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches

MAX_FAULTS = 50
"""The maximum number of faults of a text; after it the text is not checked any further."""

MAX_UNCUT_WIDTH = 100
"""The number of columns up to which a text is shown whole; a longer text is cut around each fault."""

CONTEXT_WIDTH = 30
"""The number of columns shown on each side of a fault in a longer text."""

MIN_SHARED_LETTERS = 3
"""The minimum number of letters that a name must share with a word of another spelling to be near it."""

MAX_KNOWN = 40
"""A message lists all known names if there are no more than this."""

MAX_ALIKE = 5
"""The number of names that a message lists if more than MAX_KNOWN are known."""

MAX_QUOTE_LENGTH = 40
"""The maximum number of characters that a message quotes from a text."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault of a text, from `start` up to `end`.

    `detected_at` is where the parser noticed the fault, if not at its start. Faults are reported in the order
    in which the parser notices them.
    """

    start: int
    end: int
    message: str
    detected_at: int | None = None

    @property
    def sort_key(self) -> tuple[int, int]:
        """Return the position where the parser noticed the fault, then the start of the fault."""
        return (self.start if self.detected_at is None else self.detected_at, self.start)


class FaultCollector:
    """A collection of the faults of one text, filled while the text is read and checked.

    It is true if it has a fault. The parser and the checks share a collection, so one error has all faults.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._faults: list[Fault] = []

    def __bool__(self) -> bool:
        return bool(self._faults)

    def __iter__(self) -> Iterator[Fault]:
        return iter(self._faults)

    @property
    def is_full(self) -> bool:
        """Return whether the limit of faults is reached, so that checking can stop."""
        return len(self._faults) >= MAX_FAULTS

    def add(self, start: int, end: int, message: str, detected_at: int | None = None) -> None:
        """Add a fault unless the limit is reached."""
        if not self.is_full:
            self._faults.append(Fault(start, end, message, detected_at))

    def quote(self, start: int, end: int) -> str:
        """Return a piece of the text in the form that messages quote: printable and short."""
        return _truncate(printable(self.text[start:end].strip()))


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most similar to a word, or None if no name is similar.

    The first of these that exists is nearest:

    1. the shortest name that begins with the word, such as `test_accuracy` with `test_acc`;
    2. a name that differs by a typing slip;
    3. a name that is a whole part of the word, such as `bleu` of `test_bleu`;
    4. a name with a similar spelling;
    5. a name that shares a beginning, such as `conv` and `convolution`, or a part.

    Capitals, `-` and `_` do not matter.
    """
    names = {_spelling(name): name for name in known}
    asked = _spelling(word)
    begun = [name for name in names if name.startswith(asked)] if len(asked) >= MIN_SHARED_LETTERS else []
    if begun:
        return names[min(begun, key=len)]
    parts = [part for part in asked.split("_") if part in names and len(part) >= MIN_SHARED_LETTERS]
    for cutoff in (0.8, 0.6):
        if close := get_close_matches(asked, names, n=1, cutoff=cutoff):
            return names[close[0]]
        if parts:
            return names[max(parts, key=len)]
    shared = [(_shared_letters(asked, name), name) for name in names]
    letters, name = max(shared, key=lambda each: (each[0], -len(each[1])), default=(0, ""))
    return names[name] if letters >= MIN_SHARED_LETTERS else None


def _spelling(name: str) -> str:
    return name.lower().replace("-", "_")


def _shared_letters(word: str, name: str) -> int:
    """Return the length of the shorter name if it begins the other, else of their longest common part."""
    if word.startswith(name) or name.startswith(word):
        return min(len(word), len(name))
    return max(map(len, {*word.split("_")} & {*name.split("_")}), default=0)


def hint(word: str, known: Iterable[str]) -> str:
    """Return `; nearest: NAME`, to append to a message about an unknown name, or "" if none is similar."""
    near = nearest(word, known)
    return f"; nearest: {near}" if near else ""


def nearest_hint(word: str, known: Iterable[str]) -> str:
    """Return a hint to the nearest known name, to append to a message about an unknown name.

    If no name is near, list all known names or, of very many, those with the most similar spelling.
    """
    names = sorted(known)
    if near := hint(word, names):
        return near
    if len(names) > MAX_KNOWN:
        alike = get_close_matches(_spelling(word), names, n=MAX_ALIKE, cutoff=0.0)
        return f"; {len(names)} are known, the most similar: {', '.join(alike)}"
    return f"; known: {', '.join(names)}" if names else ""


def draw_carets(text: str, start: int, end: int) -> tuple[str, str]:
    """Return the line of a span, shortened if it is long, and a second line with carets below the span."""
    shown, offset = text, 0
    if len(text) > MAX_UNCUT_WIDTH:
        first, end = max(start - CONTEXT_WIDTH, 0), min(end, start + CONTEXT_WIDTH)
        before, after = "…" if first else "", "…" if end + CONTEXT_WIDTH < len(text) else ""
        shown, offset = before + text[first : end + CONTEXT_WIDTH] + after, first - len(before)
    return printable(shown), " " * (start - offset) + "^" * max(1, end - start)


def describe_character(character: str) -> str:
    """Return a character if it can be printed, with its code point and name if it is not plain ASCII."""
    if character.isascii() and character.isprintable():
        return f"'{character}'"
    code = f"U+{ord(character):04X}"
    name = unicodedata.name(character, "")
    shown = f"'{character}' " if printable(character) == character else ""
    return f"{shown}{code}{' ' + name if name else ''}"


def printable(text: str) -> str:
    """Return the text with a replacement for each character that does not fill one column."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        " " if c in "\t\r\n" else c if _is_one_column(c) else "\N{REPLACEMENT CHARACTER}" for c in text
    )


def replace_unprintable(text: str) -> str:
    """Return the text with the character U+FFFD in place of every character that must not be shown.

    These are control characters, except line ends and tabs, and characters that change the direction of
    writing. Text from others must not bring them to a page, or to a terminal, which would obey them.
    """
    if text.isascii() and text.replace("\n", "").replace("\t", "").isprintable():
        return text
    return "".join(c if c in "\n\t" or _is_shown(c) else "\N{REPLACEMENT CHARACTER}" for c in text)


def _is_shown(character: str) -> bool:
    """Return whether a character can be shown: it is printable, or a space of any width."""
    return character.isprintable() or unicodedata.category(character) == "Zs"


def _is_one_column(character: str) -> bool:
    """Return whether a character fills one column in a terminal: it is not wide, combining or a control."""
    if character.isascii():
        return character.isprintable()
    wide = unicodedata.east_asian_width(character) in "WF" or unicodedata.combining(character) > 0
    return character.isprintable() and not wide and unicodedata.category(character) not in ("Mn", "Me")


def _truncate(text: str) -> str:
    """Return the text, or its beginning with an ellipsis."""
    return text if len(text) <= MAX_QUOTE_LENGTH else text[: MAX_QUOTE_LENGTH - 1] + "…"
