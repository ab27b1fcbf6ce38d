"""The progress of the study, its failed trials with reasons, and the origin of its numbers.

A page may be built at any time. Of failures all are listed, since a table only marks how many of a cell's
seeds are missing. The names of the machines are left out: a page is for others.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import fsum
from typing import Any

import polars as pl

from ...studies.schema.level_names import level_text
from ...studies.schema.search_settings import SearchSettings, find_quantity
from ...studies.schema.settings import Level
from ...studies.searches.points import best_of, find_points
from ...studies.searches.words import best_words, left_out
from ...studies.study import Study
from ...studies.text.units import plural
from ..frames import study_levels
from ..provenance import short_commit, torch_words
from ..search.promotion import column_levels, column_names
from .inputs import PageInputs


def status(inputs: PageInputs) -> Mapping[str, object]:
    """Return the counts, the time that training took, the best points of a search, the best first."""
    own = inputs.own_outcomes
    return {
        "summary": inputs.status.summary(),
        "seconds": fsum(own["seconds"]) if len(own) else None,
        **_best(inputs.study, inputs.study.search, inputs.outcomes),
    }


def _best(study: Study, search: SearchSettings | None, outcomes: pl.DataFrame) -> Mapping[str, object]:
    if search is None:
        return {"words": "", "left_out": [], "best_points": []}
    found = find_points(study, outcomes)
    best = best_of(search, found)
    names = column_names(study)
    metrics = [find_quantity(each.name) for each in (*search.objectives, *search.bounds)]
    return {
        "words": best_words(found, len(best)),
        "left_out": [f"{plural(count, 'point')} left out: {reason}." for count, reason in left_out(found)],
        "measured": [*(each.name for each in search.objectives), *map(str, search.bounds)],
        "dimensions": names,
        "best_points": [
            (
                [
                    metric.format(value) if metric else ""
                    for metric, value in zip(metrics, (*each.means, *each.limited), strict=True)
                ],
                [_value(levels, name) for name in names],
            )
            for each in best
            for levels in [column_levels(study, each.values)]
        ],
    }


def _value(values: Mapping[str, Level], name: str) -> str:
    return level_text(values[name]) if name in values else "–"


def failures(inputs: PageInputs) -> Mapping[str, object] | None:
    """Return how often each reason occurred, then every failed trial with its levels."""
    failed = inputs.own_outcomes.filter(pl.col("status") == "failed").select("trial", "epochs", "reason")
    if not len(failed):
        return None
    levels = study_levels(inputs.study, inputs.outcomes)
    found = levels.join(failed, on="trial", maintain_order="left")
    return {
        "reasons": inputs.status.failure_reasons,
        "factors": levels.columns[1:],
        "trials": [
            (trial, each, epochs, (reason or "no reason stored").strip().partition("\n"))
            for trial, *each, epochs, reason in found.iter_rows()
        ],
    }


_KINDS = ("version", "commit", "torch_version", "cuda_version", "python_version", "device")


def provenance(inputs: PageInputs) -> Mapping[str, object] | None:
    """Return the programs and devices that trained, in the order of use, and the trials of other studies."""
    outcomes = inputs.own_outcomes
    if not len(outcomes):
        return None
    groups = outcomes.group_by(_KINDS).agg(
        pl.len().alias("trials"),
        pl.col("seconds").sort().sum(),
        pl.col("started").min().alias("first"),
        pl.col("finished").max().alias("last"),
    )
    others = outcomes.filter(pl.col("study") != inputs.study.name)
    return {
        "groups": [_told(group) for group in groups.sort("first", "last", *_KINDS).iter_rows(named=True)],
        "others": others.group_by("study").len().sort("study").iter_rows(),
    }


def _told(group: Mapping[str, Any]) -> dict[str, Any]:
    commit, torch_version = group["commit"], group["torch_version"]
    return {
        **group,
        "commit": short_commit(commit) if commit else "",
        "torch": torch_words(torch_version, group["cuda_version"]) if torch_version else "",
        "python": group["python_version"] or "",
    }
