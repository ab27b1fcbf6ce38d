"""Lines of text about a running study: counts, names of trials, and the main metric."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain

import polars as pl

from ...reporting.outcomes import load_outcomes
from ...storage import Store
from ...studies.catalog.metrics import METRICS, find_metric, metric_family
from ...studies.planning.final_values import DIVERGED, describe_divergence, guessing_losses, trial_values
from ...studies.planning.status import study_outcomes
from ...studies.resolve.costs import model_cost
from ...studies.resolve.trial import Trial
from ...studies.schema.factors import filled_levels, short_level_names, value_name
from ...studies.schema.limits import is_known_before
from ...studies.schema.settings import Level
from ...studies.study import Study
from ...studies.text.units import abbreviate_all, align_columns

_SEED, _GAP = "seed", 2

_Point = tuple[tuple[str, Level], ...]
"""The levels of a trial by factor, with its seed."""

_LevelTexts = Mapping[Level | None, str]
"""The text of each level of a factor; None stands for trials without the factor."""


class TrialNameColumns:
    """Names of trials in aligned columns.

    There is one column for each factor and one for the seed, over all trials added so far. If they do not fit
    into a line, factors whose levels follow from `labels` are left out first. Then factors with one level and
    the arguments of blocks are left out, and then the names before numbers. At last the middles of the widest
    texts are left out, or these begin with the numbers of their levels, so that they still differ.
    `dimensions` are factors that are kept with one level, because a search varies them. A grid has none.
    """

    def __init__(
        self, trials: Iterable[Trial] = (), labels: Sequence[str] = (), dimensions: Collection[str] = ()
    ) -> None:
        self._labels, self._dimensions = labels, dimensions
        self._points: dict[_Point, Mapping[str, Level]] = {}  # without repetitions
        self._fits: dict[int, Mapping[str, _LevelTexts]] = {}  # cached by width, until trials are added
        self.add(trials)

    @classmethod
    def of(cls, study: Study, trials: Iterable[Trial] = ()) -> TrialNameColumns:
        """Return the columns for the trials of a study and further ones, such as points of its search."""
        search = study.search
        varied = [*study.dimensions, *search.settings.across, search.rungs.name] if search else ()
        return cls([*study.trials, *trials], study.design.labels, varied)

    def add(self, trials: Iterable[Trial]) -> None:
        """Add trials, and fit the names and column widths to them."""
        self._points |= {point: filled_levels(dict(point)) for point in map(_point, trials)}
        self._fits.clear()

    def cells(self, trial: Trial, max_width: int) -> list[str]:
        """Return the texts that name an added trial, each padded to the width of its column."""
        if max_width not in self._fits:
            self._fits[max_width] = self._fit(max_width)
        levels, columns = self._points[_point(trial)], self._fits[max_width]
        return [f"{shown[levels.get(factor)]:<{_width(shown)}}" for factor, shown in columns.items()]

    def point_words(self, trial: Trial) -> list[str]:
        """Return what a search varies as `name=value`, and the seed; nothing for a trial of a grid."""
        levels = filled_levels(trial.levels)
        words = [f"{name}={value_name(levels[name])}" for name in self._dimensions if name in levels]
        return [*words, f"{_SEED} {trial.settings.seed}"] if words else []

    def _fit(self, max_width: int) -> Mapping[str, _LevelTexts]:
        points = tuple(self._points.values())
        factors = sorted(dict.fromkeys(chain.from_iterable(points)), key=_SEED.__eq__)
        levels = {factor: tuple(dict.fromkeys(each.get(factor) for each in points)) for factor in factors}
        named = {factor: each for factor, each in levels.items() if not self._follows(factor, points)}
        several = {
            factor: each for factor, each in named.items() if len(each) > 1 or factor in self._dimensions
        } or named
        for shown, form in (
            (levels, _texts),
            (named, _texts),
            (several, _short_texts),
            (several, _bare_texts),
        ):
            columns = {factor: form(factor, each) for factor, each in shown.items()}
            if _line_width(columns) <= max_width:
                return columns
        while _line_width(columns) > max_width:
            widest = max(columns, key=lambda factor: 0 if factor == _SEED else _width(columns[factor]))
            if widest == _SEED or (width := _width(columns[widest])) <= 1:
                break
            texts = _bare_texts(widest, levels[widest])
            columns[widest] = dict(zip(texts, abbreviate_all(tuple(texts.values()), width - 1), strict=True))
        return columns

    def _follows(self, factor: str, points: Sequence[Mapping[str, Level]]) -> bool:
        """Return whether the levels of the study's labels determine the level of a factor."""
        if factor in self._labels or not self._labels:
            return False
        named = [(tuple(map(point.get, self._labels)), point.get(factor)) for point in points]
        return len(set(named)) == len({labels for labels, _ in named})


