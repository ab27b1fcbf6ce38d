"""States of nested plain values whose tensors are brought to a device."""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor


def to_device(state: Any, device: torch.device) -> Any:  # noqa: ANN401 -- whatever a state is made of
    """The same with all tensors on a device; of dictionaries, lists and tuples new ones."""
    if isinstance(state, Tensor):
        return state.to(device)
    if isinstance(state, dict):
        items = cast("dict[Any, Any]", state).items()
        return {name: to_device(each, device) for name, each in items}
    if type(state) in (list, tuple):
        return type(state)(to_device(each, device) for each in cast("list[Any]", state))
    return state
