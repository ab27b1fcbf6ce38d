"""Metrics of plug-ins, measured along with those of an objective."""

from __future__ import annotations

import math
from typing import SupportsFloat

from torch import Tensor

from ...plugins import plugin_errors
from ...studies.catalog.metrics import METRICS, Measure
from ...studies.catalog.tasks import TaskKind
from .base import Metrics


class RegisteredMetrics:
    """One evaluation of what is registered for a kind of task, on one of its splits if it has any."""

    def __init__(self, kind: TaskKind, split: str = "") -> None:
        self._measures: dict[str, Measure] = {}
        for name, metric in METRICS.items():
            if metric.measure is not None and kind in metric.kinds and metric.split == split:
                with plugin_errors("metric", name, metric.measure):
                    self._measures[name] = metric.measure()

    def update(self, outputs: Tensor, targets: Tensor, valid: Tensor | None = None) -> None:
        """Take a batch into account, or what is valid of it, in the form that `Measure.update` has."""
        if self._measures and valid is not None:
            outputs, targets = outputs[valid], targets[valid]
        for name, measure in self._measures.items():
            with plugin_errors("metric", name, METRICS[name].measure):
                measure.update(outputs, targets)

    def compute(self) -> Metrics:
        """Return each metric over all batches; NaN for one without a value."""
        found: Metrics = {}
        for name, measure in self._measures.items():
            with plugin_errors("metric", name, METRICS[name].measure):
                found[name] = reported_number(measure.compute())
        return found


def reported_number(value: SupportsFloat | None) -> float:
    """Return what a plug-in reports as a number; NaN for None, which says that there is no value."""
    return math.nan if value is None else float(value)
