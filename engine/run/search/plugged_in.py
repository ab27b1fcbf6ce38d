"""What a plug-in makes for a search is checked, and what its code raises is told with its name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ....plugins import PluginError, Registry


def made_by_plugin(registry: Registry[Any], name: str, make: Callable[[], object], base: type[Any]) -> Any:  # noqa: ANN401 -- an instance of the base
    """What a plug-in makes, if it is what it should be."""
    with told_by_name(registry, name):
        found = make()
    if not isinstance(found, base):
        raise PluginError(
            f"{registry.owner(name)}: {registry.kind} '{name}': "
            f"expected an optuna {base.__name__}, got {type(found).__name__}"
        )
    return found


@contextmanager
def told_by_name(registry: Registry[Any], name: str) -> Iterator[None]:
    """A context in which a plug-in's code runs: what it raises is told with its owner and its name."""
    try:
        yield
    except Exception as error:
        fault = f"{type(error).__name__}: {error}"
        raise PluginError(f"{registry.owner(name)}: {registry.kind} '{name}': {fault}") from error
