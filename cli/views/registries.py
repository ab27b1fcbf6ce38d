"""Lists of registered names: a line for each metric, optimiser, sampler or the like."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from textwrap import wrap
from typing import Any

from ...plugins import OWN, Registry
from ...studies.catalog.metrics import METRICS, Metric, better_arrow
from ...studies.text.units import WIDTH


def registered(registries: Mapping[str, Registry[Any]]) -> list[dict[str, str]]:
    """Return all entries of registries as plain data: the study key, name, source and owner of each.

    Entries have a title if the registry has titles.
    """
    return [
        {"key": key, "name": name, **_told(item), "owner": registry.owner(name)}
        for key, registry in registries.items()
        for name, item in registry.items()
    ]


def format_registered(listed: Sequence[Mapping[str, str]]) -> Iterator[str]:
    """Yield a heading for each key; below it each name with its source, and the owner of plug-ins' ones."""
    names = max((len(each["name"]) for each in listed), default=0)
    for key, group in groupby(listed, lambda each: each["key"]):
        yield key
        for each in group:
            what = f"{each['title']} ({each['source']})" if "title" in each else each["source"]
            line = f"  {each['name']:<{names}}   {what}{_owner(each['owner'])}"
            yield from wrap(line.rstrip(), WIDTH, subsequent_indent=" " * (names + 5))


def _told(item: Any) -> dict[str, str]:  # noqa: ANN401 -- of any registry
    """Return the description of a registered item."""
    return {**({"title": item.title} if hasattr(item, "title") else {}), "source": item.source}


def format_metrics(metrics: Sequence[Metric]) -> list[str]:
    """Return each metric's name with its title, and the owner of plug-ins' ones."""
    names = max(len(_heading(metric)) for metric in metrics)
    indent = " " * (names + 3)
    owners = (_owner(METRICS.owner(metric.name)) for metric in metrics)
    texts = (
        f"{_heading(metric):<{names}}   {metric.title}{owner}"
        for metric, owner in zip(metrics, owners, strict=True)
    )
    return [line for text in texts for line in wrap(text, WIDTH, subsequent_indent=indent)]


def metric_to_dict(metric: Metric) -> dict[str, Any]:
    """Return all facts about a metric, as plain data."""
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


def _owner(owner: str) -> str:
    return "" if owner == OWN else f" · {owner}"
