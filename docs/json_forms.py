"""Generated parts of `docs/reference/json.md`: each command's fields, and the nested entries."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pydantic import TypeAdapter

from activemem.cli.pages import PAGES

_NAMES = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "object": "object",
    "null": "null",
}


def commands() -> str:
    """Return a table of each command's fields, and one for each kind of entry."""
    entries: dict[str, dict[str, Any]] = {}
    lines: list[str] = []
    for command, page in PAGES.items():
        schema = TypeAdapter(page).json_schema(mode="serialization")
        entries |= schema.get("$defs", {})
        lines += [f"### `activemem {command}`", "", *_table(schema)]
    lines += ["## Entries", ""]
    for name in sorted(entries):
        lines += [f"### {name}", "", *_table(entries[name])]
    return "\n".join(lines).rstrip()


def _table(form: dict[str, Any]) -> Iterator[str]:
    """Yield the description of a JSON schema and its fields."""
    yield re.sub(r"\s+", " ", form.get("description", ""))
    yield ""
    if "enum" in form:
        yield _type(form)
        yield ""
        return
    yield "| field | type |"
    yield "| :-- | :-- |"
    for name, field in form["properties"].items():
        yield f"| `{name}` | {_type(field)} |"
    yield ""


def _type(field: dict[str, Any]) -> str:
    """Return a type in words."""
    match field:
        case {"$ref": str(place)}:
            text = place.rpartition("/")[2]
        case {"enum": list(values)}:
            text = " or ".join(f'`"{each}"`' for each in values)
        case {"const": value}:
            text = f'`"{value}"`'
        case {"anyOf": list(kinds)}:
            text = " or ".join(_type(each) for each in kinds)
        case {"type": "array", "items": items}:
            text = f"list of {_type(items)}"
        case {"type": "object", "additionalProperties": dict(inner)} if inner:
            text = f"object of {_type(inner)}"
        case _:
            text = _NAMES.get(field.get("type", ""), "anything")
    return text


JSON = {"json_forms": commands}
"""The generators by the name in a mark of `docs/reference/json.md`."""
