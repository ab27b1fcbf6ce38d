"""Optimisers and learning-rate schedules, built in or of plug-ins, that [train] can name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Generic, TypeVar

from pydantic import ConfigDict, Field, JsonValue, ValidationInfo, field_validator, model_validator

from ...plugins import Registry, check_part
from ..text.strict_model import KnownNames, NamedSettings, StrictModel, class_faults
from .metrics import METRICS, Metric

if TYPE_CHECKING:
    import torch

AnySettingsT = TypeVar("AnySettingsT", bound=StrictModel)


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsEntry(Generic[AnySettingsT]):
    """Registry entry for a class of settings, such as an optimiser's.

    It has the class, its title and its metrics. `source` is a publication or an author.
    """

    source: str
    settings: type[AnySettingsT]
    title: str = ""
    metrics: frozenset[str] = frozenset()


def register_settings(
    base: type[NamedSettings],
    name: str,
    *,
    source: str,
    title: str = "",
    metrics: Collection[Metric] = (),
    required: Collection[str] = ("name",),
    find_faults: Callable[[type[AnySettingsT]], list[str]] = lambda _: [],
) -> Callable[[type[AnySettingsT]], type[AnySettingsT]]:
    """Return a decorator that registers a class of settings under a name.

    Its `metrics` are registered as well. Raise PluginError for a taken name, and for keys without a meaning
    or a default, except the `required` ones.
    """

    def register(settings: type[AnySettingsT]) -> type[AnySettingsT]:
        check_part(class_faults(settings, base, required) or find_faults(settings))
        for metric in metrics:
            METRICS.register(metric.name, metric)
        names = frozenset(metric.name for metric in metrics)
        entry = SettingsEntry(source=source, settings=settings, title=title, metrics=names)
        base.registry.register(name, entry)
        return settings

    return register


SCHEDULES: Registry[SettingsEntry[ScheduleSettings]] = Registry("schedule")
"""Every schedule by its name."""


class ScheduleSettings(NamedSettings):
    """Settings of `train.schedule`: how the learning rate changes from step to step.

    The optimiser's `lr` is the peak of the rate. The rate rises linearly over the first `warmup` steps, and
    then follows the schedule.
    """

    registry: ClassVar = SCHEDULES

    name: Annotated[str, KnownNames(lambda: SCHEDULES)] = "constant"
    """the schedule after the warm-up: constant, linear, inverse_sqrt, cosine, plateau, milestones, recent or
    warmup_stable_decay"""
    warmup: int = Field(default=0, ge=0)
    """warm-up steps, over which the learning rate rises linearly"""


def _owned_key_fault(key: str, owner: str, name: str) -> str:
    if name == owner:
        return f"the schedule {owner} needs the key {key}"
    return f"only the schedule {owner} has the key {key}, got {name}"


FALLING = ("linear", "cosine", "warmup_stable_decay")
"""The schedules that fall to a floor."""


def _only_for(names: Collection[str], **keys: JsonValue) -> JsonValue:
    """Return a JSON Schema for keys of all parts but those with these names."""
    return {"if": {"properties": {"name": {"not": {"enum": [*names]}}}}, "then": {"properties": keys}}


def _needed_by(name: str, **keys: JsonValue) -> JsonValue:
    """Return a JSON Schema for keys that the part of this name needs."""
    its = {"properties": {"name": {"const": name}}, "required": ["name"]}
    return {"if": its, "then": {"properties": keys, "required": [*keys]}}


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

    model_config = ConfigDict(
        json_schema_extra={
            "allOf": [
                _only_for(("milestones",), milestones={"maxItems": 0}),
                _needed_by("milestones", milestones={"minItems": 1}),
                _only_for(("warmup_stable_decay",), cooldown={"maximum": 0}),
                _needed_by("warmup_stable_decay", cooldown={"minimum": 1}),
                _only_for(FALLING, floor={"maximum": 0}),
                _needed_by("inverse_sqrt", warmup={"minimum": 1}),
            ]
        }
    )

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
            raise ValueError(_owned_key_fault("milestones", "milestones", self.name))
        if (self.name == "warmup_stable_decay") != bool(self.cooldown):
            raise ValueError(_owned_key_fault("cooldown", "warmup_stable_decay", self.name))
        if self.floor and self.name not in FALLING:
            raise ValueError(f"expected a floor only with {', '.join(FALLING)}, got {self.name}")
        return self


class PluginSchedule(ScheduleSettings, ABC):
    """Base class of a plug-in's schedule: its keys of `train.schedule`, and the rate at each step."""

    @abstractmethod
    def share(self, step: int, total_steps: int) -> float:
        """Return the learning rate at a step as a fraction of the peak rate: a finite number of at least 0.

        Steps count from 1, the first step of the training, to `total_steps`, which include the warm-up. Steps
        below `warmup` do not call this method; the step `warmup` does. If [train] gives `seconds` instead of
        steps, `total_steps` is an estimate that changes from step to step.
        """


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
    SCHEDULES.register(_name, SettingsEntry(source=_source, settings=OwnScheduleSettings), own=True)

