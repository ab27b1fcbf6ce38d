"""Optimisers by their names in `train.optimizer`, built in or from plug-ins."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeVar

from pydantic import Field, model_validator

from ...plugins import Registry
from ..text.strict_model import KnownNames, NamedSettings
from .registered_settings import SettingsEntry, register_settings

if TYPE_CHECKING:
    import torch


OPTIMIZERS: Registry[SettingsEntry[OptimizerSettings]] = Registry("optimizer")
"""Every optimiser by its name."""


class OptimizerSettings(NamedSettings):
    """`train.optimizer`: the rule that updates the weights, and its peak learning rate."""

    registry: ClassVar = OPTIMIZERS

    name: Annotated[str, KnownNames(lambda: OPTIMIZERS)]
    """the rule, such as adam, adamw, adagrad, sgd, lion, adafactor or muon"""
    lr: float = Field(gt=0, allow_inf_nan=False)
    """the peak learning rate"""

    @property
    def state_per_weight(self) -> int:
        """The maximum number of state values for each parameter, for memory estimates."""
        return 2

    @property
    def state_depends_on_shapes(self) -> bool:
        """True if the rule keeps less state for some weights, depending on names and shapes."""
        return False


Betas = Annotated[
    tuple[Annotated[float, Field(ge=0, lt=1)], Annotated[float, Field(ge=0, lt=1)]], Field(strict=False)
]
"""The decay rates of two moments."""


class OwnOptimizerSettings(OptimizerSettings):
    """Settings of the built-in optimisers in `train.optimizer`."""

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

    @model_validator(mode="after")
    def _check_momentum(self) -> OwnOptimizerSettings:
        if self.momentum is not None and self.name not in MOMENTUMS:
            raise ValueError(f"{self.name} has no momentum; only {' and '.join(MOMENTUMS)} have")
        return self

    @property
    def state_per_weight(self) -> int:
        """The number of moments. Muon keeps one for matrices; Adafactor keeps less for matrices."""
        return 1 if self.name == "sgd" and self.own_momentum else _MOMENTS[self.name]

    @property
    def state_depends_on_shapes(self) -> bool:
        """True if the moments depend on the weights' names and shapes."""
        return self.name in ("muon", "adafactor")

    @property
    def own_momentum(self) -> float:
        """The momentum of the rule."""
        return MOMENTUMS[self.name] if self.momentum is None else self.momentum


class PluginOptimizer(OptimizerSettings, ABC):
    """`train.optimizer` of a plug-in's rule: its keys, and its factory."""

    @abstractmethod
    def build(self, model: torch.nn.Module) -> torch.optim.Optimizer:
        """Build the optimiser of a model's weights, each in one parameter group.

        `lr` is the peak learning rate.
        """


MOMENTUMS: Mapping[str, float] = {"sgd": 0.0, "muon": 0.95}
"""The default momentum of rules with a momentum setting."""

_MOMENTS: Mapping[str, int] = {
    **dict.fromkeys(("adam", "adamw", "muon"), 2),
    **dict.fromkeys(("adagrad", "lion", "adafactor"), 1),
    "sgd": 0,
}
"""The maximum number of state values per parameter, for each rule."""

for _name, _source in {
    "adam": "Kingma and Ba 2015",
    "adamw": "Loshchilov and Hutter 2019",
    "adagrad": "Duchi et al. 2011",
    "sgd": "Robbins and Monro 1951; Polyak 1964",
    "lion": "Chen et al. 2023, algorithm 2",
    "adafactor": "Shazeer and Stern 2018",
    "muon": "Jordan et al. 2024; Liu et al. 2025",
}.items():
    OPTIMIZERS.register(
        _name, SettingsEntry(name=_name, source=_source, settings=OwnOptimizerSettings), own=True
    )

SettingsT = TypeVar("SettingsT", bound=PluginOptimizer)


def register_optimizer(name: str, *, source: str) -> Callable[[type[SettingsT]], type[SettingsT]]:
    """Return a decorator that registers an optimiser by its class of settings in `train.optimizer`.

    Raise ValueError for a taken name, and for keys without a meaning or a default.
    """
    return register_settings(PluginOptimizer, name, source=source, required=("name", "lr"))


def changed_optimizer(settings: OptimizerSettings, changes: Mapping[str, Any]) -> OptimizerSettings:
    """Return the settings with other values of some keys; raise ValueError for keys that they lack.

    Only the learning rate of a plug-in's optimiser can change, because the meaning of its other keys is
    unknown.
    """
    if others := [key for key in changes if key != "lr"] if isinstance(settings, PluginOptimizer) else []:
        raise ValueError(
            f"expected only changes of the lr of {settings.name}, a plug-in, got {', '.join(others)}"
        )
    return type(settings).model_validate({**settings.model_dump(), **changes})
