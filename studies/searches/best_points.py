"""The best points of a search so far."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from ..catalog.metrics import METRICS
from ..catalog.tasks import AlgorithmicSettings
from ..schema.search_settings import SearchSettings
from ..schema.settings import Level, TrialSettings
from ..study import Study
from .points import SearchPoints, find_points

MAX_POINTS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class BestPoint:
    """A point whose trials are all done: its values by dimension, the objectives' means over the seeds.

    `limited` are the means of what has a limit, all within it.
    """

    values: dict[str, Level]
    means: tuple[float, ...]
    limited: tuple[float, ...] = ()

    @property
    def mean(self) -> float:
        """The mean of the first objective."""
        return self.means[0]


def comparison_note(study: Study) -> str:
    """Return what a search's metric does not compare when curricula reach other lengths; or empty."""
    search = study.search
    ends = [trial.settings for trial in study.boundary_trials()] if search else []
    names = [each.name for each in search.objectives] if search else []
    growing = next((name for name in names if any(_grows(settings, name) for settings in ends)), None)
    if growing is None:
        return ""
    return (
        f"{growing} is at the length that each point's curriculum has come to, so that points which "
        "come further may have a worse one; max_length, or lengths drawn by [train] lengths, compare them"
    )


def _grows(settings: TrialSettings, metric: str) -> bool:
    """Return whether a metric is of sequences that grow as a model gets better."""
    task = settings.task
    return (
        isinstance(task, AlgorithmicSettings)
        and settings.train.lengths is None
        and metric not in ("length", "max_length")
        and not metric.startswith("test_")
        and metric in METRICS
        and METRICS[metric].higher_is_better is not None
    )


def best_points(study: Study, outcomes: pl.DataFrame) -> list[BestPoint]:
    """Return the best few points of a search in the store's latest attempts, best first; none for a grid.

    Of several objectives it returns the points that no other beats, sorted by the first objective. Points
    that exceed a limit, and points with a diverged training, are left out.
    """
    search = study.search
    if search is None:
        return []
    return best_of(search, find_points(study, outcomes))


def best_of(search: SearchSettings, found: SearchPoints) -> list[BestPoint]:
    """Return the best few of these points."""
    chosen = found.front() if len(found.goals) > 1 else found.ranked()[:MAX_POINTS]
    return [
        BestPoint(
            values=dict(each.values),
            means=tuple(_known(each.mean(goal.metric)) for goal in found.goals),
            limited=tuple(_known(each.mean(limit.name)) for limit in search.bounds),
        )
        for each in chosen
    ]


def _known(value: float | None) -> float:
    """Return the value of a point that counts."""
    assert value is not None, "a point whose seeds all have a value"
    return value