ScheduleT = TypeVar("ScheduleT", bound=PluginSchedule)


def register_schedule(name: str, *, source: str) -> Callable[[type[ScheduleT]], type[ScheduleT]]:
    """Return a decorator that registers a schedule.

    The decorated class has the schedule's settings in `train.schedule`. Its `share` gives the rate from the
    step `warmup` on (see `PluginSchedule.share`). Raise PluginError for a taken name, and for keys without a
    meaning or a default.
    """
    return register_settings(PluginSchedule, name, source=source)


def rates_depend_on_length(schedule: ScheduleSettings, steps: int) -> bool:
    """Return whether training for more steps changes the learning rates of the first `steps` steps.

    A plug-in's schedule counts as dependent after its warm-up.
    """
    # + 1, because after each step the rate of the next step is set
    if schedule.name == "warmup_stable_decay" or isinstance(schedule, PluginSchedule):
        return steps + 1 >= schedule.warmup
    # at the last step of the warm-up these schedules are still at the peak
    return schedule.name in FALLING and steps + 1 > schedule.warmup


OPTIMIZERS: Registry[SettingsEntry[OptimizerSettings]] = Registry("optimizer")
"""Every optimiser by its name."""


class OptimizerSettings(NamedSettings):
    """Settings of `train.optimizer`: the rule that updates the weights, and its peak learning rate."""

    registry: ClassVar = OPTIMIZERS

    name: Annotated[str, KnownNames(lambda: OPTIMIZERS)]
    """the rule, such as adam, adamw, adagrad, sgd, lion, adafactor or muon"""
    lr: float = Field(gt=0, allow_inf_nan=False)
    """the peak learning rate"""


Betas = Annotated[
    tuple[Annotated[float, Field(ge=0, lt=1)], Annotated[float, Field(ge=0, lt=1)]], Field(strict=False)
]
"""The decay rates of the first and the second moment."""


MOMENTUMS: Mapping[str, float] = {"sgd": 0.0, "muon": 0.95}
"""The default momentum of rules with a momentum setting."""


class OwnOptimizerSettings(OptimizerSettings):
    """Settings of the built-in optimisers in `train.optimizer`."""

    model_config = ConfigDict(json_schema_extra={"allOf": [_only_for(MOMENTUMS, momentum={"type": "null"})]})

    weight_decay: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    """the strength of weight decay"""
    betas: Betas = (0.9, 0.999)
    """for rules with two moments, such as adam: the decay rates of the moments"""
    eps: float = Field(default=1e-8, gt=0, allow_inf_nan=False)
    """for rules with a denominator, such as adam: the constant added to it"""
    decay_norms: bool = True
    """whether weight decay also applies to norms, biases, gains and gate rates, not only to matrices, filters
    and embeddings"""
    momentum: float | None = Field(default=None, ge=0, lt=1)
    """for sgd and muon: the momentum (default: 0 for sgd, 0.95 for muon)"""

    @field_validator("momentum")
    @classmethod
    def _check_momentum(cls, momentum: float | None, info: ValidationInfo) -> float | None:
        name = info.data.get("name")
        if momentum is not None and name and name not in MOMENTUMS:
            raise ValueError(f"{name} has no momentum; {' and '.join(MOMENTUMS)} have one")
        return momentum

    @property
    def own_momentum(self) -> float:
        """The momentum in the settings, or else the default momentum of this optimiser."""
        return MOMENTUMS[self.name] if self.momentum is None else self.momentum


class PluginOptimizer(OptimizerSettings, ABC):
    """Base class of a plug-in's optimiser: its keys of `train.optimizer`, and how it is built."""

    @abstractmethod
    def build(self, model: torch.nn.Module) -> torch.optim.Optimizer:
        """Build the optimiser of a model.

        Each weight of the model must be in exactly one parameter group. `lr` is the peak learning rate.
        """


for _name, _source in {
    "adam": "Kingma and Ba 2015",
    "adamw": "Loshchilov and Hutter 2019",
    "adagrad": "Duchi et al. 2011",
    "sgd": "Robbins and Monro 1951; Polyak 1964",
    "lion": "Chen et al. 2023, algorithm 2",
    "adafactor": "Shazeer and Stern 2018",
    "muon": "Jordan et al. 2024; Liu et al. 2025",
}.items():
    OPTIMIZERS.register(_name, SettingsEntry(source=_source, settings=OwnOptimizerSettings), own=True)

SettingsT = TypeVar("SettingsT", bound=PluginOptimizer)


def register_optimizer(name: str, *, source: str) -> Callable[[type[SettingsT]], type[SettingsT]]:
    """Return a decorator that registers an optimiser.

    The decorated class has the optimiser's settings in `train.optimizer`. Raise PluginError for a taken name,
    and for keys without a meaning or a default.
    """
    return register_settings(PluginOptimizer, name, source=source, required=("name", "lr"))
