"""Steps of Adam by torch's kernel alone: to look up what is kept of each weight takes as long as it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class _FusedGroup:
    """The weights of a group with what is kept of each, by the group's settings, the rate among them."""

    settings: Mapping[str, Any]
    weights: list[Tensor]
    averages: list[Tensor]
    squares: list[Tensor]
    steps: list[Tensor]


class FusedAdam:
    """Moves the weights of an optimiser whose rule is torch's fused Adam (Kingma and Ba 2015), as it would.

    All have taken as many steps, which one counter has from now on, in the optimiser's state too.
    """

    def __init__(self, optimizer: torch.optim.Optimizer, count: Tensor) -> None:
        self._optimizer, self._count = optimizer, count.clone()
        self._groups: list[_FusedGroup] = []
        for group in optimizer.param_groups:
            weights: list[Tensor] = group["params"]
            states = [optimizer.state[weight] for weight in weights]
            for state in states:
                state["step"] = self._count
            averages, squares = ([state[key] for state in states] for key in ("exp_avg", "exp_avg_sq"))
            self._groups.append(_FusedGroup(group, weights, averages, squares, [self._count] * len(weights)))

    @classmethod
    def of(cls, optimizer: torch.optim.Optimizer) -> Self | None:
        """None of another rule, and where weights have taken no step, or not as many as others."""
        if type(optimizer) not in (torch.optim.Adam, torch.optim.AdamW):
            return None
        groups = optimizer.param_groups
        states = [optimizer.state.get(weight) for group in groups for weight in group["params"]]
        if not all(states) or any(group["amsgrad"] or not group["fused"] for group in groups):
            return None
        counts = torch.stack([state["step"] for state in states if state])
        return cls(optimizer, counts[0]) if bool((counts == counts[0]).all()) else None

    @torch.no_grad()
    def step(self, gradients: Mapping[Tensor, Tensor]) -> None:
        """Move each weight by its gradient."""
        self._count += 1
        for group in self._groups:
            settings = group.settings
            adam, adamw = torch._fused_adam_, torch._fused_adamw_  # pyright: ignore[reportPrivateImportUsage] -- nothing public is the kernel
            move = adamw if settings["decoupled_weight_decay"] else adam
            move(
                group.weights,
                [gradients[weight] for weight in group.weights],
                group.averages,
                group.squares,
                [],
                group.steps,
                lr=settings["lr"],
                beta1=settings["betas"][0],
                beta2=settings["betas"][1],
                weight_decay=settings["weight_decay"],
                eps=settings["eps"],
                amsgrad=False,
                maximize=settings["maximize"],
            )

    def end(self) -> None:
        """Let each weight have a counter of its own again, as the optimiser's own steps need."""
        for group in self._groups:
            for weight in group.weights:
                self._optimizer.state[weight]["step"] = self._count.clone()
