"""The metrics that plug-ins register, measured beside those of an objective."""

from __future__ import annotations

from torch import Tensor

from ...studies.catalog.metrics import METRICS, Measure
from ...studies.catalog.tasks import TaskKind
from .base import Metrics


class RegisteredMetrics:
    """One evaluation of what is registered for a kind of task, on one of its splits if it has any."""

    def __init__(self, kind: TaskKind, split: str = "") -> None:
        self._measures: dict[str, Measure] = {
            name: metric.measure()
            for name, metric in METRICS.items()
            if metric.measure is not None and kind in metric.kinds and metric.split == split
        }

    def update(self, outputs: Tensor, targets: Tensor, valid: Tensor | None = None) -> None:
        """Take a batch into account, or what is valid of it, in the form that `Measure.update` has."""
        for measure in self._measures.values():
            if valid is None:
                measure.update(outputs, targets)
            else:
                measure.update(outputs[valid], targets[valid])

    def compute(self) -> Metrics:
        """Each metric over all batches."""
        return {name: float(measure.compute()) for name, measure in self._measures.items()}
