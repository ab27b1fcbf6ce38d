"""The learning-rate schedules of a study's [train] table, built from torch's schedulers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from torch import Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import ReduceLROnPlateau

from ...studies.catalog.optimisers import OwnScheduleSettings, PluginSchedule, ScheduleSettings


class Schedule:
    """The learning rate of an optimiser: a linear warm-up, then the schedule of the settings."""

    def __init__(self, settings: ScheduleSettings, optimizer: Optimizer, total_steps: int) -> None:
        own = settings if isinstance(settings, OwnScheduleSettings) else OwnScheduleSettings()
        self._settings = settings
        self._recent = RecentLosses(own)
        self._optimizer, self._total_steps, self._steps = optimizer, total_steps, 0
        for group in optimizer.param_groups:
            group["initial_lr"] = group["lr"]
        self._set_rates()
        self._plateau = ReduceLROnPlateau(optimizer, patience=own.patience - 1, threshold=0, eps=0)

    def after_step(self, loss: Tensor) -> None:
        """Set the learning rate of the next step, given the loss of the last one."""
        if self._settings.name == "recent":
            self._recent.take(loss)
        if self._settings.name != "plateau" or self._warming_up:
            self._steps += 1
            self._set_rates()

    def _set_rates(self) -> None:
        share = self._recent.share * factor(self._settings, self._steps + 1, self._total_steps)
        for group in self._optimizer.param_groups:
            group["lr"] = group["initial_lr"] * share

    def after_epoch(self, measured: dict[str, float]) -> None:
        """Record the dev loss; after the warm-up a plateau schedule reacts to it."""
        if self._settings.name == "plateau" and not self._warming_up:
            self._plateau.step(measured["dev_loss"])

    def change_highest(self, rates: Sequence[float]) -> None:
        """Change the peak learning rates of weight groups; the current fraction of the peak stays."""
        for group, rate in zip(self._optimizer.param_groups, rates, strict=True):
            if rate != group["initial_lr"]:
                group["lr"], group["initial_lr"] = group["lr"] * (rate / group["initial_lr"]), rate

    @property
    def _warming_up(self) -> bool:
        return self._steps + 1 < self._settings.warmup

    def state(self) -> dict[str, Any]:
        """Return everything needed to resume, as plain values."""
        state = {"per_step": {"last_epoch": self._steps}, "plateau": self._plateau.state_dict()}
        return state | ({"recent": self._recent.state()} if self._settings.name == "recent" else {})

    def restore(self, state: dict[str, Any]) -> None:
        """Resume from a state; the optimiser restores its own state."""
        self._steps = state["per_step"]["last_epoch"]
        self._plateau.load_state_dict(state["plateau"])
        if "recent" in state:
            self._recent.restore(state["recent"])


class RecentLosses:
    """The current fraction of the peak learning rate, and the mean training losses that it depends on."""

    def __init__(self, settings: OwnScheduleSettings) -> None:
        self._settings = settings
        self._means: list[float] = []
        self._sum: Tensor | float = 0.0
        self._steps = 0
        self.share = 1.0

    def take(self, loss: Tensor) -> None:
        """Record the loss of a step; the fraction falls if a mean is worse than each of the last ones."""
        self._sum, self._steps = self._sum + loss, self._steps + 1
        if self._steps < self._settings.every:
            return
        mean, count = float(self._sum) / self._steps, self._settings.patience
        if len(self._means) == count and mean > max(self._means):
            self.share *= self._settings.decay
        self._means = [*self._means, mean][-count:]
        self._sum, self._steps = 0.0, 0

    def state(self) -> dict[str, Any]:
        """Return everything needed to resume, as plain values."""
        return {"means": self._means, "sum": float(self._sum), "steps": self._steps, "share": self.share}

    def restore(self, state: dict[str, Any]) -> None:
        """Resume from a state."""
        self._means, self._sum = state["means"], state["sum"]
        self._steps, self.share = state["steps"], state["share"]


def factor(settings: ScheduleSettings, step: int, total_steps: int) -> float:
    """Return the fraction of the peak learning rate at a step, counted from 1.

    "inverse_sqrt" falls as (warmup / step) ** 0.5 (Vaswani et al. 2017, equation 3, scaled to a maximum of
    1); "linear" and "cosine" fall to the floor at the last step, "milestones" to a tenth after each of them.
    """
    warmup = settings.warmup
    if step < warmup:
        return step / warmup
    if isinstance(settings, PluginSchedule):
        return settings.share(step, total_steps)
    assert isinstance(settings, OwnScheduleSettings), f"{settings.name} has settings of its own"
    return _own_share(settings, step, total_steps)


def _own_share(settings: OwnScheduleSettings, step: int, total_steps: int) -> float:
    warmup = settings.warmup
    share, floor = (step - warmup) / max(total_steps - warmup, 1), settings.floor
    match settings.name:
        case "inverse_sqrt":
            return math.sqrt(warmup / step)
        case "linear":
            return 1.0 - (1.0 - floor) * share
        case "cosine":
            return floor + (1.0 - floor) * 0.5 * (1.0 + math.cos(math.pi * share))
        case "warmup_stable_decay":
            fallen = min(max(0.0, 1.0 - (total_steps - step) / settings.cooldown), 1.0)
            return 1.0 - (1.0 - floor) * fallen
        case "milestones":
            return 0.1 ** sum(step > milestone for milestone in settings.milestones)
        case _:
            return 1.0
