"""Renderers: pure functions from a finished table to text.

Every module here is a format with the module's name and a function `render`. A new file adds a format, on the
command line and in the settings, too. Plug-ins add other formats.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, TypeVar

from ....errors import argument_fault, check_arguments, nearest_hint
from ....plugins import OWN, PluginError, Registry

if TYPE_CHECKING:
    from ..table import Table

Render = Callable[["Table"], str]
"""Renders a finished table as text."""

RenderT = TypeVar("RenderT", bound=Render)


def own_format_names() -> tuple[str, ...]:
    """Return the names of the built-in table formats, without loading them."""
    return tuple(sorted(module.name for module in iter_modules(__path__)))


def _render_own(form: str, table: Table) -> str:
    return import_module(f".{form}", __name__).render(table)


FORMATS: Registry[Render] = Registry(
    "table format", {name: partial(_render_own, name) for name in own_format_names()}
)
"""Every format by its name."""


def register_table_format(name: str) -> Callable[[RenderT], RenderT]:
    """Return a decorator that registers a table format.

    A format is a function from a finished table to text. Raises PluginError if the name is taken.
    """

    def register(render: RenderT) -> RenderT:
        if not callable(render):
            raise PluginError(f"expected a function from a table to text, got {render!r}")
        FORMATS.register(name, render)
        return render

    return register


def render(table: Table, form: str) -> str:
    """Return the table as text in the named format. Raise TableError for unknown or failing formats."""
    from ..table import TableError  # noqa: PLC0415 -- names of formats are known without tables

    check_arguments(argument_fault("form", form, str, "the name of a format"), error=TableError)
    if form not in FORMATS:
        raise TableError(f"there is no format '{form}' of tables{nearest_hint(form, FORMATS)}")
    if FORMATS.owner(form) == OWN:
        return FORMATS[form](table)
    where = f"{FORMATS.owner(form)}: table format '{form}'"
    try:
        text = FORMATS[form](table)
    except Exception as error:  # a plug-in may raise anything
        raise TableError(f"{where}: {type(error).__name__}: {error}") from error
    if not isinstance(text, str):
        raise TableError(f"{where}: expected a text, got {type(text).__name__}")
    return text
