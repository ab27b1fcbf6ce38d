"""The trials of a study: a sortable list, learning curves, and the page of one trial."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from ...storage.rows import row_values
from ...studies.catalog.metrics import METRICS
from ...studies.presentation.metric_words import with_true_title
from ...studies.resolve.trial import Trial
from ...studies.schema.factors import ABSENT, SEED, level_name, level_text, short_level_names, value_name
from ...studies.schema.settings import Level
from ...studies.study import Study
from ...studies.text.errors import command_line
from ...studies.text.toml_positions import toml_value
from ...studies.text.units import format_duration
from ..curves.curve import Axis, Curve, Line, Point
from ..kinds.line import panels_of
from ..page.section_study import setting_texts, study_file_name
from ..search.promotion import RECIPE, column_names
from .study_now import BegunTrial, StudyNow

MAX_METRICS = 4
"""The maximum number of metrics in a trial's line."""

MAX_LINES = 100
"""The maximum number of trials in the list."""

MAX_CURVES = 12
"""The maximum number of running trials with a learning curve: the most recently saved ones."""

MAX_ENDED = 6
"""The number of learning curves while nothing trains: those of the trials that ended last."""

MIN_LOG_RATIO = 20
"""The ratio of values above which the axis is logarithmic."""

REPEATED = "repeated"
"""The store for repeating an ended trial, since a run does not train it again in its own store."""

Courses = Mapping[str, Sequence[tuple[int, float]]]
"""The values of each metric after each epoch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialNow:
    """A trial with its levels, its seed and its recipe, and its state.

    `row` is its row in the store, or None before it has ended. `planned` has its settings; it is None for the
    ended trials of a search.
    """

    id: str
    levels: Mapping[str, Level]
    state: str
    row: Mapping[str, Any] | None
    begun: BegunTrial | None
    planned: Trial | None

    @property
    def measured(self) -> dict[str, float]:
        """Return the final metrics of the trial."""
        return row_values(self.row) if self.row else {}


def trials_now(now: StudyNow) -> dict[str, TrialNow]:
    """Return the trials of a study by id, in the study's order.

    Trials of added seeds are included once they have begun. Those of a search are the unfinished ones, and
    then the ended ones, the newest first.
    """
    ended = now.ended.sort("finished", descending=True)
    rows = {row["trial"]: row for row in ended.iter_rows(named=True)}
    begun = {each.trial.id: each for each in now.begun}
    own = {trial.id for trial in now.study.trials}
    every = now.study.with_later_seeds()
    listed = every.trials if every.search is None else [each.trial for each in now.begun]
    planned = {each.id: each for each in listed if each.id in own or each.id in rows or each.id in begun}
    found: dict[str, TrialNow] = {}
    for name in dict.fromkeys([*planned, *rows]):
        trial, row, training = planned.get(name), rows.get(name), begun.get(name)
        state = row["status"] if row else "waiting"
        found[name] = TrialNow(
            id=name,
            levels=trial_levels(trial) if trial else _row_levels(rows[name]),
            state=state if training is None else "running" if training.held else "begun",
            row=row,
            begun=training,
            planned=trial,
        )
    return found


def trial_levels(trial: Trial) -> dict[str, Level]:
    """Return the levels of a trial by factor, with its seed and its complete recipe."""
    return {**trial.levels, SEED: trial.settings.seed, RECIPE: trial.settings.model.recipe}


def _row_levels(row: Mapping[str, Any]) -> dict[str, Level]:
    return {SEED: row["seed"], **json.loads(row["factors"]), RECIPE: row["recipe"]}


def factor_names(study: Study) -> list[str]:
    """Return the factors that distinguish a study's trials; for a search mainly recipe and seed."""
    if (search := study.search) is not None:
        rungs = [search.rungs.name] if search.rungs.rungs else []
        return [*column_names(study), *search.settings.across, *rungs, SEED]
    varied = {name for name, levels in study.factors.items() if len(levels) > 1}
    varied |= {SEED} if study.later_seeds else set()
    return [name for name in study.factors if name in varied]


