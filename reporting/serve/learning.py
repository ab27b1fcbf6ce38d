"""The trials of a running study, each with a row and a small learning curve.

All plots of a page share axes, so that they can be compared. A line has as many points as a page can show.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from ...storage.trial_files import thinned
from ...studies.catalog.metrics import METRICS
from ...studies.presentation.metric_words import with_true_title
from ...studies.resolve.trial import Trial
from ...studies.schema.factors import ABSENT, SEED, level_name, short_level_names, value_name
from ...studies.schema.search_settings import EPOCHS
from ...studies.schema.settings import Level
from ...studies.study import Study
from ..search.promotion import RECIPE, column_names
from .progress import study_progress
from .store_reader import StudyNow

MAX_METRICS = 4
"""The maximum number of metrics in a trial's line."""

PAGE_SIZE = 100
"""The number of trials on a page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialLine:
    """A trial with its levels and its state.

    `row` is its row in the store, or None before the trial has ended.
    """

    id: str
    levels: Sequence[str]
    state: str
    row: Mapping[str, Any] | None
    own_metrics: Sequence[str] = ()  # the study's own metrics come first

    @property
    def metrics(self) -> list[tuple[str, str]]:
        """Return the final metrics of the trial as text."""
        return metric_words(self.measured, self.own_metrics)

    @property
    def measured(self) -> dict[str, float]:
        """Return the final metrics of the trial."""
        return {each["name"]: each["value"] for each in self.row["metrics"]} if self.row else {}


def own_metrics(study: Study) -> list[str]:
    """Return the main metrics of a study.

    They are a search's objectives, or the metrics in a grid's first table.
    """
    if study.search is not None:
        return [each.name for each in study.search.objectives]
    return [name for table in study.tables[:1] for path, name in table.named_metrics() if path[0] == "value"]


def factor_names(study: Study) -> list[str]:
    """Return the names of the factors that distinguish the trials of a study.

    For a search, these are mainly the recipe and the seed.
    """
    if study.search is not None:
        rungs = [study.fidelity.name] if study.fidelity else []
        return [*column_names(study), *study.search.across, *rungs, SEED]
    varied = {name for name, levels in study.factors.items() if len(levels) > 1}
    varied |= {SEED} if study.later_seeds else set()
    return [name for name in study.factors if name in varied]


def level_words(study: Study, levels: Mapping[str, Level], names: Sequence[str]) -> list[str]:
    """Return a trial's levels of these factors as text.

    The text is "" for a factor that the trial does not have. A search chooses numbers with many digits, which
    are rounded as in tables.
    """
    shown = level_name if study.search is None else value_name
    return [shown(levels[name]) if name in levels else "" for name in names]


def trial_levels(trial: Trial) -> dict[str, Level]:
    """Return the levels of a trial by factor, with its seed and its complete recipe."""
    return {**trial.levels, SEED: trial.settings.seed, RECIPE: trial.settings.model.recipe}


def row_levels(row: Mapping[str, Any]) -> dict[str, Level]:
    """Return the levels of a stored trial by factor, with its seed and its complete recipe."""
    return {SEED: row["seed"], **json.loads(row["factors"]), RECIPE: row["recipe"]}


def trial_words(study: Study, trials: Sequence[Mapping[str, Level]]) -> list[str]:
    """Return a short text for each trial, with its distinguishing levels.

    Words are shortened, and a number comes after the name of its factor. A search has no list of levels, so
    its points are described by the levels in which they differ from each other.
    """
    names, short = factor_names(study), dict[str, dict[Level, str]]()
    for name in names:
        known = (*study.factors.get(name, ()), *(levels[name] for levels in trials if name in levels))
        texts = list(dict.fromkeys(each for each in known if isinstance(each, str)))
        short[name] = dict(zip(texts, short_level_names(texts), strict=True))

    def words(name: str, level: Level) -> str:
        return short[name][level] if isinstance(level, str) else f"{name} {level_name(level)}"

    parts = [
        [words(name, levels[name]) for name in names if levels.get(name) not in (None, ABSENT)]
        for levels in trials
    ]
    return [" · ".join(each) or str(levels[RECIPE]) for each, levels in zip(parts, trials, strict=True)]


def metric_words(metrics: Mapping[str, float], own: Sequence[str] = ()) -> list[tuple[str, str]]:
    """Return the names and values of the metrics to show, those in `own` first.

    At most MAX_METRICS are returned.
    """
    first = [name for name in own if name in metrics]
    known = [name for name in METRICS if name in metrics and name not in first]
    named = [
        *first,
        *known,
        *(name for name in metrics if name not in METRICS and name not in first and "[" not in name),
    ]
    return [(name, number(name, metrics[name])) for name in named[:MAX_METRICS]]


def number(name: str, value: float) -> str:
    """Return a metric's value as text, formatted as in tables."""
    if not math.isfinite(value):
        return "not a number" if math.isnan(value) else "∞" if value > 0 else "−∞"
    return METRICS[name].format(value) if name in METRICS else f"{value:,.4g}".replace("-", "−")


