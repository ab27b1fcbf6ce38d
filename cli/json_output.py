"""Output of commands as JSON, for programs."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING

from .output import SCHEMA, print_stdout

if TYPE_CHECKING:
    from pydantic import TypeAdapter


def print_json(page: object) -> None:
    """Write a command's result as JSON, after the schema version. Infinity and NaN become null."""
    text = json.dumps(_numbered(page), indent=2, ensure_ascii=False)
    # no control character may reach a terminal; JSON can express each as an escape
    escaped = (c if c == "\n" or c.isprintable() else json.dumps(c)[1:-1] for c in text)
    print_stdout("".join(escaped))


def print_page(command: str, result: object = None, /, **keys: object) -> None:
    """Write a command's page as JSON. Its keys are attributes of `result`, or are given one by one."""
    from .pages import PAGES  # loads polars and more

    page = PAGES[command]
    assert keys.keys() <= page.model_fields.keys(), "a key that the page lacks would not be printed"
    print_json(page.model_validate(keys if result is None else result))


def print_json_line(page: object) -> None:
    """Write a command's result to standard output at once, as a line of JSON."""
    print(json.dumps(_numbered(page)), flush=True)


def _numbered(page: object) -> dict[str, object]:
    return {"schema": SCHEMA, **json.loads(_adapter(type(page)).dump_json(page))}


@cache
def _adapter(page: type[object]) -> TypeAdapter[object]:
    from pydantic import TypeAdapter

    return TypeAdapter(page)