def level_words(study: Study, levels: Mapping[str, Level]) -> list[str]:
    """Return a trial's levels as text, "" for a factor that the trial does not have.

    A search chooses numbers with many digits, which are rounded as in tables.
    """
    shown = level_name if study.search is None else value_name
    return [shown(levels[name]) if name in levels else "" for name in factor_names(study)]


def trial_words(study: Study, trials: Sequence[Mapping[str, Level]]) -> list[str]:
    """Return a short text for each trial, with its distinguishing levels.

    Words are shortened, and a number comes after the name of its factor. A search has no list of levels, so
    its points are described by the levels in which they differ from each other.
    """
    names, short = factor_names(study), dict[str, dict[Level, str]]()
    if study.search is not None:
        names = [name for name in names if len({levels.get(name) for levels in trials}) > 1] or names
    for name in names:
        known = (*study.factors.get(name, ()), *(levels[name] for levels in trials if name in levels))
        texts = list(dict.fromkeys(each for each in known if isinstance(each, str)))
        short[name] = dict(zip(texts, short_level_names(texts), strict=True))

    def words(name: str, level: Level) -> str:
        return short[name][level] if isinstance(level, str) else f"{name} {value_name(level)}"

    parts = [
        [words(name, levels[name]) for name in names if levels.get(name) not in (None, ABSENT)]
        for levels in trials
    ]
    return [" · ".join(each) or str(levels[RECIPE]) for each, levels in zip(parts, trials, strict=True)]


def metric_words(metrics: Mapping[str, float], own: Sequence[str] = ()) -> list[tuple[str, str]]:
    """Return the names and values of at most MAX_METRICS metrics to show, those in `own` first."""
    first = [name for name in own if name in metrics]
    others = [name for name in _in_order(metrics) if name not in first and "[" not in name]
    return [(name, _number(name, metrics[name])) for name in [*first, *others][:MAX_METRICS]]


def _number(name: str, value: float) -> str:
    if not math.isfinite(value):
        return "not a number" if math.isnan(value) else "∞" if value > 0 else "−∞"
    return METRICS[name].format(value) if name in METRICS else f"{value:,.4g}".replace("-", "−")


def _in_order(names: Mapping[str, object]) -> list[str]:
    return [name for name in METRICS if name in names] + sorted(set(names).difference(METRICS))


def trial_list(now: StudyNow, order: str | None) -> Mapping[str, object]:
    """Return the columns and the rows of the list of trials, sorted by a column.

    `order` is the name of a column, with a minus for descending values; by default, and for an unknown name,
    the trials are in the study's order. Trials without a value in this column come last. Only the first
    MAX_LINES trials are shown.
    """
    factors, trials = factor_names(now.study), trials_now(now)
    shown = [dict(metric_words(each.measured, now.study.metrics)) for each in trials.values()]
    metrics = list(dict.fromkeys(name for each in shown for name in each))[:MAX_METRICS]
    taken = {"trial", "state", "epochs", "time", "ended", *metrics}
    factors = [f"factor {name}" if name in taken else name for name in factors]
    lines: list[dict[str, tuple[Any, str]]] = []  # the sort key and the text of each cell
    for place, (each, words) in enumerate(zip(trials.values(), shown, strict=True)):
        levels = level_words(now.study, each.levels)
        line: dict[str, tuple[Any, str]] = {"trial": (place, each.id)}
        line |= {name: (_level_key(text), text) for name, text in zip(factors, levels, strict=True)}
        line["state"] = (each.state, each.state)
        line |= {name: (each.measured[name], words[name]) for name in metrics if name in words}
        if each.row:
            finished = each.row["finished"]
            line["epochs"] = (each.row["epochs"], f"{each.row['epochs']:,}")
            line["time"] = (each.row["seconds"], format_duration(each.row["seconds"]))
            line["ended"] = (finished, finished.strftime("%Y-%m-%d %H:%M UTC"))
        lines.append(line)
    columns = ["trial", *factors, "state", *metrics, "epochs", "time", "ended"]
    sorter, falls = (order or "").removeprefix("-"), (order or "").startswith("-")
    if sorter in columns:
        known = [line for line in lines if sorter in line and line[sorter][0] == line[sorter][0]]  # no NaN
        known.sort(key=lambda line: line[sorter][0], reverse=falls)
        lines = [*known, *(line for line in lines if line not in known)]
    best_first = {name for name in metrics if name in METRICS and METRICS[name].higher_is_better}
    orders = {name: f"-{name}" if name in best_first else name for name in columns}
    if sorter in columns:  # a second click sorts the other way round
        orders[sorter] = sorter if falls else f"-{sorter}"
    return {
        "orders": orders,
        "sorter": sorter,
        "falls": falls,
        "numbers": [*metrics, "epochs", "time"],
        "lines": [{name: line.get(name, (None, ""))[1] for name in columns} for line in lines[:MAX_LINES]],
        "more": max(0, len(lines) - MAX_LINES),
        "study": now.study.name,
    }


