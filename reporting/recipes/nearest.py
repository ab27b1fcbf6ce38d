"""The stored recipes that are most similar to a recipe, by the edit distance of their trees, with results."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from pathlib import Path
from statistics import fmean, stdev
from textwrap import wrap
from typing import Any

import polars as pl

from ...errors import ActivememError, argument_fault, check_arguments, nearest_hint, number_fault
from ...grammar import Expression, Recipe, RecipeError, parse
from ...grammar.difference import DistanceTree, describe_difference
from ...storage import Store, open_store, store_fault
from ...storage.rows import row_values
from ...studies.catalog.metrics import METRICS, METRICS_AND_COSTS, find_metric, metric_family
from ...studies.planning.final_values import DIVERGED, final_value, metric_names
from ...studies.resolve.trial import model_from_json
from ...studies.schema.factors import SEED
from ...studies.schema.settings import Level
from ...studies.text.units import WIDTH, align_columns
from ..outcomes import mark_diverged
from ..search.noise import cell_of

_SHOWN = 4
"""The maximum number of results to show for a recipe; further results are only counted."""

_INDENT = " " * 7

_TRAINING_LOSS = "loss"
"""The training metric, used as a result only if there is no other."""


class NearestError(ActivememError):
    """Error for invalid arguments of `nearest_recipes`. The message lists all faults."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredResult:
    """The results of a recipe under one set of settings, over all seeds.

    `mean` and `sd` of `metric` are over the `n` finished trainings that have this metric, and null if there
    are none. `ended` counts the trainings by status; those that diverged are in no mean.
    """

    study: str
    task: str
    levels: Mapping[str, Level]
    d_model: int
    parameters: int
    metric: str | None
    mean: float | None
    sd: float | None
    n: int
    ended: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class NearRecipe:
    """A stored recipe that is similar to the given recipe, with its results.

    `distance` and `difference` compare it with the given recipe.
    """

    recipe: str
    id: str
    distance: float
    difference: str
    results: tuple[StoredResult, ...]


def nearest_recipes(
    recipe: str | Expression,
    store: Store | str | Path,
    *,
    count: int = 5,
    task: str | None = None,
    metric: str | None = None,
) -> list[NearRecipe]:
    """Return the stored recipes with results that are most similar to a recipe, nearest first.

    There are at most `count`. Equally near recipes are in the order of their first training. Recipes with a
    block of a plug-in that is not loaded are left out. `task` and `metric` restrict the results to one task,
    or to those with the metric. By default each result shows its first metric that has a better direction.
    Raises RecipeError for a wrong recipe. Raises NearestError for a recipe with choices or holes, and if the
    store has no results of a task or metric. Raises StoreError for rows that activemem did not write.
    """
    check_arguments(
        store_fault(store),
        number_fault("count", count, least=1),
        argument_fault("task", task, (str, type(None)), "a name"),
        argument_fault("metric", metric, (str, type(None)), "a name"),
        error=NearestError,
    )
    asked, opened = parse(recipe), open_store(store)
    rows = _wanted_rows(asked, opened.trials(), task, metric)
    texts = rows.sort("started", "trial")["recipe"].unique(maintain_order=True).to_list()
    found = _nearest(asked, texts, count)
    by_recipe = mark_diverged(rows.filter(pl.col("recipe").is_in([each.text for _, each in found])), opened)
    status = pl.when(pl.col(DIVERGED).is_null()).then("status").otherwise(pl.lit(DIVERGED))
    groups = by_recipe.with_columns(status=status).sort("study", "trial").partition_by("recipe", as_dict=True)
    return [
        NearRecipe(
            recipe=each.text,
            id=each.id,
            distance=distance,
            difference=describe_difference(asked.root, each.root),
            results=tuple(_results(groups[each.text,].rows(named=True), metric)),
        )
        for distance, each in found
    ]


def _wanted_rows(asked: Recipe, trials: pl.DataFrame, task: str | None, metric: str | None) -> pl.DataFrame:
    faults: list[str] = []
    if open_ones := [*asked.holes, *(name for name, _ in asked.dimensions)]:
        faults.append(f"expected a recipe without choices or holes, got one with {', '.join(open_ones)} open")
    wanted = pl.lit(value=True)
    if task is not None:
        tasks = trials["task"].unique().sort().to_list()
        if task not in tasks:
            faults.append(f"task: the store has no results of '{task}'{nearest_hint(task, tasks)}")
        wanted &= pl.col("task") == task
    if metric is not None:
        names = sorted(metric_names(trials))
        if metric not in names:
            faults.append(f"metric: the store has no results of '{metric}'{nearest_hint(metric, names)}")
        wanted &= final_value(metric).is_finite()
    if faults:
        raise NearestError("\n".join(faults))
    return trials.filter(wanted)


