"""A running study as lines: counts, running trials, ended trials, and its main metric."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Protocol

import polars as pl

from ...engine.core.events import ClaimedElsewhere, Ended, Started
from ...engine.core.progress import RunningTrial
from ...studies.catalog.metrics import METRICS, Metric
from ...studies.planning.status import study_outcomes
from ...studies.planning.trial_values import trial_values
from ...studies.resolve.trial import Trial
from ...studies.schema.epoch_metrics import epoch_metrics
from ...studies.schema.settings import TrialSettings
from ...studies.study import Study
from ...studies.text.units import format_duration
from .trial_names import TrialNames

MAX_RUNNING_LINES = 6
"""The maximum number of running trials with a line each."""

_MAX_TRIAL_NAME_WIDTH = 42
"""The maximum width of the column with an ended trial's names."""

_FORMATS = {"max_length": ".0f", "length": ".0f", "accuracy": ".3f", "loss": ".4f"}
"""The displayed metrics and their formats."""


class Progress(Protocol):
    """The progress of a study, from a driver or from its store."""

    @property
    def total(self) -> int:
        """Return the number of trials of the study, as far as it is known."""
        ...

    @property
    def share(self) -> float:
        """Return the finished share of the study, including the epochs of running trials."""
        ...

    @property
    def counts(self) -> Counter[str]:
        """Return the number of ended trials by status."""
        ...

    @property
    def running(self) -> Mapping[str, RunningTrial]:
        """Return the trials in training."""
        ...

    def remaining_s(self) -> float | None:
        """Return the remaining wall seconds; None while unknown."""
        ...


def format_counts(progress: Progress) -> str:
    """Describe ended and running trials, and the remaining time. For example `61/144 1 running ETA 39 s`."""
    counts, left_s = progress.counts, progress.remaining_s()
    words = [f"{len(progress.running)} running"]
    words += [f"{counts[status]} {status}" for status in ("failed", "pruned") if counts[status]]
    eta = "–" if left_s is None else format_duration(left_s)
    return f"{counts.total()}/{progress.total}   {' · '.join(words)}   ETA {eta}"


def format_running(progress: Progress, columns: TrialNames, width: int) -> list[str]:
    """Return a line for each of the first running trials, and the number of others."""
    trials = [
        (each.trial, progress_words(each.trial, each.epoch, each.metrics))
        for each in progress.running.values()
    ]
    return format_trials(trials, columns, width)


def format_trials(
    trials: Sequence[tuple[Trial, Sequence[str]]], columns: TrialNames, width: int
) -> list[str]:
    """Return a line for each of the first trials with its texts, and the number of others."""
    shown = trials[:MAX_RUNNING_LINES]
    words = _align_columns([words for _, words in shown])
    room = width - max(map(len, words), default=0)
    lines = [
        ("".join(f"  {cell}" for cell in columns.cells(trial, room)) + text).rstrip()
        for (trial, _), text in zip(shown, words, strict=True)
    ]
    more = len(trials) - len(shown)
    return [*lines, *([f"  and {more} more"] if more else [])]


def progress_words(trial: Trial, epoch: int, metrics: Mapping[str, float]) -> list[str]:
    """Describe a trial's progress: `epoch 61/100`, `accuracy 0.998`."""
    shown = _format_metrics(metrics, ("length", "accuracy")) or _format_metrics(metrics, ("loss",))
    return [f"epoch {epoch}/{trial.settings.train.epochs}", *shown]


def format_ended(
    event: Ended, trial: Trial, count: tuple[int, int], columns: TrialNames, headline: Headline
) -> str:
    """Return a line for an ended trial: the count of ended trials, its status, its names and its result.

    The result is the study's own metric with the best so far, else the main metric of the trial's task, or
    its length and accuracy.
    """
    ended, total = count
    main = main_metric(trial.settings)
    found = headline.words(event.metrics) or _format_metrics(event.metrics, ("max_length", "accuracy"))
    if not found and main is not None and main in event.metrics:
        found = [f"{main} {METRICS[main].format(event.metrics[main])}"]
    outcome = found if event.reason is None else [first_line(event.reason)]
    counted = f"{ended:>{len(str(total))}}/{total}"
    names = columns.cells(trial, _MAX_TRIAL_NAME_WIDTH)
    return "  ".join([f"{counted}   {event.status:<6}", *names, *outcome]).rstrip()


