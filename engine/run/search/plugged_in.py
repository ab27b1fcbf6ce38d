"""Samplers and schedulers of plug-ins: checked, and their errors reported with their names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ....plugins import PluginError, Registry


def made_by_plugin(registry: Registry[Any], name: str, make: Callable[[], object], base: type[Any]) -> Any:  # noqa: ANN401 -- an instance of the base
    """Return what a plug-in makes. Raises PluginError if it is no instance of the base."""
    with named_errors(registry, name):
        found = make()
    if not isinstance(found, base):
        raise PluginError(
            f"{registry.owner(name)}: {registry.kind} '{name}': "
            f"expected an optuna {base.__name__}, got {type(found).__name__}"
        )
    return found


@contextmanager
def named_errors(registry: Registry[Any], name: str) -> Iterator[None]:
    """Raise what a plug-in's code raises as a PluginError with its owner and its name."""
    try:
        yield
    except Exception as error:
        fault = f"{type(error).__name__}: {error}"
        raise PluginError(f"{registry.owner(name)}: {registry.kind} '{name}': {fault}") from error
