"""Answers of a search to programs that ask for its points, or submit points and ask for outcomes."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any, Self

from ....grammar import parse
from ....storage.rows import row_values
from ....studies.resolve.costs import parameter_count
from ....studies.resolve.trial import settings_to_json
from ....studies.schema.settings import Level

if TYPE_CHECKING:
    from .stored_points import SearchPoint


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A point that a search would try next.

    `study tell` accepts its JSON unchanged. `proposed_by` is a sampler, "random", "grid" or "baseline".
    """

    id: str
    values: Mapping[str, Level]
    recipe: str
    recipe_id: str
    proposed_by: str
    parameters: int
    seeds: tuple[int, ...]
    trials: tuple[str, ...]
    settings: Mapping[str, Any]

    @classmethod
    def of(cls, point: SearchPoint, proposed_by: str) -> Self:
        """Return the proposal of a search point."""
        first = point.trials[0].settings
        settings = json.loads(settings_to_json(first))
        del settings["seed"]
        recipe = parse(first.model.recipe)
        return cls(
            id=point.name,
            values=point.values,
            recipe=recipe.text,
            recipe_id=recipe.id,
            proposed_by=proposed_by,
            parameters=parameter_count(first),
            seeds=tuple(trial.settings.seed for trial in point.trials),
            trials=tuple(trial.id for trial in point.trials),
            settings=settings,
        )


class PointAnswer(StrEnum):
    """Answer to a submitted search point: accepted, waiting, known or refused."""

    ACCEPTED = "accepted"  # the next run trains it
    WAITING = "waiting"  # submitted before, or begun by a run
    KNOWN = "known"  # all of its trials have ended
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricOverSeeds:
    """The mean and the standard deviation of a metric over seeds. `sd` is null for one seed."""

    mean: float
    sd: float | None
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PointOutcome:
    """The outcome of one stored training of a point. Metrics without a finite value are left out."""

    trial: str
    seed: int
    status: str
    reason: str | None
    metrics: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class HandInAnswer:
    """The answer to one line of input of `study tell`.

    `line` counts from 1. For a known point, `trials` has the outcomes of its trainings by seed, and `results`
    the metrics of the finished ones.
    """

    line: int = 1
    answer: PointAnswer
    id: str | None = None
    values: Mapping[str, Level]
    recipe: str | None = None
    results: Mapping[str, MetricOverSeeds]
    trials: tuple[PointOutcome, ...] = ()
    faults: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        answer: PointAnswer,
        point: SearchPoint | None = None,
        *,
        rows: Sequence[Mapping[str, Any]] = (),
        faults: Sequence[str] = (),
    ) -> Self:
        """Make the answer to a submitted point. `rows` are the stored rows of its trials."""
        trials = tuple(
            PointOutcome(
                **{name: row[name] for name in ("trial", "seed", "status", "reason")},
                metrics={name: value for name, value in row_values(row).items() if math.isfinite(value)},
            )
            for row in rows
        )
        return cls(
            answer=answer,
            id=point and point.name,
            values=point.values if point else {},
            recipe=point and point.trials[0].settings.model.recipe,
            results=_metrics_over_seeds([each.metrics for each in trials if each.status == "done"]),
            trials=trials,
            faults=tuple(faults),
        )


def _metrics_over_seeds(metrics: Sequence[Mapping[str, float]]) -> dict[str, MetricOverSeeds]:
    found: dict[str, MetricOverSeeds] = {}
    for name in dict.fromkeys(name for each in metrics for name in each):
        values = [each[name] for each in metrics if name in each]
        sd = stdev(values) if len(values) > 1 else None
        found[name] = MetricOverSeeds(mean=fmean(values), sd=sd, n=len(values))
    return found
