"""Scores of methods over several tasks, with intervals from a stratified bootstrap (Agarwal et al. 2021).

The tasks are fixed, and runs are resampled within each task. Percentile intervals of so few runs are too
narrow. So an interval is the value ± t standard errors of the bootstrap (Hesterberg 2015, section 4),
multiplied by √(n / (n − 1)) for n runs of a task. Student's t has n − 1 degrees of freedom for each task that
decides the value: all tasks decide a mean, half of them an interquartile mean, and one or two a median.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl

from activemem import (
    FigureContent,
    PluginFigure,
    PluginTable,
    ResultCell,
    ResultRow,
    ShownResults,
    TableContent,
    register_kind,
)

RESAMPLES, SEED, THRESHOLDS = 9_999, 0, 101
BOOTSTRAP = f"95 % interval by a bootstrap of the seeds within tasks ({RESAMPLES:,} resamples, seed {SEED})"

Runs = list[list[float]]
"""The values of one method, task by task."""


def intervals(
    samples: Sequence[Any], statistic: Callable[..., Any], degrees: Sequence[float], limits: Sequence[float]
) -> Iterator[ResultCell]:
    """Yield each number of a statistic with its 95 % interval, which stays within `limits`.

    `statistic(*samples, axis=-1)` gives the numbers in the first dimension, and `degrees` has the degrees of
    freedom of each. A number has no interval if it does not vary, or if a sample has only one run.
    """
    from scipy.special import stdtrit  # noqa: PLC0415 -- it takes long to import
    from scipy.stats import bootstrap  # noqa: PLC0415 -- as above

    data = [np.asarray(each, dtype=float) for each in samples]
    values, count, fewest = statistic(*data), sum(map(len, data)), min(map(len, data))
    errors = np.zeros(len(values))
    if fewest > 1:
        rng, options = np.random.default_rng(SEED), {"n_resamples": RESAMPLES, "method": "percentile"}
        errors = bootstrap(data, statistic, rng=rng, **options).standard_error
        errors = errors * np.sqrt(fewest / (fewest - 1))
    for value, error, freedom in zip(values.tolist(), errors.tolist(), degrees, strict=True):
        if error <= 1e-12 * abs(value):
            yield ResultCell(value=value, count=count)
            continue
        half = error * float(stdtrit(round(freedom), 0.975))
        low, high = max(value - half, min(value, limits[0])), min(value + half, max(value, limits[1]))
        yield ResultCell(value=value, low=low, high=high, count=count)


def centers(*tasks: Any, axis: int = -1) -> Any:
    """Return the interquartile mean of all runs, and the mean and the median of the tasks' means."""
    every = np.sort(np.concatenate(tasks, axis=axis), axis=axis)
    cut = every.shape[-1] // 4
    means = np.stack([each.mean(axis=axis) for each in tasks], axis=-1)
    middle = every[..., cut : every.shape[-1] - cut].mean(axis=-1)
    return np.stack([middle, means.mean(axis=-1), np.median(means, axis=-1)])


def improvement(runs: Runs, baseline: Runs, sign: int) -> ResultCell:
    """Return the chance that a run is better than a baseline's run on the same task.

    Ties count half (Mann and Whitney 1947). The runs of both methods are resampled.
    """

    def wins(*sides: Any, axis: int = -1) -> Any:
        pairs = zip(sides[: len(runs)], sides[len(runs) :], strict=True)
        gains = [np.sign(sign * (one[..., :, None] - other[..., None, :])) for one, other in pairs]
        return np.mean([0.5 + 0.5 * each.mean(axis=(-2, -1)) for each in gains], axis=0)[None]

    degrees = sum(min(map(len, pair)) - 1 for pair in zip(runs, baseline, strict=True))
    return next(intervals([*runs, *baseline], wins, [degrees], (0.0, 1.0)))


def runs_of(results: ShownResults, metric: str, methods: str, tasks: str) -> dict[str, Runs]:
    """Return the values of each method, for each task."""
    values = results.values(metric)
    return {
        method: [
            values.filter((pl.col(methods) == method) & (pl.col(tasks) == task))["value"].to_list()
            for task in results.factors[tasks]
        ]
        for method in results.factors[methods]
    }


def seeds_words(runs: dict[str, Runs]) -> str:
    """Return the number of seeds for each method and task, as in `9 to 10 seeds`."""
    counts = [len(task) for own in runs.values() for task in own if task] or [0]
    return " to ".join(dict.fromkeys(f"{each}" for each in (min(counts), max(counts)))) + " seeds"


