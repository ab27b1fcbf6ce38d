"""Learning-rate schedules by their names in `train.schedule`, built in or from plug-ins."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Annotated, ClassVar, TypeVar

from pydantic import Field, model_validator

from ...plugins import Registry
from ..text.strict_model import KnownNames, NamedSettings
from .registered_settings import SettingsEntry, register_settings

SCHEDULES: Registry[SettingsEntry[ScheduleSettings]] = Registry("schedule")
"""Every schedule by its name."""


class ScheduleSettings(NamedSettings):
    """Settings of `train.schedule`: the learning rate over the steps; `lr` is its peak.

    The rate rises linearly over the first `warmup` steps, and then follows the schedule.
    """

    registry: ClassVar = SCHEDULES

    name: Annotated[str, KnownNames(lambda: SCHEDULES)] = "constant"
    """the schedule after the warm-up: constant, linear, inverse_sqrt, cosine, plateau, milestones, recent or
    warmup_stable_decay"""
    warmup: int = Field(default=0, ge=0)
    """warm-up steps, over which the learning rate rises linearly"""


class OwnScheduleSettings(ScheduleSettings):
    """Settings of the built-in schedules in `train.schedule`.

    constant stays at the peak. linear and cosine (half a period) fall to `floor` at the last step.
    warmup_stable_decay stays at the peak until `cooldown` steps before the end, and then falls linearly to
    `floor`. inverse_sqrt falls as (warmup / step) ** 0.5 (Vaswani et al. 2017, equation 3, whose highest
    value is (d_model * warmup) ** -0.5). plateau divides the rate by ten whenever the dev loss has not
    improved for `patience` epochs. milestones divides it by ten after each of the listed steps. recent
    compares the mean training loss of the last `every` steps with the `patience` means before. If it is worse
    than all of them, the rate is multiplied by `decay` (the program of Kaiser and Bengio 2016).
    """

    patience: int = Field(default=5, ge=1)
    """for plateau: epochs without a better dev loss before the rate falls; for recent: the number of earlier
    means to compare"""
    milestones: Annotated[tuple[Annotated[int, Field(ge=1)], ...], Field(strict=False)] = ()
    """for milestones: steps after which the learning rate is divided by ten"""
    decay: float = Field(default=0.995, gt=0, lt=1)
    """for recent: the factor by which the learning rate is multiplied"""
    every: int = Field(default=100, ge=1)
    """for recent: the number of steps in one mean"""
    floor: float = Field(default=0.0, ge=0, lt=1)
    """for linear, cosine and warmup_stable_decay: the learning rate at the last step, as a fraction of the
    peak"""
    cooldown: int = Field(default=0, ge=0)
    """for warmup_stable_decay: the number of final steps over which the rate falls"""

    @model_validator(mode="after")
    def _check_steps(self) -> OwnScheduleSettings:
        if self.name == "inverse_sqrt" and self.warmup < 1:
            raise ValueError("inverse_sqrt needs a warmup of at least 1 step")
        if (self.name == "milestones") != bool(self.milestones):
            raise ValueError(f"expected milestones with the schedule of that name, got {self.name}")
        if (self.name == "warmup_stable_decay") != bool(self.cooldown):
            raise ValueError(f"expected a cooldown with the schedule warmup_stable_decay, got {self.name}")
        if self.floor and self.name not in FALLING:
            raise ValueError(f"expected a floor with {', '.join(FALLING)}, got {self.name}")
        return self


class PluginSchedule(ScheduleSettings, ABC):
    """`train.schedule` of a plug-in's schedule: its keys, and its rule."""

    @abstractmethod
    def share(self, step: int, total_steps: int) -> float:
        """Return the learning rate at a step after the warm-up, counted from 1, as a fraction of the peak."""


FALLING = ("linear", "cosine", "warmup_stable_decay")
"""The schedules that fall to a floor."""

for _name, _source in {
    "constant": "",
    "linear": "",
    "inverse_sqrt": "Vaswani et al. 2017, equation 3",
    "cosine": "Loshchilov and Hutter 2017",
    "plateau": "",
    "milestones": "",
    "recent": "the program of Kaiser and Bengio 2016",
    "warmup_stable_decay": "Hu et al. 2024, section 4",
}.items():
    SCHEDULES.register(
        _name, SettingsEntry(name=_name, source=_source, settings=OwnScheduleSettings), own=True
    )

SettingsT = TypeVar("SettingsT", bound=PluginSchedule)


def register_schedule(name: str, *, source: str) -> Callable[[type[SettingsT]], type[SettingsT]]:
    """Return a decorator that registers a schedule by its class of settings in `train.schedule`.

    Raise ValueError for a taken name, and for keys without a meaning or a default.
    """
    return register_settings(PluginSchedule, name, source=source)


def rates_depend_on_length(schedule: ScheduleSettings, steps: int) -> bool:
    """Return whether a learning rate within the first `steps` steps depends on the total number of steps.

    A plug-in's schedule counts as dependent after its warm-up.
    """
    if schedule.name == "warmup_stable_decay" or isinstance(schedule, PluginSchedule):
        return steps + 1 >= schedule.warmup
    return schedule.name in FALLING and steps + 1 > schedule.warmup
