"""How a study stands, as it is told: lines for what failed and what has begun, and the same for a program."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime

from ..studies.standing import Standing
from ..studies.study import Study
from ..studies.trial import Trial
from . import drawing
from .columns import Columns
from .figures import WIDTH, crop, duration

_LONGEST_REASON = 60


def failures(now: Standing) -> list[str]:
    """A line for each reason why trials failed."""
    return [f"  {count} failed   {crop(reason, _LONGEST_REASON)}" for reason, count in now.reasons]


def unfinished(study: Study, now: Standing) -> list[str]:
    """A line for each of the trials that have begun, the latest first: how far it came, and how long ago."""
    trials, clock = {trial.id: trial for trial in study.trials()}, datetime.now(UTC)
    rows: list[tuple[Trial, list[str]]] = []
    for name, far in now.reached.items():
        ago = f"{duration((clock - far.at).total_seconds())} ago"
        rows.append((trials[name], [*drawing.reached(trials[name], far.epoch, far.metrics), ago]))
    return drawing.unfinished(rows, Columns(trials.values()), WIDTH)


def as_data(now: Standing) -> dict[str, object]:
    """The same for a program: counts of all, by status, of what is left and begun, and the reasons."""
    counts = now.counts
    return {
        "trials": now.total,
        **{status: counts[status] for status in ("done", "failed", "pruned")},
        "left": now.left,
        "begun": len(now.begun),
        "reached": [
            {"trial": name, "epoch": far.epoch, "metrics": _finite(far.metrics), "at": far.at.isoformat()}
            for name, far in now.reached.items()
        ],
        "weightless": len(now.weightless),
        "reasons": dict(now.reasons),
    }


def _finite(metrics: Mapping[str, float]) -> dict[str, float | None]:
    """The metrics as JSON can hold them: null for what is no number, or without end."""
    return {name: value if math.isfinite(value) else None for name, value in metrics.items()}
