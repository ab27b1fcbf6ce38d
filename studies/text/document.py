"""A parsed study file with its overrides and faults."""

from __future__ import annotations

import json
import re
import tomllib
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from ...errors import Fault
from .errors import StudyError, StudyFault, fault_at, path_prefix
from .strict_model import InvalidTableError, ModelT, format_value, validate
from .toml_faults import syntax_fault
from .toml_positions import STRING, KeyPath, KeyValueSpan, Span, locate


@dataclass(frozen=True, kw_only=True)
class Document:
    """A parsed study file: its data, and where each value is written.

    `path` is None for a text without a file. `as_written` is the file without its overrides, and `overridden`
    has its places with them; both are None if there are no overrides.
    """

    source: str  # the name of the file in messages
    text: str
    data: Mapping[str, Any]
    path: Path | None = None
    overrides: tuple[str, ...] = ()
    overridden: Mapping[KeyPath, tuple[str, KeyValueSpan]] | None = None
    as_written: Document | None = None

    @cached_property
    def places(self) -> Mapping[KeyPath, tuple[str, KeyValueSpan]]:
        """Return where each path is written: a text and a span in it. The text is the file or an override."""
        if self.overridden is not None:
            return self.overridden
        return {path: (self.text, place) for path, place in locate(self.text).items()}

    def fault(
        self,
        path: KeyPath,
        message: str,
        *,
        key: bool = False,
        within: Span | None = None,
        verb: str = "",
        meant: str = "",
    ) -> StudyFault:
        """Return a fault with its position: the value at `path`, or its key if `key` is true.

        `within` narrows the position to a part of a text value. The fault of a missing path is shown at its
        table. With a `verb`, the message continues the name of the path: `[factors] many, used as …`. `meant`
        is the right place of an unknown key (see `ValidationProblem`), shown with the value of an override.
        """
        text, place = self.places.get(path, ("", None))
        if meant and place and text != self.text and all(isinstance(part, str) for part in path):
            end = place.value[1] if path[1:] else None  # the key of `optimizer.lr=1` is only `optimizer`
            whole = ".".join(map(str, path[:-1])) * meant.startswith(".") + meant
            message = f"{message.partition(';')[0]}; write {whole}{text[place.key[1] : end]}"
        prefix = path_prefix(path[:-1] if key else path)
        message = (f"{prefix.removesuffix(': ').rstrip()}{verb} " if verb else prefix) + message
        name = ".".join(part for part in path if isinstance(part, str))
        for depth in range(len(path)):  # a value alone stands for a list of it
            if path[depth] == 0 and path[:depth] in self.places and path[: depth + 1] not in self.places:
                path = (*path[:depth], *path[depth + 1 :])
                break
        while path and path not in self.places:
            path = path[:-1]
        if not path:
            return StudyFault(message=message, key=name or None)
        text, place = self.places[path]
        span = place.key if key else place.value
        span = self._narrowed(path, within) or span
        return replace(fault_at(text, span, message, override=text != self.text), key=name)

    def _narrowed(self, path: KeyPath, within: Span | None) -> Span | None:
        """Return where a part of a text value lies in the file; None if the value has escapes."""
        if within is None:
            return None
        value: Any = self.data
        for part in path:
            value = value[part]
        if not isinstance(value, str):
            return None
        text, place = self.places[path]
        start = text.find(value, *place.value)
        return None if start < 0 else (start + within[0], start + within[1])


MAX_DEPTH = 16
"""The maximum nesting of values; study files need less than a third of it."""

_TOO_DEEP = f"expected at most {MAX_DEPTH} levels of nesting, got more"
# whatever follows a comma is one match, up to the next sign that counts, because lists of levels are long
_NESTING = re.compile(rf"""{STRING.pattern}|#[^\n]*|[\[\]{{}}.]|[=,\n][^"'#\[\]{{}}.]*""", re.DOTALL)


def _find_too_deep(text: str) -> Span | None:
    """Return the position of the first bracket or dot that nests too deeply, or None."""
    depth = dots = 0
    for match in _NESTING.finditer(text):
        sign = match.group()
        depth += (sign in ("[", "{")) - (sign in ("]", "}"))
        dots = dots + 1 if sign == "." else dots if sign[0] in "\"'" else 0
        if depth > MAX_DEPTH or dots >= MAX_DEPTH:
            return match.span()
    return None


