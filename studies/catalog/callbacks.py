"""Settings and hooks of `[[train.callbacks]]`: what plug-ins do beside a training."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from ...plugins import Registry
from ..text.strict_model import KnownNames, StrictModel, class_faults
from .metrics import METRICS, Metric
from .registered_settings import read_registered

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


class Callback(StrictModel, ABC):
    """Settings of a plug-in's callback in `[[train.callbacks]]`, and its hooks.

    A training that resumes after an interruption does not call `start` again, and one that fails does not
    call `end`.
    """

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


@dataclass(frozen=True, slots=True, kw_only=True)
class CallbackEntry:
    """A callback, with its metrics; `source` is who has thought of it."""

    name: str
    title: str
    source: str
    metrics: frozenset[str]
    settings: type[Callback]


CALLBACKS: Registry[CallbackEntry] = Registry("callback")
"""Every callback by its name; all are of plug-ins."""

CallbackT = TypeVar("CallbackT", bound=Callback)


def register_callback(
    name: str, *, title: str, source: str, metrics: Mapping[str, str] | None = None
) -> Callable[[type[CallbackT]], type[CallbackT]]:
    """Return a decorator that registers a callback by the class of its settings in `[[train.callbacks]]`.

    `metrics` has the title of each metric that the callback may report. Raises ValueError for a taken name,
    and for keys without a meaning or a default.
    """

    def register(settings: type[CallbackT]) -> type[CallbackT]:
        faults = class_faults(settings, Callback)
        if not faults and all(getattr(settings, each) is getattr(Callback, each) for each in MOMENTS):
            faults = [f"{settings.__name__}: expected a definition of {' or '.join(MOMENTS)}"]
        if faults:
            raise ValueError("; ".join(faults))
        for metric, words in (metrics or {}).items():
            METRICS.register(metric, Metric(name=metric, title=words, decimals=3))
        CALLBACKS.register(
            name,
            CallbackEntry(
                name=name, title=title, source=source, metrics=frozenset(metrics or ()), settings=settings
            ),
        )
        return settings

    return register


def read_callback(table: object) -> object:
    """Return the settings of one table of `[[train.callbacks]]`; return anything else unchanged."""
    return read_registered(table, CALLBACKS, lambda entry: entry.settings)