def _nearest(asked: Recipe, texts: Sequence[str], count: int) -> list[tuple[float, Recipe]]:
    """Return the `count` recipes that are nearest to a recipe, with their distances.

    Recipes that share so few blocks that they cannot be among the nearest are not compared in full.
    """
    mine = DistanceTree(asked.root)
    bounds = sorted((mine.lower_bound(text), number) for number, text in enumerate(texts))
    best: list[tuple[float, int, Recipe]] = []
    for bound, number in bounds:
        if len(best) == count and bound > best[-1][0]:
            break  # the bounds are sorted, so all other recipes are at least this far away
        try:
            recipe = parse(texts[number])
        except RecipeError:  # a block of a plug-in that is not loaded
            continue
        found = mine.distance(DistanceTree(recipe.root)), number, recipe
        best = nsmallest(count, [*best, found], key=lambda each: each[:2])
    return [(distance, recipe) for distance, _, recipe in best]


def _results(rows: Sequence[Mapping[str, Any]], metric: str | None) -> Iterator[StoredResult]:
    cells: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in rows:
        cells.setdefault((row["study"], cell_of(row["settings"])), []).append(row)
    for (study, _), trials in cells.items():
        done = [row_values(row) for row in trials if row["status"] == "done"]
        name = metric or _main_metric(done)
        values = [each[name] for each in done if name in each and math.isfinite(each[name])] if name else []
        levels = json.loads(trials[0]["factors"])
        yield StoredResult(
            study=study,
            task=trials[0]["task"],
            levels={factor: level for factor, level in levels.items() if factor != SEED},
            d_model=model_from_json(trials[0]["settings"]).d_model,
            parameters=trials[0]["parameters"],
            metric=name,
            mean=fmean(values) if values else None,
            sd=stdev(values) if len(values) > 1 else None,
            n=len(values),
            ended=dict(Counter(row["status"] for row in trials)),
        )


def _main_metric(done: Sequence[Mapping[str, float]]) -> str | None:
    """Return the metric to show for stored trainings.

    It is the first in catalog order for which higher or lower is better. The training loss is used only if
    there is no other metric.
    """
    names = [name for name in METRICS if any(name in each for each in done)]
    directed = [name for name in names if METRICS[name].higher_is_better is not None]
    return min(directed, key=lambda name: name == _TRAINING_LOSS, default=None)


def format_nearest(found: Sequence[NearRecipe]) -> str:
    """Format the recipes with their distances and differences, each followed by its results."""
    lines: list[str] = []
    for each in found:
        lines.append(f"{each.distance:5.2f}  {each.recipe}   id {each.id}")
        if each.distance:
            lines += wrap(each.difference, WIDTH, initial_indent=_INDENT, subsequent_indent=_INDENT + "  ")
        shown = [_columns(result, each.recipe) for result in each.results[:_SHOWN]]
        lines += [_INDENT + row for row in align_columns(shown)]
        if len(each.results) > _SHOWN:
            lines.append(f"{_INDENT}and {len(each.results) - _SHOWN} more")
    return "\n".join(lines) if lines else "no recipe is stored"


def _columns(result: StoredResult, recipe: str) -> tuple[str, ...]:
    ended = ", ".join(f"{count} {status}" for status, count in result.ended.items() if status != "done")
    value = "no value"
    if result.metric is not None and result.mean is not None:
        known = metric_family(result.metric) in METRICS_AND_COSTS
        text = find_metric(result.metric).format if known else "{:.6g}".format
        spread = f" ± {text(result.sd)}" if result.sd is not None else ""
        value = f"{result.metric} {text(result.mean)}{spread} n={result.n}"
    words = f"{result.task} {recipe}"
    levels = [f"{name}={level}" for name, level in result.levels.items() if str(level) not in words]
    return result.study, result.task, value + (f" ({ended})" if ended else ""), ", ".join(levels)
