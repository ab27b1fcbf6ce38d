"""The probes that plug-ins register: what is measured in a trained model, and by what name."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from ...plugins import Registry
from .metrics import METRICS, Metric, kinds_of_task
from .tasks import Examples, TaskKind

if TYPE_CHECKING:
    from torch import nn

Measured = Mapping[str, float]
"""What was measured, by the index of each row; that without one has an empty index."""

MeasureModel = Callable[["nn.Module", Iterator[Examples]], Measured]
"""Measures a trained model, in evaluation on the CPU, over batches of its test examples."""

MeasureModelT = TypeVar("MeasureModelT", bound=MeasureModel)


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredProbe:
    """A probe, and the kinds of task whose models it measures."""

    name: str
    measure: MeasureModel
    kinds: frozenset[TaskKind]


PROBES: Registry[RegisteredProbe] = Registry("probe")
"""Every probe of plug-ins by its name, which is that of its metric."""


def register_probe(
    name: str,
    *,
    title: str,
    higher_is_better: bool | None = None,
    decimals: int = 3,
    index_titles: Collection[str] = (),
    kinds: Collection[str] = tuple(kind.name.lower() for kind in TaskKind),
) -> Callable[[MeasureModelT], MeasureModelT]:
    """Return a decorator that registers a probe.

    A probe is a function from a trained model and batches to numbers by index. It is the metric of its name,
    and each number is a member of it: `name[index]`. Raises ValueError for an unknown kind or a taken name.
    """
    asked = kinds_of_task(kinds)

    def register(measure: MeasureModelT) -> MeasureModelT:
        metric = Metric(
            name=name,
            title=title,
            higher_is_better=higher_is_better,
            decimals=decimals,
            index_titles=tuple(index_titles),
            is_probe=True,
        )
        METRICS.register(name, metric)
        PROBES.register(name, RegisteredProbe(name=name, measure=measure, kinds=asked))
        return measure

    return register
