"""The metric that a study is about, as the line of each finished trial shows it: its value, and the best."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import polars as pl

from ...studies.catalog.metrics import METRICS, Metric
from ...studies.planning.status import study_outcomes
from ...studies.planning.trial_values import trial_values
from ...studies.schema.epoch_metrics import epoch_metrics
from ...studies.schema.settings import TrialSettings
from ...studies.study import Study

_SHORT_NAMES = {"max_length": "max", "accuracy": "acc"}
"""The names of metrics in lines of running trials, which these lines share."""

_MAIN_METRICS = ("dev_bpc", "dev_perplexity", "dev_accuracy", "dev_mae", "dev_loss")
"""The metrics of the dev split by which a task is judged; a trial shows the first one that it has."""


class Headline:
    """The metric that a search optimises, or that the first table shows, with the best value of any trial.

    Without either it is the main metric of the tasks, if they share one. A study without a metric, or whose
    metric trials do not report, has none: then `words` are empty.
    """

    def __init__(self, study: Study, values: Iterable[float] = ()) -> None:
        self._metric, self._sign = _metric_of(study)
        self._best: float | None = None
        for value in values:
            self._note(value)

    @property
    def name(self) -> str | None:
        """The name of the metric."""
        return None if self._metric is None else self._metric.name

    def words(self, metrics: Mapping[str, float]) -> list[str]:
        """Return `loss 0.412` and `best 0.398` for a trial that ended with these metrics."""
        if self._metric is None or (value := metrics.get(self._metric.name)) is None:
            return []
        self._note(value)
        shown = [f"{_SHORT_NAMES.get(self._metric.name, self._metric.name)} {self._text(value)}"]
        return shown if self._best is None else [*shown, f"best {self._text(self._best)}"]

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
        assert self._metric is not None, "a value of the metric"
        return self._metric.format(value)


def headline_of(study: Study, outcomes: pl.DataFrame) -> Headline:
    """Return the headline of a study, with the best of the outcomes that a store has."""
    headline = Headline(study)
    if headline.name is None:
        return headline
    own = study_outcomes(study, outcomes)
    found = trial_values(study.name, own["trial"], own, headline.name)
    return Headline(study, found.filter(status="done")["value"].to_list())


def main_metric(settings: TrialSettings) -> str | None:
    """Return the metric of the dev split by which a trial's task is judged; None without a dev split."""
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
