"""Lion: steps of one size, by the sign of an average of gradients (Chen et al. 2023, algorithm 2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor


class Lion(torch.optim.Optimizer):
    """The sign of a mix of the momentum and the gradient; weights decay as in AdamW."""

    def __init__(
        self,
        groups: Iterable[dict[str, Any]],
        *,
        lr: float,
        betas: tuple[float, float],
        weight_decay: float,
    ) -> None:
        super().__init__(groups, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # pyright: ignore[reportIncompatibleMethodOverride] -- torch's overloads
        """Move every weight that has a gradient."""
        assert closure is None, "gradients are there already"
        for group in self.param_groups:
            lr, (first, second) = group["lr"], group["betas"]
            for weight in group["params"]:
                if weight.grad is None:
                    continue
                if not (state := self.state[weight]):
                    state["momentum"] = torch.zeros_like(weight)
                momentum: Tensor = state["momentum"]
                step = torch.lerp(weight.grad, momentum, first).sign_()
                weight.mul_(1 - lr * group["weight_decay"]).add_(step, alpha=-lr)
                momentum.lerp_(weight.grad, 1 - second)