def method_faults(spec: Any, design: Any, methods: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield a fault for a factor with one level, and for cells that mix the levels of another factor."""
    chosen = {name: each if isinstance(each, list) else [each] for name, each in spec.select.items()}
    cells = [cell for cell in design.cells() if all(cell[name] in kept for name, kept in chosen.items())]
    factors = [getattr(spec, key) for key in (methods, "tasks")]
    for key, factor in zip((methods, "tasks"), factors, strict=True):
        if len({str(cell[factor]) for cell in cells}) < 2:
            yield (key,), f"expected a factor with several levels, got '{factor}'"
    first = dict[str, Any]()
    for cell in cells:
        one = first.setdefault(str([cell[factor] for factor in factors]), cell)
        if mixed := [name for name in cell if name != "seed" and cell[name] != one[name]]:
            message = f"this would mix the levels of {' and '.join(mixed)}: select one level of each"
            yield ("tasks",), message
            return


@register_kind("aggregate")
class AggregateTable(PluginTable):
    """statistics of methods over all tasks and seeds."""

    value: str
    """the metric"""
    rows: str
    """the factor whose levels are compared"""
    tasks: str
    """the factor whose levels are the tasks"""
    baseline: Any = None
    """the row to which the others are compared, by their probability of improvement"""

    def check(self, design: Any) -> Iterator[tuple[tuple[str, ...], str]]:
        yield from method_faults(self, design, "rows")

    def fill(self, results: ShownResults) -> TableContent:
        metric, runs = results.metric(self.value), runs_of(results, self.value, self.rows, self.tasks)
        methods, tasks = results.factors[self.rows], results.factors[self.tasks]
        columns = ["IQM", "mean", "median", *([] if self.baseline is None else ["better"])]
        sign = -1 if metric.higher_is_better is False else 1

        def cells(method: str) -> Iterator[ResultCell | None]:
            own, count = runs[method], len(tasks)
            lost = [name for name, task in zip(tasks.values(), own, strict=True) if not task]
            if lost:
                yield ResultCell(text="–", note=f"No value for {', '.join(lost)}.")
                yield from [None] * (len(columns) - 1)
                return
            free = (sum(map(len, own)) - count) / count
            deciding = [-(-count // 2), count, 2 - count % 2]
            yield from intervals(own, centers, [free * each for each in deciding], metric.bounds)
            if self.baseline is not None:
                other = runs[str(self.baseline)]
                is_own = method == str(self.baseline) or not all(other)
                yield None if is_own else improvement(own, other, sign)

        notes = ["IQM: mean of the middle half of all runs; mean and median: of the tasks' means."]
        if self.baseline is not None:
            notes.append(
                f"Better: probability that a run is better than one of {methods[str(self.baseline)]} on the"
                " same task, counting ties half, averaged over tasks."
            )
        notes.append(f"In brackets: {BOOTSTRAP}, with Student's t for few seeds; none without variation.")
        return TableContent(
            columns=columns,
            rows=[ResultRow(name=name, cells=list(cells(method))) for method, name in methods.items()],
            corner=self.rows,
            summary=f"over {len(tasks)} tasks ({self.tasks}) with {seeds_words(runs)}",
            notes=notes,
        )


@register_kind("profile")
class ProfileFigure(PluginFigure):
    """the share of runs above each score, one line for each method (Agarwal et al. 2021)."""

    value: str
    """the metric"""
    series: str
    """the factor whose levels are compared, at most 6"""
    tasks: str
    """the factor whose levels are the tasks"""

    def check(self, design: Any) -> Iterator[tuple[tuple[str, ...], str]]:
        yield from self.series_faults(self.series, design.known_levels)
        yield from method_faults(self, design, "series")

    def plot(self, results: ShownResults) -> FigureContent:
        metric, runs = results.metric(self.value), runs_of(results, self.value, self.series, self.tasks)
        sign, side = (-1, "less than") if metric.higher_is_better is False else (1, "more than")
        every = [run for own in runs.values() for task in own for run in task]
        at = np.linspace(min(every), max(every), THRESHOLDS) if every else np.zeros(0)
        rows = list[dict[str, Any]]()
        for method, name in results.factors[self.series].items():
            if all(own := runs[method]):
                rows += [{"method": name, **row} for row in _shares(own, at, sign)]
        numbers = dict.fromkeys(("score", "share", "low", "high"), pl.Float64)
        data = pl.DataFrame(rows, schema={"method": pl.String, **numbers})

        def draw(axes: Any) -> None:
            for (name,), line in data.group_by("method", maintain_order=True):
                (drawn,) = axes.plot(line["score"], line["share"], label=name)
                low, high = (line[end].fill_null(line["share"]) for end in ("low", "high"))
                axes.fill_between(line["score"], low, high, color=drawn.get_color(), alpha=0.15, lw=0)
            axes.set_xlabel(metric.title)
            axes.set_ylabel(f"Share of runs with {side} this")
            if rows:
                axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1.02, 0.5))

        lost = [name for method, name in results.factors[self.series].items() if not all(runs[method])]
        notes = [
            f"Line: mean over {len(results.factors[self.tasks])} tasks of the share of {seeds_words(runs)}; "
            f"band: {BOOTSTRAP} of each point, none if all seeds of each task agree."
        ]
        notes += [f"Without a value for some task: {', '.join(lost)}."] if lost else []
        summary = f"share of runs with {side} a score"
        return FigureContent(draw=draw, data=data, summary=summary, notes=notes)


def _shares(runs: Runs, thresholds: Any, sign: int) -> Iterator[dict[str, float | None]]:
    """Yield the share of runs that are better than each threshold, averaged over tasks."""

    def shares(*tasks: Any, axis: int = -1) -> Any:
        at = thresholds.reshape(-1, *[1] * tasks[0].ndim)
        return np.mean([(sign * each > sign * at).mean(axis=axis) for each in tasks], axis=0)

    # tasks on which all runs are on one side of a threshold have no variance, so they add no freedom
    free = (sum(map(len, runs)) - len(runs)) / len(runs)
    is_open = [[min(each) <= at <= max(each) and min(each) < max(each) for each in runs] for at in thresholds]
    degrees = [free * max(sum(each), 1) for each in is_open]
    for at, cell in zip(thresholds, intervals(runs, shares, degrees, (0.0, 1.0)), strict=True):
        yield {"score": float(at), "share": cell.value, "low": cell.low, "high": cell.high}