def brief_name(factor: str) -> str:
    """Return the last part of a factor's name, such as `k.2` for `conv.k.2`."""
    parts = factor.split(".")
    return ".".join(parts[-2:]) if parts[-1].isdigit() else parts[-1]


def _point(trial: Trial) -> _Point:
    return tuple({**trial.levels, _SEED: trial.settings.seed}.items())


def _texts(factor: str, levels: Sequence[Level | None]) -> _LevelTexts:
    name = "seed " if factor == _SEED else f"{brief_name(factor)}="
    return {
        level: "" if level is None else ("" if isinstance(level, str) else name) + value_name(level)
        for level in levels
    }


def _short_texts(factor: str, levels: Sequence[Level | None]) -> _LevelTexts:
    """Return a text for each level of a factor, without the arguments of blocks."""
    words = [level for level in levels if isinstance(level, str)]
    return {**_texts(factor, levels), **dict(zip(words, short_level_names(words), strict=True))}


def _bare_texts(factor: str, levels: Sequence[Level | None]) -> _LevelTexts:
    """Return the texts of `_short_texts`, with numbers only. Seeds and booleans keep the name."""
    numbers = [each for each in levels if isinstance(each, int | float) and not isinstance(each, bool)]
    bare = {} if factor == _SEED else {level: value_name(level) for level in numbers}
    return {**_short_texts(factor, levels), **bare}


def _width(shown: _LevelTexts) -> int:
    return max(map(len, shown.values()))


def _line_width(columns: Mapping[str, _LevelTexts]) -> int:
    return sum(_width(texts) + _GAP for texts in columns.values())


MAX_RUNNING_LINES = 6
"""The maximum number of running trials with a line each."""

_FORMATS = {"length": ".0f", "accuracy": ".3f", "loss": ".4f"}
"""The displayed metrics and their formats."""


def format_trials(
    trials: Sequence[tuple[Trial, Sequence[str]]], columns: TrialNameColumns, width: int
) -> list[str]:
    """Return lines for the first few trials, and a line that counts the others."""
    shown = trials[:MAX_RUNNING_LINES]
    words = align_columns([words for _, words in shown])
    room = width - max(map(len, words), default=0) - _GAP
    lines = [
        "".join(f"  {cell}" for cell in [*columns.cells(trial, room), text]).rstrip()
        for (trial, _), text in zip(shown, words, strict=True)
    ]
    more = len(trials) - len(shown)
    return [*lines, *([f"  and {more} more"] if more else [])]


def progress_words(trial: Trial, epoch: int, metrics: Mapping[str, float]) -> list[str]:
    """Return texts about a trial's progress, such as `epoch 61/100` and `accuracy 0.998`."""
    names = [name for name in ("length", "accuracy") if name in metrics] or ["loss"]
    shown = [f"{name} {metrics[name]:{_FORMATS[name]}}" for name in names if name in metrics]
    return [f"epoch {epoch}/{trial.settings.train.epochs}", *shown]


_MAIN_METRICS = (
    "max_length",
    "accuracy",
    "dev_bpc",
    "dev_perplexity",
    "dev_accuracy",
    "dev_mae",
    "dev_loss",
)
"""The metrics by which tasks are judged."""


