"""A study file as read: its data with overrides applied, and the position of each part."""

from __future__ import annotations

import re
import tomllib
from codecs import BOM_UTF8
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import StudyError, StudyFault, fault_at, path_prefix
from .overrides import apply_override
from .toml_positions import TOO_DEEP, KeyPath, KeyValueSpan, Span, find_too_deep, locate

_SYNTAX = re.compile(
    r"(?P<what>.*) \(at (?:line (?P<line>\d+), column (?P<column>\d+)|end of document)\)", re.DOTALL
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """The data of a study file; `places` has for each path the text that gives it and its span there.

    `as_written` is the file without overrides; None where there are none.
    """

    source: str  # what messages call it
    text: str
    data: Mapping[str, Any]
    places: Mapping[KeyPath, tuple[str, KeyValueSpan]]
    as_written: Document | None = None

    def fault(
        self, path: KeyPath, message: str, *, key: bool = False, within: Span | None = None
    ) -> StudyFault:
        """Return a fault at the value of a path, or at its key.

        `within` narrows it to a part of a text value. A path that is not in the file is shown at its table.
        """
        message = path_prefix(path[:-1] if key else path) + message
        while path and path not in self.places:
            path = path[:-1]
        if not path:
            return StudyFault(message=message)
        text, place = self.places[path]
        span = place.key if key else place.value
        return fault_at(text, self._narrowed(path, within) or span, message, override=text != self.text)

    def _narrowed(self, path: KeyPath, within: Span | None) -> Span | None:
        """Return the span of a part of a text value if the file has it without escapes."""
        value: Any = self.data
        for part in path:
            value = value[part]
        if within is None or not isinstance(value, str):
            return None
        text, place = self.places[path]
        start = text.find(value, *place.value)
        return None if start < 0 else (start + within[0], start + within[1])


def parse_document(source: str, text: str, overrides: Sequence[str] = ()) -> Document:
    """Return the document of a text; raise StudyError for invalid TOML in the text or in an override.

    Nesting deeper than `toml_positions.MAX_DEPTH` is invalid, too.
    """
    text = text.replace("\r\n", "\n")
    if (deep := find_too_deep(text)) is not None:
        raise StudyError(source, [fault_at(text, deep, f"TOML: {TOO_DEEP}")])
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise StudyError(source, [_syntax_fault(text, str(error))]) from error
    places = {path: (text, place) for path, place in locate(text).items()}
    faults = [fault for override in overrides for fault in apply_override(data, places, override)]
    if faults:
        raise StudyError(source, faults)
    as_written = parse_document(source, text) if overrides else None
    return Document(source=source, text=text, data=data, places=places, as_written=as_written)


def read_document(path: Path, overrides: Sequence[str] = ()) -> Document:
    """Return the document of a file; raise StudyError, also for text that is not UTF-8, or OSError.

    A byte order mark at the beginning is skipped.
    """
    raw = path.read_bytes().removeprefix(BOM_UTF8)
    try:
        return parse_document(str(path), raw.decode(), overrides)
    except UnicodeDecodeError as error:
        text, start = raw.decode(errors="replace"), len(raw[: error.start].decode())
        message = f"expected UTF-8, got the byte 0x{raw[error.start]:02x}"
        raise StudyError(str(path), [fault_at(text, (start, start + 1), message)]) from error


def _syntax_fault(text: str, error: str) -> StudyFault:
    """Return the one fault that tomllib reports, at its position."""
    match = _SYNTAX.fullmatch(error)
    what = match["what"] if match else error
    if match is None or match["line"] is None:
        return fault_at(text, (len(text.rstrip()), len(text.rstrip()) + 1), f"TOML: {what}")
    first = sum(len(line) + 1 for line in text.split("\n")[: int(match["line"]) - 1])
    start = first + int(match["column"]) - 1
    if what == "Cannot overwrite a value":  # noticed at the end of the line
        return fault_at(text, (first, start), "TOML: this key has a value already")
    return fault_at(text, (start, start + 1), f"TOML: {what}")
