"""Writer of tables as TOML: short values on one line, nested tables by dotted keys or inline."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from textwrap import wrap
from typing import Any

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_WIDTH = 100


def toml_comment(text: str) -> str:
    """Return a sentence as comment lines."""
    return "\n".join(wrap(text, _WIDTH, initial_indent="# ", subsequent_indent="# "))


def toml_table(head: str, keys: Mapping[str, Any]) -> str:
    """Return a table with its keys after its header."""
    return "\n".join([head, *(f"{toml_key(key)} = {toml_value(value)}" for key, value in keys.items()), ""])


def toml_leaves(head: str, keys: Mapping[str, Any]) -> str:
    """Return a table whose inner tables are dotted keys, as in [source]."""
    lines = [f"{'.'.join(map(toml_key, path))} = {toml_value(value)}" for path, value in _leaves((), keys)]
    return "\n".join([head, *lines, ""])


def toml_key(key: str) -> str:
    """Return a key, in quotes if it needs them."""
    return key if _BARE.fullmatch(key) else _text(key)


def toml_value(value: Any) -> str:  # noqa: ANN401 -- TOML holds anything
    """Return a value on one line."""
    if isinstance(value, Mapping):
        inner = ", ".join(f"{toml_key(key)} = {toml_value(each)}" for key, each in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_value, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value) if isinstance(value, int | float) else _text(str(value))


def _text(text: str) -> str:
    """Return a basic string; JSON's escapes are TOML's, except for one control character."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _leaves(path: tuple[str, ...], value: Any) -> Iterable[tuple[tuple[str, ...], Any]]:  # noqa: ANN401 -- as above
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _leaves((*path, key), inner)
    else:
        yield path, value