_INTEGER_RANGE = "expected a whole number of at most 64 bits"
_LONG_NUMBER = re.compile(
    rf"""{STRING.pattern}|#[^\n]*|(?P<number>(?<![\w.-])[+-]?(?:0[xob])?[\da-fA-F_]{{65,}}+)(?![\w-]*\s*[=.])""",
    re.DOTALL,
)


def _find_long_number(text: str) -> Span | None:
    """Return the position of the first whole number that is too long to be converted, or None."""
    if re.search(r"[\da-fA-F_]{65}", text) is None:
        return None
    return next((match.span() for match in _LONG_NUMBER.finditer(text) if match["number"]), None)


def parse_document(
    source: str, text: str, overrides: Sequence[str] = (), *, path: Path | None = None
) -> Document:
    """Parse the text of a study file, which comes from `path` if it has a file.

    Raise StudyError for invalid TOML in the text or in an override. Nesting deeper than `MAX_DEPTH` is
    invalid, too.
    """
    text = text.replace("\r\n", "\n")  # as tomllib does, so that its positions are those of this text
    if (deep := _find_too_deep(text)) is not None:
        raise StudyError(source, [fault_at(text, deep, f"TOML: {_TOO_DEEP}")])
    if (long := _find_long_number(text)) is not None:
        raise StudyError(source, [fault_at(text, long, f"{_INTEGER_RANGE}, got {long[1] - long[0]} digits")])
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise StudyError(source, [syntax_fault(text, str(error))]) from error
    if not overrides:
        return Document(source=source, text=text, data=data, path=path)
    places = {path: (text, place) for path, place in locate(text).items()}
    faults = [fault for override in overrides for fault in _apply_override(data, places, override)]
    if faults:
        raise StudyError(source, faults)
    as_written = parse_document(source, text)
    return Document(
        source=source,
        text=text,
        data=data,
        path=path,
        overrides=tuple(overrides),
        overridden=places,
        as_written=as_written,
    )


def read_document(path: Path, overrides: Sequence[str] = ()) -> Document:
    """Read and parse a study file; raise StudyError for invalid TOML or UTF-8, or OSError.

    A byte order mark at the beginning is skipped.
    """
    raw = path.read_bytes().removeprefix(BOM_UTF8)
    try:
        return parse_document(str(path), raw.decode(), overrides, path=path)
    except UnicodeDecodeError as error:
        text, start = raw.decode(errors="replace"), len(raw[: error.start].decode())
        message = f"expected UTF-8, got the byte 0x{raw[error.start]:02x}"
        raise StudyError(str(path), [fault_at(text, (start, start + 1), message)]) from error


def _apply_override(
    data: dict[str, Any], places: dict[KeyPath, tuple[str, KeyValueSpan]], override: str
) -> list[StudyFault]:
    """Apply an override such as `train.lr=0.1`, whose value is TOML or a plain text; return the faults."""
    if (deep := _find_too_deep(override)) is not None:
        return [fault_at(override, deep, _TOO_DEEP, override=True)]
    if (long := _find_long_number(override)) is not None:
        return [fault_at(override, long, _INTEGER_RANGE, override=True)]
    left, sign, right = override.partition("=")
    try:
        keys = _keys(tomllib.loads(f"{left}=0"))
    except tomllib.TOMLDecodeError:
        keys = []
    if not sign or not keys or "\n" in override:
        message = f"expected KEY=VALUE, got {override!r}"
        return [fault_at(override, (0, len(override)), message, override=True)]
    value, spans = _value(left, right)
    table: Any = data
    for depth, key in enumerate(keys[:-1], 1):
        table = table.setdefault(key, {})
        if not isinstance(table, dict):
            shown = json.dumps(value, ensure_ascii=False) if isinstance(value, str) else right.strip()
            whole = f"{'.'.join(keys[:depth])}={{ {'.'.join(keys[depth:])} = {shown} }}"
            message = f"expected a table, got {table!r}; to write a table instead: --set '{whole}'"
            message = f"{path_prefix(tuple(keys[:depth]))}{message}"
            return [fault_at(override, spans[tuple(keys[:depth])].key, message, override=True)]
    table[keys[-1]] = value
    path = tuple(keys)
    for old in [old for old in places if old[: len(path)] == path]:
        del places[old]
    for new, place in spans.items():
        if new[: len(path)] == path:
            places[new] = (override, place)
        else:
            places.setdefault(new, (override, place))
    return []