def _level_key(text: str) -> tuple[bool, float, str]:
    """Return the sort key of a level: numbers by their value, and before words."""
    try:
        return (False, float(text), "")
    except ValueError:
        return (True, 0.0, text)


def learning_curves(now: StudyNow, metric: str | None) -> Mapping[str, object] | None:
    """Return the learning curves of the trials that train, or else of those that ended last.

    Return None if there are no curves. A trial of one epoch has none.
    """
    begun = [each for each in now.begun if each.note and each.note.course]
    begun = [each for each in begun if each.trial.settings.train.epochs > 1]
    begun.sort(key=lambda each: each.note.saved_at if each.note else 0, reverse=True)
    if begun:
        shown = [(trial_levels(each.trial), each.note.course) for each in begun[:MAX_CURVES] if each.note]
        note = f"The {len(shown)} of {len(begun)} trials that train and were saved last."
    else:
        rows = now.outcomes.sort("finished", descending=True).head(MAX_ENDED).rows(named=True)
        courses = stored_courses(now, [row["trial"] for row in rows])
        shown = [(_row_levels(row), courses.get(row["trial"], {})) for row in rows]
        note = f"Nothing trains now: the {len(shown)} trials that ended last."
    words = trial_words(now.study, [levels for levels, _ in shown])
    found = course_figure(now, dict(zip(words, [course for _, course in shown], strict=True)), metric)
    return found and {**found, "note": note}


def stored_courses(now: StudyNow, trials: Sequence[str]) -> dict[str, dict[str, list[tuple[int, float]]]]:
    """Return the metric histories of ended trials, by trial and metric."""
    found: dict[str, dict[str, list[tuple[int, float]]]] = {}
    attempts = now.ended.filter(pl.col("trial").is_in(list(trials))).select("trial", "attempt", "study")
    rows = now.store.metric_course(None, attempts).sort("trial", "step", "epoch")
    for trial, name, epoch, value in rows.select("trial", "name", "epoch", "value").iter_rows():
        if "[" not in name:  # an indexed metric such as attention[3]
            found.setdefault(trial, {}).setdefault(name, []).append((epoch, value))
    return found


