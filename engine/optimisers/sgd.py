"""SGD in one pass over all weights, whichever of them have no gradient yet (Polyak 1964)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

_MOMENTUM = "momentum_buffer"
"""What torch keeps of a weight under this name: the direction of the steps before."""


class SGD(torch.optim.SGD):
    """Torch's, with momentum also where a weight's first gradient comes later than those of others.

    Its rule in one pass takes directions of all weights or of none. One of zeros begins as none does.
    """

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> Any:  # noqa: ANN401  # pyright: ignore[reportIncompatibleMethodOverride] -- torch's overloads
        """Move every weight that has a gradient."""
        for group in self.param_groups:
            if group["momentum"]:
                self._begin_late(group)
        return super().step(closure)

    def _begin_late(self, group: dict[str, Any]) -> None:
        moved = [weight for weight in group["params"] if weight.grad is not None]
        late = [weight for weight in moved if self.state[weight].get(_MOMENTUM) is None]
        if len(late) < len(moved):
            for weight in late:
                self.state[weight][_MOMENTUM] = torch.zeros_like(weight.grad)
