"""What a table can show of a trial: the metrics that it reports, and what it cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from .metrics import METRICS, Metric, family

COSTS: Mapping[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric(name="parameters", title="Parameters", higher=None, decimals=0),
        Metric(name="flops", title="Operations of the training", higher=None, decimals=0),
        Metric(name="seconds", title="Training time, s", higher=False, decimals=1),
        Metric(name="peak_mib", title="Peak memory, MiB", higher=False, decimals=1),
    )
}
"""What a trial's row in the store says of its cost, by the name of the column."""

SHARED = ("parameters", "flops")
"""Costs that are counted, not measured: where all trials of a cell share one, it has no spread."""

MEASURES: Mapping[str, Metric] = {**METRICS, **COSTS}
"""Every name that a column may have, without an index."""


def measure(name: str, digits: Mapping[str, int] | None = None) -> Metric:
    """The metric or cost of a name, also one with an index such as `bleu[10-20]`; KeyError if there is none.

    `digits` has decimals by name where a table asks for others.
    """
    found = MEASURES[family(name)]
    return replace(found, name=name, decimals=(digits or {}).get(name, found.decimals))


def arrow(metric: Metric) -> str:
    """The sign of the better side, as a heading has it; nothing where neither is better."""
    return {True: " ↑", False: " ↓", None: ""}[metric.higher]


def signed(number: str) -> str:
    """A number's text with its sign in front: a true minus, and nothing before a zero."""
    text = number.removeprefix("-").removeprefix("−")
    if not text.strip("0.,"):
        return text
    return f"+{text}" if text == number else f"−{text}"