def trial_lines(now: StudyNow) -> list[TrialLine]:
    """Return a line for each trial of a study, in the study's order.

    Trials of added seeds follow. For a search, these are the trials that are stored or unfinished.
    """
    names, own = factor_names(now.study), own_metrics(now.study)
    rows = now.rows_by_trial()
    begun = {each.trial.id: "running" if each.held else "begun" for each in now.begun}
    return [
        TrialLine(
            id=trial,
            levels=level_words(now.study, levels, names),
            state=begun.get(trial) or (rows[trial]["status"] if trial in rows else "waiting"),
            row=rows.get(trial),
            own_metrics=own,
        )
        for trial, levels in _iter_trials(now, rows)
    ]


def _iter_trials(
    now: StudyNow, rows: Mapping[str, Mapping[str, Any]]
) -> Iterator[tuple[str, Mapping[str, Level]]]:
    if now.study.search is None:
        yield from ((trial.id, trial.levels) for trial in now.trials)
        return
    yield from ((trial.id, trial_levels(trial)) for trial in now.trials if trial.id not in rows)
    newest_first = sorted(rows.values(), key=lambda row: row["finished"], reverse=True)
    yield from ((row["trial"], row_levels(row)) for row in newest_first)


MAX_PLOTS = 12
"""The maximum number of running trials with their own plot: the most recently saved ones."""

MAX_ENDED = 6
"""The maximum number of plots while nothing trains: the trials that ended last."""

MAX_BEHIND = 40
"""The maximum number of grey trials behind each plot: those that ended last."""

MAX_POINTS_BEHIND = 60
"""The maximum number of points of each grey line."""

WIDTH, HEIGHT = 240, 96
"""The size of a plot in units; a page scales them."""

MIN_LOG_RATIO = 20
"""The ratio of values above which the axis is logarithmic."""