def course_figure(
    now: StudyNow, courses: Mapping[str, Courses], metric: str | None, accent: str = ""
) -> Mapping[str, object] | None:
    """Draw a metric of several trials by epoch; None without a curve. `courses` has their names.

    Return the figure's values for a template: the figure, and the metrics to choose from. By default, the
    metric is the first one, if possible of the trial with the name `accent`.
    """
    points = {
        (name, each): [Point(x=epoch, y=value) for epoch, value in course if math.isfinite(value)]
        for name, own in courses.items()
        for each, course in own.items()
    }
    metrics = _in_order({each: None for (_, each), found in points.items() if len(found) > 1})
    if not metrics:
        return None
    metrics.sort(key=lambda each: bool(accent) and len(points.get((accent, each), ())) < 2)
    chosen = metric if metric in metrics else metrics[0]
    lines = [
        Line(name=name, number=number, points=tuple(points[name, chosen]), accent=name == accent)
        for number, name in enumerate(courses)
        if len(points.get((name, chosen), ())) > 1
    ]
    numbers = [point.y for line in lines for point in line.points]
    log = min(numbers) > 0 and max(numbers) / min(numbers) > MIN_LOG_RATIO
    title = chosen
    if chosen in METRICS:
        settings = [trial.settings for trial in now.study.examples]
        title = with_true_title(METRICS[chosen], settings)[0].title
    curve = Curve(
        name="learning",
        caption=title,
        notes=(),
        x=Axis(title="Epoch"),
        y=Axis(title=chosen, log=log),
        panels=panels_of(tuple(lines)),
        provenance="",
    )
    return {"metrics": metrics, "metric": chosen, "title": title, "svg": curve.render_inline()}


def trial_page(now: StudyNow, trial: str, metric: str | None) -> Mapping[str, object]:
    """Return the values for the template of a trial's page, by name.

    The curves are those of `metric` (default: the first one), one for each seed of the trial's cell.
    """
    trials = trials_now(now)
    shown = trials[trial]
    settings = json.loads(shown.row["settings"]) if shown.row else {}
    if shown.planned is not None:
        settings = shown.planned.settings.model_dump(mode="json")
    cell = _without_seed(shown.levels)
    seeds = [each for each in trials.values() if _without_seed(each.levels) == cell]
    stored = stored_courses(now, [each.id for each in seeds])
    courses = {
        f"seed {each.levels[SEED]}": each.begun.note.course
        if each.begun and each.begun.note
        else stored.get(each.id, {})
        for each in sorted(seeds, key=lambda each: int(each.levels[SEED]))
    }
    names = [name for name in factor_names(now.study) if name in shown.levels]
    return {
        "study": now.study,
        "levels": {name: level_name(shown.levels[name]) for name in names},
        "trial": shown,
        "reason": (shown.row["reason"] or "").strip() if shown.row else "",
        "metrics": {name: _number(name, value) for name, value in shown.measured.items()},
        "curves": course_figure(now, courses, metric, accent=f"seed {shown.levels[SEED]}"),
        "command": _repeat_command(now.study, shown),
        "settings": setting_texts(settings),
    }


def _without_seed(levels: Mapping[str, Level]) -> dict[str, Level]:
    return {name: level for name, level in levels.items() if name not in (SEED, RECIPE)}


def _repeat_command(study: Study, trial: TrialNow) -> str:
    """Return the command that trains a trial again.

    For a search, this is a search of one point, which is its baseline; it trains all trials of the point.
    """
    levels = {name: level for name, level in trial.levels.items() if level not in (None, ABSENT)}
    if study.search is None:
        only = [f"{name}={level_text(levels[name])}" for name in factor_names(study) if name in levels]
        seed = trial.levels[SEED]
        overrides = [] if seed in study.seeds else [f"factors.seed=[{seed}]"]
    else:
        only, point = [], {name: levels[name] for name in study.dimensions if name in levels}
        overrides = [f"study.baseline={toml_value(point)}", "search.trials=1"]
    again = trial.state == "failed"
    return command_line(
        "study",
        "run",
        study_file_name(study),
        set=[*study.document.overrides, *([] if again and study.search else overrides)],
        only=only,
        retry_failed=again,
        results=REPEATED if trial.state in ("done", "pruned") or (study.search and not again) else None,
    )
