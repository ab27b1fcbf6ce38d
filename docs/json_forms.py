"""Generated parts of `docs/reference/json.md`: each command's fields, and the nested results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel

from activemem.cli.pages import PAGES
from activemem.reporting.tables.table import Table
from activemem.studies.study import Study

_NAMES: Mapping[Any, str] = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "true or false",
    NoneType: "null",
    Any: "anything",
    object: "anything",
}


def commands() -> str:
    """Return a table of each command's fields, and one for each kind of result in it."""
    found: dict[str, type] = {}
    lines: list[str] = []
    for command, page in PAGES.items():
        lines += [f"### `activemem {command}`", "", *_table(page.summary, page.fields, found)]
    lines += ["## Entries", ""]
    done = set[str]()
    entries: dict[str, list[str]] = {}
    while left := [kind for name, kind in found.items() if name not in done]:
        for kind in left:
            done.add(kind.__name__)
            hints = get_type_hints(kind)
            names = [each.name for each in fields(kind)] if is_dataclass(kind) else kind.model_fields
            own = {name: hints[name] for name in names}
            entries[kind.__name__] = list(_table(kind.__doc__ or "", own, found))
    for name in sorted(entries):
        lines += [f"### {name}", "", *entries[name]]
    return "\n".join(lines).rstrip()


def _table(summary: str, kinds: Mapping[str, Any], found: dict[str, type]) -> Iterator[str]:
    """Yield a summary, and the fields with their types. Kinds of results in them are added to `found`."""
    yield " ".join(summary.split())
    yield ""
    yield "| field | type |"
    yield "| :-- | :-- |"
    for name, kind in kinds.items():
        yield f"| `{name}` | {_words(kind, found)} |"
    yield ""


def _words(kind: Any, found: dict[str, type]) -> str:  # noqa: ANN401, PLR0911 -- a type; a case for each kind
    """Return a type in words."""
    origin, inner = get_origin(kind), [each for each in get_args(kind) if each is not Ellipsis]
    if origin is Literal:
        return " or ".join(f'`"{each}"`' for each in inner)
    if origin in (Union, UnionType):
        return " or ".join(dict.fromkeys(_words(each, found) for each in inner))
    if kind in _NAMES:
        return _NAMES[kind]
    if kind is Study:
        return "text"
    base = origin or kind
    if not isinstance(base, type):
        return "anything"
    if issubclass(base, Enum):
        return " or ".join(f'`"{each.value}"`' for each in base)
    if issubclass(base, Mapping):
        values = _words(inner[1], found) if inner[1:] else "anything"
        return "object" if values == "anything" else f"object of {values}"
    if base is Table:
        return "list of object"
    if issubclass(base, Sequence) and not issubclass(base, str):
        return f"list of {' or '.join(dict.fromkeys(_words(each, found) for each in inner))}"
    if is_dataclass(base) or issubclass(base, BaseModel):
        found[base.__name__] = base
        return base.__name__
    return "object" if base.__name__ == "Trial" else "text"


JSON = {"json_forms": commands}
"""The generators by the name in a mark of `docs/reference/json.md`."""