def _keys(nested: Any) -> list[str]:  # noqa: ANN401 -- what tomllib gives
    """Return the keys of an override: ["train", "lr"] for `{"train": {"lr": 0}}`."""
    keys = []
    while isinstance(nested, dict) and nested:
        (key, nested), *_ = nested.items()
        keys.append(key)
    return keys


def _value(left: str, right: str) -> tuple[Any, dict[KeyPath, KeyValueSpan]]:
    try:
        read_as_toml = tomllib.loads(f"value ={right}")["value"]
    except tomllib.TOMLDecodeError:
        places = locate(f"{left}=0")
        word = (len(left) + 1, len(left) + 1 + len(right))
        last = max(places, key=len)
        return right.strip(), {**places, last: KeyValueSpan(places[last].key, word)}
    return read_as_toml, locate(f"{left}={right}")


@dataclass(frozen=True, slots=True)
class Diagnostics:
    """Collector of a study file's faults.

    Other faults of a value whose path is in `invalid` are not reported. `origins` has the place in the file
    of each factor that an expansion adds: faults of `("factors", "width")` are shown there.
    """

    document: Document
    faults: list[StudyFault] = field(default_factory=list)
    invalid: set[KeyPath] = field(default_factory=set)
    origins: dict[KeyPath, KeyPath] = field(default_factory=dict[KeyPath, KeyPath])
    _known: set[StudyFault] = field(default_factory=set[StudyFault])
    """The reported faults, of which a file may have thousands."""

    @property
    def data(self) -> Mapping[str, Any]:
        """The tables of the file with its overrides."""
        return self.document.data

    @property
    def has_search(self) -> bool:
        """True if the file has the table [search], valid or not."""
        return "search" in self.data

    def report(
        self,
        path: KeyPath,
        message: str,
        *,
        key: bool = False,
        within: Span | None = None,
        verb: str = "",
        meant: str = "",
    ) -> None:
        """Add a fault with this message, unless the same fault is already there: see `Document.fault`."""
        if path[:2] in self.origins and path not in self.document.places:
            path, within = (*self.origins[path[:2]], *path[2:]), None
        fault = self.document.fault(path, message, key=key, within=within, verb=verb, meant=meant)
        if fault not in self._known:
            self._known.add(fault)
            self.faults.append(fault)

    def report_invalid(self, path: KeyPath, message: str, *, within: Span | None = None) -> None:
        """Add a fault and mark the value at its path as invalid."""
        self.report(path, message, within=within)
        self.invalid.add(path)

    def report_faults(self, path: KeyPath, faults: Iterable[Fault]) -> None:
        """Add the faults of a text value such as a recipe, which have positions in it; mark it as invalid."""
        for fault in faults:
            self.report_invalid(path, fault.message, within=(fault.start, fault.end))

    def table(self, name: str) -> dict[str, Any]:
        """Return the table with this name, or an empty table. Report a value of another type."""
        table = self.data.get(name, {})
        if isinstance(table, dict):
            return table
        self.report((name,), f"expected a table, got {format_value(table)}")
        return {}

    def tables(self, name: str) -> list[Any]:
        """Return the array of tables with this name, or an empty list. Report a value of another type."""
        tables = self.data.get(name, [])
        if isinstance(tables, list):
            return tables
        self.report((name,), f"expected [[{name}]], got {format_value(tables)}")
        return []

    def validate(self, model: type[ModelT], path: KeyPath, data: Mapping[str, Any]) -> ModelT | None:
        """Return a table as an object of its Pydantic class. Otherwise report its faults and return None."""
        try:
            return validate(model, data)
        except InvalidTableError as error:
            for problem in error.problems:
                at = (*path, *problem.path)
                self.report(at, problem.message, key=problem.key, meant=problem.meant)
            return None

    def validate_keys(self, model: type[ModelT], path: KeyPath) -> ModelT | None:
        """Return the keys of one class in a table that has further keys, as `validate` does."""
        table = self.table(str(path[0]))
        return self.validate(model, path, {key: table[key] for key in model.model_fields if key in table})

    def already_reported(self, path: KeyPath) -> bool:
        """Return whether a fault is reported for a value, or for a table or list that contains it."""
        return bool(self.invalid) and any(path[:depth] in self.invalid for depth in range(1, len(path) + 1))


def iter_leaves(path: KeyPath, value: object) -> Iterator[tuple[KeyPath, object]]:
    """Yield the path and the value of each key in nested tables. A list is a single value."""
    if isinstance(value, Mapping):
        for key, inner in cast("Mapping[str, object]", value).items():
            yield from iter_leaves((*path, key), inner)
    else:
        yield path, value
