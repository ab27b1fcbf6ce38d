"""Settings and hooks of `[[train.callbacks]]`: what plug-ins do beside a training."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeVar

from ...plugins import Registry
from ..text.strict_model import KnownNames, NamedSettings
from .metrics import Metric
from .registered_settings import SettingsEntry, register_settings

if TYPE_CHECKING:
    import torch
    from torch import nn


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingMoment:
    """A training as a callback sees it between two steps.

    `model` is a copy of the model in evaluation mode, without gradients: nothing that a callback does to it
    touches the training. `metrics` are those of the epoch so far. `state` belongs to the callback: tensors
    and plain values that it stores there are part of the checkpoint. Draws from torch's global generator
    depend only on the trial's seed, its name and the epoch.
    """

    model: nn.Module
    device: torch.device
    epoch: int
    step: int
    metrics: Mapping[str, float]
    state: dict[str, Any]


CALLBACKS: Registry[SettingsEntry[Callback]] = Registry("callback")
"""Every callback by its name; all are of plug-ins."""


class Callback(NamedSettings, ABC):
    """Settings of a plug-in's callback in `[[train.callbacks]]`, and its hooks.

    A training that resumes after an interruption does not call `start` again, and one that fails does not
    call `end`.
    """

    registry: ClassVar = CALLBACKS

    name: Annotated[str, KnownNames(lambda: CALLBACKS)]
    """the callback"""

    def on_start(self, moment: TrainingMoment) -> None:
        """Before the first step."""

    def on_epoch_end(self, moment: TrainingMoment) -> Mapping[str, float]:
        """After the evaluation of each epoch; metrics of the epoch."""
        del moment
        return {}

    def on_end(self, moment: TrainingMoment) -> Mapping[str, float]:
        """After the last epoch, behind `on_epoch_end`; metrics of the last epoch."""
        del moment
        return {}


MOMENTS = ("on_start", "on_epoch_end", "on_end")
"""What a callback may define."""


CallbackT = TypeVar("CallbackT", bound=Callback)


def register_callback(
    name: str, *, title: str, source: str, metrics: Mapping[str, str] | None = None
) -> Callable[[type[CallbackT]], type[CallbackT]]:
    """Return a decorator that registers a callback by the class of its settings in `[[train.callbacks]]`.

    `metrics` has the title of each metric that the callback may report. Raises ValueError for a taken name,
    and for keys without a meaning or a default.
    """
    brought = [Metric(name=metric, title=words, decimals=3) for metric, words in (metrics or {}).items()]

    def find_faults(settings: type[CallbackT]) -> list[str]:
        if all(getattr(settings, each) is getattr(Callback, each) for each in MOMENTS):
            return [f"{settings.__name__}: expected a definition of {' or '.join(MOMENTS)}"]
        return []

    return register_settings(
        Callback, name, source=source, title=title, metrics=brought, find_faults=find_faults
    )
