"""What plug-ins do beside a training, by the names of `[[train.callbacks]]`."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from ...plugins import OpenRegistry
from ..text.strict_model import KnownNames, StrictModel, class_faults
from .metrics import METRICS, Metric
from .registered_settings import read_registered

if TYPE_CHECKING:
    import torch
    from torch import nn


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingMoment:
    """What a callback sees of a training between its steps.

    `model` is a copy of the model as it is evaluated, in evaluation mode and without gradients: nothing
    that is done to it touches the training.
    `metrics` are those of the epoch so far. `state` is the callback's own: what it keeps in it, tensors and
    plain values, is part of the checkpoint. What it draws from torch's global generator depends on the
    trial's seed, its name and the epoch alone.
    """

    model: nn.Module
    device: torch.device
    epoch: int
    step: int
    metrics: Mapping[str, float]
    state: dict[str, Any]


class Callback(StrictModel, ABC):
    """`[[train.callbacks]]` of a plug-in's callback: its keys, and what it does.

    A training that goes on after an interruption does not start again, and one that fails does not end.
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


CALLBACKS: OpenRegistry[CallbackEntry] = OpenRegistry("callback")
"""Every callback by its name; all are of plug-ins."""

CallbackT = TypeVar("CallbackT", bound=Callback)


def register_callback(
    name: str, *, title: str, source: str, metrics: Mapping[str, str] | None = None
) -> Callable[[type[CallbackT]], type[CallbackT]]:
    """A decorator that adds a callback, its class being that of the settings in `[[train.callbacks]]`.

    `metrics` has the title of each metric that it may report. Raises ValueError for a taken name, and for
    keys without a meaning or a default.
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
    """The settings of one of `[[train.callbacks]]`; anything else unchanged."""
    return read_registered(table, CALLBACKS, lambda entry: entry.settings)
