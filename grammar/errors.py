"""What is wrong with a recipe: faults with spans, the picture that shows them, and the nearest known name."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from ..errors import ActivememError

MAX_FAULTS = 50
"""After so many faults a text is not looked at any further."""

MAX_UNCUT_WIDTH = 100
"""A text up to this many columns is shown whole; of a longer one each fault shows its surroundings."""

CONTEXT_WIDTH = 30
"""So many columns are shown on both sides of a fault in a longer text."""

MAX_QUOTE_LENGTH = 40
"""What a message quotes from the text is cut to so many characters."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong, from `start` up to `end` of the text.

    `found` is where reading noticed it, if not at its start; faults are told in the order of noticing.
    """

    start: int
    end: int
    message: str
    detected_at: int | None = None

    @property
    def sort_key(self) -> tuple[int, int]:
        """Where reading noticed the fault, then where it is."""
        return (self.start if self.detected_at is None else self.detected_at, self.start)


class RecipeError(ActivememError):
    """A recipe that cannot be used: its text and all of its faults, in the order of reading.

    Its message shows both, and stays readable whatever characters the text has:

        recipe: 1 fault

            sa(head=8)
          1    ^^^^      sa has no parameter 'head'; nearest: heads
    """

    def __init__(self, text: str, faults: Iterable[Fault]) -> None:
        self.text = text
        self.faults = tuple(sorted(faults, key=lambda fault: fault.sort_key))
        super().__init__(text, self.faults)  # both, so that the error can be pickled

    def __str__(self) -> str:
        count = len(self.faults)
        first = "the first " if count >= MAX_FAULTS else ""
        heading = f"recipe: {first}{count} {'fault' if count == 1 else 'faults'}"
        return "\n".join([heading, "", *_format_faults(self.text, self.faults)])


class FaultCollector:
    """Collects the faults of one text while it is read and checked.

    It is true when there are any. Reader and checks share one, so that a text's faults come in one error.
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
        """Whether so much is wrong that nothing more need be looked for."""
        return len(self._faults) >= MAX_FAULTS

    def add(self, start: int, end: int, message: str, detected_at: int | None = None) -> None:
        """Note a fault, unless there are too many already."""
        if not self.is_full:
            self._faults.append(Fault(start, end, message, detected_at))

    def quote(self, start: int, end: int) -> str:
        """A piece of the text as a message quotes it: printable and short."""
        return _truncate(_printable(self.text[start:end].strip()))


def nearest(word: str, known: Sequence[str]) -> str | None:
    """The known name most like the word, whatever its capitals, or None where none is near."""
    close = get_close_matches(word.lower(), known, n=1)
    return close[0] if close else None


def hint(word: str, known: Sequence[str]) -> str:
    """The end of a message about an unknown name: `; nearest: NAME`, or nothing where none is near."""
    near = nearest(word, known)
    return f"; nearest: {near}" if near else ""


def describe_character(character: str) -> str:
    """A character by itself if it can be printed, and by its code point and name if it is not plain ASCII."""
    if character.isascii() and character.isprintable():
        return f"'{character}'"
    code = f"U+{ord(character):04X}"
    name = unicodedata.name(character, "")
    shown = f"'{character}' " if _printable(character) == character else ""
    return f"{shown}{code}{' ' + name if name else ''}"


def _printable(text: str) -> str:
    """The text with white space as spaces and every character that is not one column wide as a stand-in."""
    return "".join(
        " " if c in "\t\r\n" else c if _is_one_column(c) else "\N{REPLACEMENT CHARACTER}" for c in text
    )


def _is_one_column(character: str) -> bool:
    """Whether a terminal gives the character one column: not wide, not combining, not a control."""
    if character.isascii():
        return character.isprintable()
    wide = unicodedata.east_asian_width(character) in "WF" or unicodedata.combining(character) > 0
    return character.isprintable() and not wide and unicodedata.category(character) not in ("Mn", "Me")


def _truncate(text: str) -> str:
    """The text, or its beginning with an ellipsis."""
    return text if len(text) <= MAX_QUOTE_LENGTH else text[: MAX_QUOTE_LENGTH - 1] + "…"


def _format_faults(text: str, faults: Sequence[Fault]) -> Iterator[str]:
    """The text, and below it a numbered line for each fault: carets under its span, then its message."""
    if len(text) > MAX_UNCUT_WIDTH:
        yield from _excerpts(text, faults)
        return
    width = max(len(text), *(_caret_end(fault) for fault in faults))
    yield f"    {_printable(text)}".rstrip()
    for number, fault in enumerate(faults, 1):
        yield _caret_line(number, fault, 0, width)


def _excerpts(text: str, faults: Sequence[Fault]) -> Iterator[str]:
    """For each fault what stands around it, and below that its numbered line."""
    for number, fault in enumerate(faults, 1):
        first, last = max(fault.start - CONTEXT_WIDTH, 0), min(_caret_end(fault), fault.start + CONTEXT_WIDTH)
        before = "…" if first > 0 else ""
        after = "…" if last + CONTEXT_WIDTH < len(text) else ""
        excerpt = before + _printable(text[first : last + CONTEXT_WIDTH]) + after
        offset = first - len(before)
        yield f"    {excerpt}".rstrip()
        yield _caret_line(
            number, Fault(fault.start, last, fault.message), offset, max(len(excerpt), last - offset)
        )


def _caret_line(number: int, fault: Fault, offset: int, width: int) -> str:
    """One numbered line below a text that begins at `offset` and is `width` columns wide."""
    carets = " " * (fault.start - offset) + "^" * (_caret_end(fault) - fault.start)
    return f"{number:>3} {carets:<{width}}   {fault.message}"


def _caret_end(fault: Fault) -> int:
    """Where the carets end: an empty span still gets one."""
    return max(fault.end, fault.start + 1)
