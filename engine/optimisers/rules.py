"""Optimisers that torch lacks in this form: Adam, Lion, SGD and Muon.

Adam is torch's fused rule without what its step does again at each call, on a CPU a tenth of a small model's
step. `torch._fused_adam_` has no public equivalent; tests against torch's own optimisers guard it.

Lion takes steps of constant size, along the sign of averaged gradients (Chen et al. 2023, algorithm 2). Muon
orthogonalises the updates of matrices and updates all other weights like AdamW (Jordan et al. 2024). It
scales its updates by 0.2 √max(outputs, inputs). This matches AdamW's typical update size, so both share one
learning rate (Liu et al. 2025, section 2.2).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from ...blocks.core.initialisation import Weight, WeightRole, find_weights


class Adam(torch.optim.Adam):
    """Torch's fused Adam, or AdamW with `decoupled_weight_decay`, equal to the last bit."""

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> Any:  # noqa: ANN401  # pyright: ignore[reportIncompatibleMethodOverride] -- torch's overloads
        """Update every weight that has a gradient."""
        groups = self.param_groups
        moved = [[weight for weight in group["params"] if weight.grad is not None] for group in groups]
        states = [[self.state[weight] for weight in weights] for weights in moved]
        on_cpu = all(weights[0].is_cpu for weights in moved if weights)
        if not on_cpu or not all(map(all, states)):  # the first step has no states yet, and begins them
            return super().step(closure)
        assert closure is None, "no closure: the gradients are already computed"
        for group, weights, each in zip(groups, moved, states, strict=True):
            if not weights:
                continue
            decoupled, (beta1, beta2) = group["decoupled_weight_decay"], group["betas"]
            steps = [state["step"] for state in each]
            # a number instead of _ONE would become a tensor for each weight
            torch._foreach_add_(steps, _ONE, alpha=1.0)  # pyright: ignore[reportPrivateImportUsage]
            update = torch._fused_adamw_ if decoupled else torch._fused_adam_  # pyright: ignore[reportPrivateImportUsage]
            update(
                weights,
                [weight.grad for weight in weights],
                [state["exp_avg"] for state in each],
                [state["exp_avg_sq"] for state in each],
                [],
                steps,
                lr=group["lr"],
                beta1=beta1,
                beta2=beta2,
                weight_decay=group["weight_decay"],
                eps=group["eps"],
                amsgrad=False,
                maximize=False,
            )
        return None


_ONE = torch.ones(())


class Lion(torch.optim.Optimizer):
    """Lion: updates along the sign of a mix of momentum and gradient; weights decay as in AdamW."""

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
        """Update every weight that has a gradient."""
        assert closure is None, "no closure: the gradients are already computed"
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


_MOMENTUM = "momentum_buffer"
"""The name under which torch keeps a weight's momentum."""


class SGD(torch.optim.SGD):
    """Torch's SGD, with momentum even for weights that get their first gradient late.

    Torch's foreach step needs a momentum for every weight or for none. A momentum of zeros is equivalent to
    none.
    """

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> Any:  # noqa: ANN401  # pyright: ignore[reportIncompatibleMethodOverride] -- torch's overloads
        """Update every weight that has a gradient."""
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


_COEFFICIENTS = (3.4445, -4.7750, 2.0315)
_ITERATIONS = 5
_EPSILON = 1e-7
_RMS_OF_ADAMW = 0.2


def muon_maps(model: nn.Module) -> dict[nn.Parameter, Weight]:
    """Return the weights in a model's body that act as matrices."""
    weights = find_weights(model.get_submodule("body"))
    return {each: found for each, found in weights.items() if found.role is WeightRole.MATRIX}


class Muon(torch.optim.Optimizer):
    """Muon for `maps`, matrix by matrix if a weight holds several, and AdamW for the other groups."""

    def __init__(
        self,
        maps: Mapping[nn.Parameter, Weight],
        rest: Iterable[dict[str, Any]],
        *,
        lr: float,
        momentum: float,
        betas: tuple[float, float],
        eps: float,
        weight_decay: float,
    ) -> None:
        self._maps = dict(maps)
        groups = [{"params": list(maps), "maps": True}, *({**group, "maps": False} for group in rest)]
        defaults = {"lr": lr, "momentum": momentum, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        super().__init__([group for group in groups if group["params"]], defaults)

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # pyright: ignore[reportIncompatibleMethodOverride] -- torch's overloads
        """Update every weight that has a gradient."""
        assert closure is None, "no closure: the gradients are already computed"
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is None:
                    continue
                weight.mul_(1 - group["lr"] * group["weight_decay"])
                if group["maps"]:
                    self._step_maps(weight, weight.grad, self._maps[weight], group)
                else:
                    self._step_as_adamw(weight, weight.grad, group)

    def _step_maps(self, weight: Tensor, gradient: Tensor, found: Weight, group: dict[str, Any]) -> None:
        if not (state := self.state[weight]):
            state["momentum"] = torch.zeros_like(weight)
        momentum: Tensor = state["momentum"]
        momentum.lerp_(gradient, 1 - group["momentum"])
        direction = gradient.lerp(momentum, group["momentum"])
        for part, step in zip(found.split_maps(weight), found.split_maps(direction), strict=True):
            matrix = orthogonalise(step.reshape(len(step), -1))  # (outputs, k * inputs) of a convolution
            size = _RMS_OF_ADAMW * math.sqrt(max(matrix.shape))
            part.add_(matrix.reshape(part.shape), alpha=-group["lr"] * size)

    def _step_as_adamw(self, weight: Tensor, gradient: Tensor, group: dict[str, Any]) -> None:
        state, (first, second) = self.state[weight], group["betas"]
        if not state:
            state.update(steps=0, mean=torch.zeros_like(weight), square=torch.zeros_like(weight))
        state["steps"] += 1
        state["mean"].lerp_(gradient, 1 - first)
        state["square"].mul_(second).addcmul_(gradient, gradient, value=1 - second)
        scale = (state["square"] / (1 - second ** state["steps"])).sqrt_().add_(group["eps"])
        weight.addcdiv_(state["mean"], scale, value=-group["lr"] / (1 - first ** state["steps"]))


def orthogonalise(matrix: Tensor) -> Tensor:
    """Orthogonalise a matrix: keep its singular vectors, and move its singular values to 0.7–1.2.

    It takes five Newton-Schulz iterations of a polynomial that is steep at 0 (Jordan et al. 2024).
    """
    a, b, c = _COEFFICIENTS
    tall = matrix.shape[0] > matrix.shape[1]
    x = matrix.T if tall else matrix
    x = x / x.norm().clamp(min=_EPSILON)
    for _ in range(_ITERATIONS):
        gram = x @ x.T
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.T if tall else x
