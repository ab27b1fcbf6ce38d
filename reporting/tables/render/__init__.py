"""A renderer is a pure function from a table to text; none of them computes a number or a word.

Every module here is a format of its own name, with a function `render` that takes a table: a new file is a
new format, on the command line and in the settings too.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

from ....diagnostics import nearest_hint

if TYPE_CHECKING:
    from ..table import Table


def format_names() -> tuple[str, ...]:
    """The names of all formats, without loading them."""
    return tuple(sorted(module.name for module in iter_modules(__path__)))


def render(table: Table, form: str) -> str:
    """The table in the format of that name; TableError if there is none."""
    if form not in format_names():
        from ..table import TableError  # noqa: PLC0415 -- names of formats are known without tables

        raise TableError(f"there is no format '{form}' of tables{nearest_hint(form, format_names())}")
    return import_module(f".{form}", __name__).render(table)