Points = Sequence[tuple[int, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallPlot:
    """The learning curve of one trial as an SVG path.

    `value` is the metric's last value, at the epoch `epoch`.
    """

    trial: str
    words: str
    path: str
    value: str
    epoch: int
    epochs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningCurves:
    """The plots of one metric for the running trials.

    `behind` is an SVG path with the curves of ended trials, for the background of each plot.
    """

    metric: str
    title: str
    metrics: Sequence[str]
    plots: Sequence[SmallPlot]
    live: bool
    behind: str
    num_behind: int
    low: str
    high: str
    epochs: int
    log: bool
    left_out: int


def trains_for_epochs(study: Study) -> bool:
    """Return whether any trial of the study trains for several epochs. Only such a trial has a curve."""
    if study.fidelity is not None and study.fidelity.name == EPOCHS:
        return True
    return any(trial.settings.train.epochs > 1 for trial in study.trials or study.boundary_trials())


def learning_curves(now: StudyNow, courses: pl.DataFrame, metric: str | None) -> LearningCurves | None:
    """Return the learning curves of a metric; None while there are none.

    The default is the first available metric. `courses` are the stored metrics of the study's trials, without
    indexed metrics. While nothing trains, the plots show the trials that ended last. A trial that ended after
    one epoch has no curve.
    """
    progress = study_progress(now)
    begun = [each for each in (*progress.running, *progress.stopped) if each.note and each.note.course]
    growing = {name for each in begun if each.note for name in each.note.course}
    metrics = _in_order(growing) + _in_order(set(courses["name"]) - growing)
    if not metrics:
        return None
    chosen = metric if metric in metrics else metrics[0]
    ended = _ended_courses(now, courses, chosen)
    shown: list[tuple[str, Mapping[str, Level], Points, int]] = [
        (each.trial.id, trial_levels(each.trial), course, each.trial.settings.train.epochs)
        for each in begun
        if each.trial.settings.train.epochs > 1
        and each.note
        and (course := finite(each.note.course.get(chosen, ())))
    ]
    live = bool(shown)
    if not live:
        rows = {row["trial"]: row for row in now.outcomes.iter_rows(named=True)}
        shown = [
            (trial, row_levels(rows[trial]), course, course[-1][0])
            for trial, course in list(ended.items())[:MAX_ENDED]
        ]
    title = _title(chosen, now)
    words = trial_words(now.study, [levels for _, levels, *_ in shown])
    named = [(trial, name, course, at) for (trial, _, course, at), name in zip(shown, words, strict=True)]
    return _plotted(chosen, title, metrics, shown=named, behind=ended, live=live)


def small_plots(
    now: StudyNow,
    shown: Mapping[str, Sequence[tuple[str, str, Points, int]]],
    metric: str | None,
    *,
    first: str,
    live: bool,
) -> LearningCurves | None:
    """Return a small plot for each trial, with shared axes; None without a curve.

    All plots show one metric.

    `shown` has, for each metric, the id, the words, the curve and the epochs of each trial. By default the
    metric is one of the trial `first`.
    """
    metrics = sorted(_in_order(shown), key=lambda name: first not in {each[0] for each in shown[name]})
    if not metrics:
        return None
    chosen = metric if metric in metrics else metrics[0]
    return _plotted(chosen, _title(chosen, now), metrics, shown=shown[chosen], behind={}, live=live)


def _title(metric: str, now: StudyNow) -> str:
    if metric not in METRICS:
        return metric
    trials = now.study.trials or now.study.boundary_trials()
    return with_true_title(METRICS[metric], [trial.settings for trial in trials])[0].title


def _plotted(
    metric: str,
    title: str,
    metrics: Sequence[str],
    *,
    shown: Sequence[tuple[str, str, Points, int]],
    behind: Mapping[str, Points],
    live: bool,
) -> LearningCurves | None:
    values = [value for *_, course, _ in shown for _, value in course]
    values += [value for course in behind.values() for _, value in course]
    if not values:
        return None
    low, high = min(values), max(values)
    log = low > 0 and high / low > MIN_LOG_RATIO
    epochs = max(1, *(epochs for *_, epochs in shown), *(course[-1][0] for course in behind.values()))

    def path(course: Points) -> str:
        return _path([(epoch / epochs, _height(value, low, high, log=log)) for epoch, value in course])

    plots = [
        SmallPlot(
            trial=trial,
            words=words,
            path=path(thinned(course)),
            value=number(metric, course[-1][1]),
            epoch=course[-1][0],
            epochs=last,
        )
        for trial, words, course, last in shown[:MAX_PLOTS]
    ]
    return LearningCurves(
        metric=metric,
        title=title,
        metrics=metrics,
        plots=plots,
        live=live,
        behind=" ".join(path(course) for course in behind.values()),
        num_behind=len(behind),
        low=number(metric, low),
        high=number(metric, high),
        epochs=epochs,
        log=log,
        left_out=max(0, len(shown) - MAX_PLOTS) if live else 0,
    )


def finite(course: Points) -> list[tuple[int, float]]:
    """Return the finite points of a curve."""
    return [(epoch, value) for epoch, value in course if math.isfinite(value)]


def _in_order(names: Collection[str]) -> list[str]:
    return [name for name in METRICS if name in names] + sorted(set(names).difference(METRICS))


def _ended_courses(now: StudyNow, courses: pl.DataFrame, metric: str) -> dict[str, Points]:
    latest = now.outcomes.sort("finished", descending=True)["trial"].head(MAX_BEHIND).to_list()
    rows = courses.filter(pl.col("name") == metric, pl.col("trial").is_in(latest))
    found: dict[str, dict[int, float]] = {}
    for trial, epoch, value in rows.select("trial", "epoch", "value").iter_rows():
        found.setdefault(trial, {})[epoch] = value
    drawn = {trial: finite(list(each.items())) for trial, each in found.items()}
    curves = {trial: course for trial, course in drawn.items() if len(course) > 1}
    return {trial: thinned(curves[trial], MAX_POINTS_BEHIND) for trial in latest if trial in curves}


def _height(value: float, low: float, high: float, *, log: bool) -> float:
    if low == high:
        return 0.5
    scale = math.log if log else float
    return (scale(value) - scale(low)) / (scale(high) - scale(low))


def _path(points: Sequence[tuple[float, float]]) -> str:
    """Return an SVG path through points of the unit square.

    A single point is a short dash, visible by its round ends.
    """
    placed = [f"{x * WIDTH:.1f} {(1 - y) * HEIGHT:.1f}" for x, y in points]
    return f"M{'L'.join(placed)}" if len(placed) > 1 else f"M{placed[0]}h0"
