"""The metrics that trials report, each with its title, better direction and decimals.

A metric with an index is a family of numbers, stored in the long table of metrics under names such as
`bleu[10-20]`, `gate[12]` or `attention[3,7]`: up to three indices, each a number, a range or a word.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import ConfigDict, TypeAdapter


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A measured quantity; `higher_is_better` is None where neither direction is better."""

    name: str
    title: str  # as a caption begins
    higher_is_better: bool | None = None
    decimals: int
    axis_title: str = ""  # on an axis, if shorter than the title
    index_titles: tuple[str, ...] = ()  # what each index of a family is
    index_labels: tuple[str, ...] = ()  # families with the number to be written at each index
    noted: str = ""  # a family that is told below a figure, by the last of these indices
    steps_with_curriculum: bool = False  # whether it changes in steps of the task's curriculum
    has_quantiles: bool = False  # whether the members of the family stand for many more values
    is_probe: bool = False  # whether a probe measures it in trained models

    def format(self, value: float) -> str:
        """The number as tables print it: thousands grouped, a true minus, never minus zero."""
        return format(value, f"z,.{self.decimals}f").replace("-", "−")


def _read_metrics() -> dict[str, dict[str, Metric]]:
    """What is in `metrics.toml`, by heading and name; an unknown key is as wrong as a missing one."""
    tables = tomllib.loads(Path(__file__).with_name("metrics.toml").read_text(encoding="utf-8"))
    for metrics in tables.values():
        for name, table in metrics.items():
            table["name"] = name
    form = TypeAdapter(dict[str, dict[str, Metric]], config=ConfigDict(extra="forbid"))
    return form.validate_python(tables)


_TABLES = _read_metrics()

METRICS: Mapping[str, Metric] = _TABLES["metrics"]
"""Every metric by its name."""


PROBED_METRIC = "probed[asked]"
"""The metric that is stored for every probed model, whatever else could be measured."""


TUNED_METRICS = (
    "dev_bleu",
    "bleu_tuned",
    "bleu_tokenized",
    "beam_tuned",
    "length_penalty_tuned",
    "coverage_penalty_tuned",
)
"""The metrics that tuning the search for outputs measures, in models that translate."""

TUNED_METRIC = "bleu_tuned"
"""The metric that is stored for every model whose search was tuned."""


def metric_family(name: str) -> str:
    """The metric's name without its index: `bleu` of `bleu[10-20]`."""
    return name.partition("[")[0]


COSTS: Mapping[str, Metric] = _TABLES["costs"]
"""The costs in a trial's row in the store, by column name."""

ANALYTIC_COSTS = ("parameters", "flops")
"""Costs that are counted, not measured; one that all trials of a cell share has no spread."""

METRICS_AND_COSTS: Mapping[str, Metric] = {**METRICS, **COSTS}
"""Every metric and cost by name, without an index."""


def find_metric(name: str, digits: Mapping[str, int] | None = None) -> Metric:
    """The metric or cost of a name, with or without an index (`bleu[10-20]`); KeyError if there is none.

    `digits` overrides decimals by name.
    """
    found = METRICS_AND_COSTS[metric_family(name)]
    return replace(found, name=name, decimals=(digits or {}).get(name, found.decimals))


def better_arrow(metric: Metric) -> str:
    """The arrow in a heading towards better values; empty where neither direction is better."""
    return {True: " ↑", False: " ↓", None: ""}[metric.higher_is_better]


def with_sign(number: str) -> str:
    """A number's text with its sign: a true minus, and none before a zero."""
    text = number.removeprefix("-").removeprefix("−")
    if not text.strip("0.,"):
        return text
    return f"+{text}" if text == number else f"−{text}"
