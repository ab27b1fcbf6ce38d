"""Classes of settings that a table selects by its `name`, built in or from plug-ins."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Generic, TypeVar

from ..text.strict_model import NamedSettings, StrictModel, class_faults
from .metrics import METRICS, Metric

SettingsT = TypeVar("SettingsT", bound=StrictModel)


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsEntry(Generic[SettingsT]):
    """A name that a table can use, with its class of settings; `source` is the publication or author."""

    name: str
    source: str
    settings: type[SettingsT]
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
    find_faults: Callable[[type[SettingsT]], list[str]] = lambda _: [],
) -> Callable[[type[SettingsT]], type[SettingsT]]:
    """Return a decorator that registers a class of settings and its metrics.

    Raise ValueError for a taken name, and for keys without a meaning or a default, except the `required`
    ones.
    """

    def register(settings: type[SettingsT]) -> type[SettingsT]:
        if faults := class_faults(settings, base, required) or find_faults(settings):
            raise ValueError("; ".join(faults))
        for metric in metrics:
            METRICS.register(metric.name, metric)
        names = frozenset(metric.name for metric in metrics)
        entry = SettingsEntry(name=name, source=source, settings=settings, title=title, metrics=names)
        base.registry.register(name, entry)
        return settings

    return register