class Headline:
    """The metric that is shown for each ended trial, with the best value so far.

    It is the first metric that the trial has among those that its study compares. Without these, it is the
    main metric of the task. The other objectives of a search follow. Each task has its own best value, and a
    diverged training is no best one. `known` are values with their metric and their task: its settings as
    text, or in a search its name.
    """

    def __init__(self, study: Study, known: Iterable[tuple[str, str, float]] = ()) -> None:
        self._search, self._goals = study.search, study.search.settings.objectives if study.search else ()
        named = dict.fromkeys((*(goal.name for goal in self._goals), *study.metrics))
        self.names = tuple(each for each in named if metric_family(each) in METRICS) or _MAIN_METRICS
        self._best: dict[tuple[str, str], float] = {}  # by metric and task
        for name, task, value in known:
            self._note(name, task, value)

    def words(
        self, metrics: Mapping[str, float], trial: Trial, epochs: Sequence[Mapping[str, float]] = ()
    ) -> list[str]:
        """Return the texts to show for an ended trial, such as `loss 0.412` and `best trial 0.398`.

        `epochs` are the metrics after each of its epochs, if they are known.
        """
        name = next((each for each in self.names if each in metrics), None)
        others: list[str] = []
        for other in (goal.name for goal in self._goals if goal.name != name):
            found = model_cost(other, trial.settings) if is_known_before(other) else metrics.get(other)
            others += [] if found is None else [f"{other} {find_metric(other).format(found)}"]
        if name is None:
            return others
        task = trial.settings.task
        key = task.name if self._search else task.model_dump_json()
        value = math.nan if _has_diverged(trial, metrics, epochs or [metrics]) else metrics[name]
        text, best = find_metric(name).format, self._note(name, key, value)
        return [
            f"{name} {text(metrics[name])}",
            *([] if best is None else [f"best trial {text(best)}"]),
            *others,
        ]

    def _note(self, name: str, task: str, value: float) -> float | None:
        """Add a value of a metric, and return the best one. It is None if neither direction is better."""
        highest = {each.name: each.maximise for each in self._goals}.get(
            name, find_metric(name).higher_is_better
        )
        key = (name, task)
        if highest is not None and math.isfinite(value):
            best = self._best.get(key, value)
            self._best[key] = max(value, best) if highest else min(value, best)
        return self._best.get(key)


def _has_diverged(trial: Trial, metrics: Mapping[str, float], epochs: Sequence[Mapping[str, float]]) -> bool:
    if any(name in METRICS and METRICS[name].steps_with_curriculum for name in metrics):
        return False  # a loss may rise as sequences grow
    row, schema = pl.DataFrame({"trial": [trial.id]}), {"epoch": pl.Int64, "value": pl.Float64}

    def find_course(name: str, _: pl.DataFrame) -> pl.DataFrame:
        course = [(epoch, each[name]) for epoch, each in enumerate(epochs) if name in each]
        return pl.DataFrame(course, schema, orient="row").with_columns(trial=pl.lit(trial.id))

    found = describe_divergence(row, row, find_course, guessing_losses({trial.id: trial.settings.task}))
    return found[DIVERGED].is_not_null().any()


def headline_of(study: Study, store: Store) -> Headline:
    """Return the headline of a study, with the best values in a store."""
    own = study_outcomes(study, load_outcomes(store, study))
    settings = {trial.id: trial.settings.task.model_dump_json() for trial in study.trials}
    tasks = own.select(
        "trial", pl.col("trial").replace_strict(settings, default=pl.col("task")).alias("task")
    )
    known: list[tuple[str, str, float]] = []
    for name in Headline(study).names:
        found = trial_values(study.name, own["trial"], own, name).filter(status="done")
        known += [(name, *row) for row in found.join(tasks, on="trial").select("task", "value").rows()]
    return Headline(study, known)
