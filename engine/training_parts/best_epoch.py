"""The best epoch of a training so far, with the weights that it had."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from ...studies.catalog.metrics import METRICS


@dataclass(frozen=True, slots=True, kw_only=True)
class BestEpoch:
    """The best value of `metric` after any epoch, that epoch, and its weights on the CPU.

    The weights are those with which the model was evaluated: the average, where a training has one. Before
    the first finite value there is no best epoch.
    """

    metric: str
    value: float | None = None
    epoch: int = 0
    weights: Mapping[str, Tensor] | None = None

    def after(self, epoch: int, measured: Mapping[str, float], model: nn.Module) -> BestEpoch:
        """Return the best epoch after another one; of equal values the first is the best."""
        value = measured[self.metric]
        sign = 1 if METRICS[self.metric].higher_is_better else -1
        if value != value or (self.value is not None and sign * value <= sign * self.value):  # noqa: PLR0124 -- NaN
            return self
        weights = {name: weight.to("cpu", copy=True) for name, weight in model.state_dict().items()}
        return BestEpoch(metric=self.metric, value=value, epoch=epoch, weights=weights)

    def state(self) -> dict[str, Any]:
        """Return everything needed to resume, as tensors and plain values."""
        return {"value": self.value, "epoch": self.epoch, "weights": self.weights}

    def restored(self, state: Mapping[str, Any]) -> BestEpoch:
        """Return the best epoch of a state."""
        return BestEpoch(metric=self.metric, **state)
