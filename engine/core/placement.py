"""States of nested plain values whose tensors are brought to a device."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, cast

import torch
from torch import Tensor

Path = tuple[Any, ...]
"""The keys and places that lead to a tensor."""


def to_device(state: Any, device: torch.device, but: Collection[Path] = (), path: Path = ()) -> Any:  # noqa: ANN401 -- whatever a state is made of
    """Return the same with all tensors on a device, but for those at some paths; of containers new ones."""
    if isinstance(state, Tensor):
        return state if path in but else state.to(device)
    if isinstance(state, dict):
        items = cast("dict[Any, Any]", state).items()
        return {name: to_device(each, device, but, (*path, name)) for name, each in items}
    if type(state) in (list, tuple):
        places = enumerate(cast("list[Any]", state))
        return type(state)(to_device(each, device, but, (*path, place)) for place, each in places)
    return state


def own_states(states: Mapping[str, Any], device: torch.device) -> dict[str, Any]:
    """Return the states that parts of plug-ins keep, to be saved, with what of them is not on the device.

    Checkpoints are read on the CPU, which loses the difference.
    """
    on_cpu = [] if device.type == "cpu" else list(_paths_on_cpu(states, ()))
    return {"states": states, **({"on_cpu": on_cpu} if on_cpu else {})}


def own_states_on(saved: Mapping[str, Any], device: torch.device) -> dict[str, Any]:
    """Return what `own_states` has said, each tensor where it was, or on the device."""
    return to_device(saved["states"], device, frozenset(map(tuple, saved.get("on_cpu", ()))))


def _paths_on_cpu(state: Any, path: Path) -> Iterator[Path]:  # noqa: ANN401 -- as above
    if isinstance(state, Tensor):
        if state.device.type == "cpu":
            yield path
    elif isinstance(state, dict):
        for name, each in cast("dict[Any, Any]", state).items():
            yield from _paths_on_cpu(each, (*path, name))
    elif type(state) in (list, tuple):
        for place, each in enumerate(cast("list[Any]", state)):
            yield from _paths_on_cpu(each, (*path, place))
