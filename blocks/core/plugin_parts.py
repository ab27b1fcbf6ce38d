"""Building of the modules of plug-ins: blocks, norms and positions."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, MutableMapping
from itertools import count
from typing import Any, TypeVar

from torch import Tensor, nn
from torch.utils.weak import WeakIdKeyDictionary

from ...errors import describe_value
from ...plugins import PluginError, Registry, plugin_errors

ModuleT = TypeVar("ModuleT", bound=nn.Module)

_numbers = count()
_builds: MutableMapping[nn.Module | Tensor, int] = (
    WeakIdKeyDictionary()
)  # the number of the build that made each


class ReusedModuleError(PluginError):
    """Error for a plug-in that returns modules that share parameters or buffers."""


def build_plugin_part(
    registry: Registry[Any],
    name: str,
    item: object,
    build: Callable[[], ModuleT],
    shared: Mapping[Hashable, nn.Module] | None = None,
) -> ModuleT:
    """Return the new module that a plug-in's `build` makes. `item` is the class that is registered.

    Raise PluginError if `build` raises, and ReusedModuleError if its parameters or buffers belong to an
    earlier module: trained weights would pass from trial to trial. Those of the model's `shared` modules may.
    """
    number = next(_numbers)  # parts that are built inside of this one have greater numbers
    with plugin_errors(registry.kind, name, item):
        module = build()
        found: object = module
        if not isinstance(found, nn.Module):
            raise TypeError(f"expected a torch.nn.Module, got {describe_value(found)}")
    allowed = {id(each) for part in (shared or {}).values() for each in _trained_parts(part)}
    made = [each for each in _trained_parts(module) if id(each) not in allowed]
    if any(_builds.get(each, number) < number for each in made):
        raise ReusedModuleError(
            f"{registry.owner(name)}: {registry.kind} '{name}' returns the same parameters or buffers"
            " twice: make new modules in each call, or trained weights pass from trial to trial"
        )
    for each in made:
        _builds[each] = number
    return module


def _trained_parts(module: nn.Module) -> Iterator[nn.Module | Tensor]:
    """Yield the parameters, and the parts that keep buffers, such as running statistics."""
    yield from module.parameters()
    yield from (each for each in module.modules() if any(True for _ in each.buffers(recurse=False)))
