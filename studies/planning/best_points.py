"""The best points of a search so far."""

from __future__ import annotations

import json
from dataclasses import dataclass
from statistics import fmean

import polars as pl

from ..catalog.metrics import METRICS
from ..catalog.tasks import AlgorithmicSettings
from ..schema.settings import Level, TrialSettings
from ..study import Study
from .status import study_outcomes, tried_point
from .trial_values import ValueStatus, trial_values

MAX_POINTS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class BestPoint:
    """A point whose trials are all done: its values by dimension, and its metric's mean over the seeds."""

    values: dict[str, Level]
    mean: float


def comparison_note(study: Study) -> str:
    """What a search's metric does not compare where curricula come to other lengths; or empty."""
    search = study.search
    if search is None or not any(_grows(trial.settings, search.metric) for trial in study.boundary_trials()):
        return ""
    return (
        f"{search.metric} is at the length that each point's curriculum has come to, so that points which "
        "come further may have a worse one; max_length, or lengths drawn by [train] lengths, compare them"
    )


def _grows(settings: TrialSettings, metric: str) -> bool:
    """Whether a metric is one of sequences that become longer as a model gets better."""
    task = settings.task
    return (
        isinstance(task, AlgorithmicSettings)
        and settings.train.lengths is None
        and metric not in ("length", "max_length")
        and not metric.startswith("test_")
        and METRICS[metric].higher_is_better is not None
    )


def best_points(study: Study, outcomes: pl.DataFrame) -> list[BestPoint]:
    """The best few points of a search in the store's latest attempts, best first; none for a grid.

    A point is none of them if one of its trainings diverged, where `outcomes` tell it.
    """
    search = study.search
    if search is None:
        return []
    tried = study_outcomes(study, outcomes)
    values = trial_values(study.name, tried["trial"], tried, search.metric)
    values = values.join(tried.select("trial", "factors"), on="trial", maintain_order="left")
    points: dict[str, list[float]] = {}
    measured = values.filter(status=ValueStatus.DONE).select("trial", "factors", "value")
    for trial, factors, value in measured.iter_rows():
        point = tried_point(study, trial, json.loads(factors))
        points.setdefault(json.dumps(point), []).append(value)
    complete = [
        BestPoint(values=json.loads(point), mean=fmean(means))
        for point, means in points.items()
        if len(means) == len(study.point_seeds(json.loads(point)))
    ]
    return sorted(complete, key=lambda each: each.mean, reverse=search.direction == "max")[:MAX_POINTS]