def format_continued(event: Started, trial: Trial, columns: TrialNames) -> str:
    """Return `continues conv(k=3) seed 1 from epoch 12` for a trial begun by an earlier run."""
    place = f"epoch {event.epoch}" if event.epoch else f"step {event.step}"
    names = "  ".join(name.strip() for name in columns.cells(trial, _MAX_TRIAL_NAME_WIDTH))
    return " ".join(["continues", *([names] if names else []), "from", place])


def format_others(others: Sequence[ClaimedElsewhere]) -> str:
    """Describe the processes that train the trials a run waits for.

    For example `another driver trains 3 of them: process 71 on node2`.
    """
    counts = Counter((each.host, each.pid) for each in others)
    who = "another driver trains" if len(counts) == 1 else "other drivers train"
    owners = [f"process {pid} on {host}" for host, pid in sorted(counts)]
    if len(counts) > 1:
        owners = [f"{owner} ({counts[key]})" for owner, key in zip(owners, sorted(counts), strict=True)]
    return f"{who} {len(others)} of them; waiting for {', '.join(owners)}"


def first_line(reason: str) -> str:
    """Return a reason without its traceback."""
    return reason.partition("\n")[0]


def _format_metrics(metrics: Mapping[str, float], names: Sequence[str]) -> list[str]:
    return [f"{name} {metrics[name]:{_FORMATS[name]}}" for name in names if name in metrics]


def _align_columns(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip_longest(*rows, fillvalue="")]
    return ["".join(f"  {text:<{width}}" for text, width in zip(row, widths, strict=False)) for row in rows]


_MAIN_METRICS = ("dev_bpc", "dev_perplexity", "dev_accuracy", "dev_mae", "dev_loss")
"""The dev metrics by which a task is judged; a trial shows the first one that it has."""


class Headline:
    """The metric that a search optimises, or that the first table shows, with the best value of any trial.

    Without either it is the main metric of the tasks, if they share one. A study without a metric, or whose
    trials do not report it, has none: then `words` is empty.
    """

    def __init__(self, study: Study, values: Iterable[float] = ()) -> None:
        self._metric, self._sign = _metric_of(study)
        self._best: float | None = None
        for value in values:
            self._note(value)

    @property
    def name(self) -> str | None:
        """Return the name of the metric."""
        return None if self._metric is None else self._metric.name

    def words(self, metrics: Mapping[str, float]) -> list[str]:
        """Return `loss 0.412` and `best trial 0.398` for a trial that ended with these metrics."""
        if self._metric is None or (value := metrics.get(self._metric.name)) is None:
            return []
        self._note(value)
        shown = [f"{self._metric.name} {self._text(value)}"]
        return shown if self._best is None else [*shown, f"best trial {self._text(self._best)}"]

    def best_words(self) -> str:
        """Return `best loss 0.398`; empty without a best value."""
        return (
            ""
            if self._metric is None or self._best is None
            else f"best {self._metric.name} {self._text(self._best)}"
        )

    def _note(self, value: float) -> None:
        if self._sign and math.isfinite(value):
            best = value if self._best is None else self._best
            self._best = max(value, best) if self._sign > 0 else min(value, best)

    def _text(self, value: float) -> str:
        assert self._metric is not None, "the caller has checked for a metric"
        return self._metric.format(value)


def headline_of(study: Study, outcomes: pl.DataFrame) -> Headline:
    """Return the headline of a study, with the best value among a store's outcomes."""
    headline = Headline(study)
    if headline.name is None:
        return headline
    own = study_outcomes(study, outcomes)
    found = trial_values(study.name, own["trial"], own, headline.name)
    return Headline(study, found.filter(status="done")["value"].to_list())


def main_metric(settings: TrialSettings) -> str | None:
    """Return the dev metric by which a trial's task is judged; None without a dev split."""
    measured = epoch_metrics(settings)
    return next((name for name in _MAIN_METRICS if name in measured), None)


def _metric_of(study: Study) -> tuple[Metric | None, int]:
    """Return the metric, and 1 if higher is better, −1 if lower is, 0 if neither."""
    if study.search is not None:
        objective = study.search.objectives[0]
        return METRICS.get(objective.name), 1 if objective.maximise else -1
    names = [name for table in study.tables[:1] for _, name in table.named_metrics()]
    if not study.tables:
        main = {main_metric(trial.settings) for trial in study.trials}
        names = [name for name in main if name and len(main) == 1]
    metric = METRICS.get(names[0]) if names else None
    if metric is None or metric.higher_is_better is None:
        return metric, 0
    return metric, 1 if metric.higher_is_better else -1
