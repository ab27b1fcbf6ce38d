"""Tables whose name decides, in a registry, which class of settings they are read with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from pydantic import BaseModel

from ...diagnostics import nearest_hint
from ...plugins import Registry
from ..text.strict_model import InvalidTableError, ValidationProblem, validate

ItemT = TypeVar("ItemT")


def read_registered(
    table: object, registry: Registry[ItemT], settings_of: Callable[[ItemT], type[BaseModel]]
) -> object:
    """Return the settings of a table in the class that its name selects; return anything else unchanged.

    Raises InvalidTableError with every problem.
    """
    if not isinstance(table, Mapping) or not isinstance(name := table.get("name"), str):
        return table
    if name not in registry:
        hint = nearest_hint(name, registry) if len(registry) else ": no plug-in has registered any"
        raise InvalidTableError((ValidationProblem(("name",), f"unknown {registry.kind} '{name}'{hint}"),))
    return validate(settings_of(registry[name]), table)
