"""Metrics as they are listed: a line each."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from typing import Any

from ...plugins import OWN
from ...studies.catalog.metrics import METRICS, Metric, better_arrow
from ...studies.text.units import WIDTH


def format_metrics(metrics: Sequence[Metric]) -> list[str]:
    """Each metric by its name, with its title; the owner behind those of plug-ins."""
    names = max(len(_heading(metric)) for metric in metrics)
    indent = " " * (names + 3)
    texts = (f"{_heading(metric):<{names}}   {metric.title}{_owner(metric)}" for metric in metrics)
    return [line for text in texts for line in wrap(text, WIDTH, subsequent_indent=indent)]


def metric_to_dict(metric: Metric) -> dict[str, Any]:
    """All that is known of a metric, as plain data."""
    return {
        "name": metric.name,
        "title": metric.title,
        "higher_is_better": metric.higher_is_better,
        "decimals": metric.decimals,
        "indices": list(metric.index_titles),
        "owner": METRICS.owner(metric.name),
    }


def _heading(metric: Metric) -> str:
    return metric.name + better_arrow(metric)


def _owner(metric: Metric) -> str:
    owner = METRICS.owner(metric.name)
    return "" if owner == OWN else f" · {owner}"
