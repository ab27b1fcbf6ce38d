"""Base classes and registration of plug-ins' loss terms and callbacks for [train]."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeVar

from pydantic import Field

from ...errors import argument_fault, check_arguments
from ...plugins import PluginError, Registry
from ..text.strict_model import KnownNames, NamedSettings
from .metrics import Metric
from .optimisers import SettingsEntry, register_settings

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingStep:
    """The argument of a loss term at a training step: inputs, outputs and targets.

    `outputs` and `targets` have the form that registered metrics get (`Measure`), without padding; `inputs`
    are the model's inputs with padding. `activations` are the outputs of the modules that the term watches,
    each with the module's name, in the order of computation.

    `state` belongs to the term: tensors and plain values that it stores there are part of the checkpoint.
    Random numbers from torch's global generator depend on the trial's seed, as dropout does.
    """

    model: nn.Module
    inputs: Tensor
    outputs: Tensor
    targets: Tensor
    activations: Sequence[tuple[str, Tensor]]
    step: int  # counted from 1
    state: dict[str, Any]


LOSS_TERMS: Registry[SettingsEntry[LossTerm]] = Registry("loss term")
"""Every loss term by its name; all come from plug-ins."""


class LossTerm(NamedSettings, ABC):
    """Base class of a plug-in's loss term; its fields are keys of `[[train.loss_terms]]`.

    The term's mean over the steps of an epoch, without the weight, is reported as a metric of the term's
    name.
    """

    registry: ClassVar = LOSS_TERMS

    name: Annotated[str, KnownNames(lambda: LOSS_TERMS)]
    """the name of the term"""
    weight: float = Field(default=1.0, allow_inf_nan=False)
    """the factor of the term in the loss"""

    @property
    def watches(self) -> tuple[str, ...]:
        """Patterns such as `body.layers.*.part` for the modules whose outputs the term needs."""
        return ()

    @abstractmethod
    def compute(self, step: TrainingStep) -> Tensor:
        """Compute the term's value at a training step, as a scalar tensor with gradients."""


TermT = TypeVar("TermT", bound=LossTerm)


def register_loss_term(
    name: str, *, title: str, source: str, higher_is_better: bool | None = None, decimals: int = 3
) -> Callable[[type[TermT]], type[TermT]]:
    """Return a decorator that registers a subclass of LossTerm under a name.

    `title` is the title of the metric with the term's name. Raises PluginError for a taken name, and for keys
    without a meaning or a default.
    """
    metric = Metric(name=name, title=title, higher_is_better=higher_is_better, decimals=decimals)
    return register_settings(LossTerm, name, source=source, title=title, metrics=[metric])


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingMoment:
    """The state of a training between two steps, which a callback receives.

    `model` is a copy of the model in evaluation mode, without gradients: changes to it do not affect the
    training. `metrics` has the metrics of the epoch so far. `state` belongs to the callback: tensors and
    plain values that it stores there are part of the checkpoint. Random numbers from torch's global generator
    depend only on the trial's seed, the callback's name and the epoch.
    """

    model: nn.Module
    device: torch.device
    epoch: int
    step: int
    metrics: Mapping[str, float]
    state: dict[str, Any]


CALLBACKS: Registry[SettingsEntry[Callback]] = Registry("callback")
"""Every callback by its name; all come from plug-ins."""


class Callback(NamedSettings, ABC):
    """Base class of a plug-in's callback; its fields are keys of `[[train.callbacks]]`.

    A training that resumes after an interruption does not call `on_start` again. A training that fails does
    not call `on_end`.
    """

    registry: ClassVar = CALLBACKS

    name: Annotated[str, KnownNames(lambda: CALLBACKS)]
    """the name of the callback"""

    def on_start(self, moment: TrainingMoment) -> None:
        """Run before the first step of a training."""

    def on_epoch_end(self, moment: TrainingMoment) -> Mapping[str, float]:
        """Run after the evaluation of each epoch; return metrics of the epoch."""
        return {}

    def on_end(self, moment: TrainingMoment) -> Mapping[str, float]:
        """Run after the last call of `on_epoch_end`; return further metrics of the last epoch."""
        return {}


MOMENTS = ("on_start", "on_epoch_end", "on_end")
"""The methods that a callback may define."""


CallbackT = TypeVar("CallbackT", bound=Callback)


def register_callback(
    name: str, *, title: str, source: str, metrics: Mapping[str, str] | None = None
) -> Callable[[type[CallbackT]], type[CallbackT]]:
    """Return a decorator that registers a subclass of Callback under a name.

    `metrics` has the title of each metric that the callback may report. Raises PluginError for a taken name,
    and for keys without a meaning or a default.
    """
    fault = argument_fault("metrics", metrics, (Mapping, type(None)), "a title for each metric by name")
    check_arguments(fault, error=PluginError)
    brought = [Metric(name=metric, title=words, decimals=3) for metric, words in (metrics or {}).items()]

    def find_faults(settings: type[CallbackT]) -> list[str]:
        if all(getattr(settings, each) is getattr(Callback, each) for each in MOMENTS):
            return [f"{settings.__name__}: expected a definition of {' or '.join(MOMENTS)}"]
        return []

    return register_settings(
        Callback, name, source=source, title=title, metrics=brought, find_faults=find_faults
    )
