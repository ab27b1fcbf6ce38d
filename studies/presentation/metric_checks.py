"""Whether the metrics that tables name are known."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from ...diagnostics import nearest_hint
from ..catalog.metrics import METRICS_AND_COSTS, metric_family, unknown_metric
from ..text.toml_positions import KeyPath


def metric_faults(
    value: Sequence[str], digits: Mapping[str, int], others: Collection[str] = ()
) -> Iterator[tuple[KeyPath, str]]:
    """Unknown metrics, metrics listed twice, and digits of metrics that are neither in `value` nor `others`.

    A metric with an index is known by its family.
    """
    for number, name in enumerate(value):
        path: KeyPath = ("value",) if len(value) == 1 else ("value", number)
        if metric_family(name) not in METRICS_AND_COSTS:
            yield path, unknown_metric(name)
        elif name in value[:number]:
            yield path, f"the metric '{name}' is listed twice"
    shown = {*value, *others}
    for name in digits:
        if name not in shown:
            yield ("digits", name), f"unknown metric '{name}'{nearest_hint(name, shown)}"
