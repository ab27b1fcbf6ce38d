"""Sentences about tasks that no model has learnt: no length is solved, or accuracies are near chance."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from ..studies.catalog.metrics import metric_family
from ..studies.catalog.tasks import GeneratedTask
from ..studies.text.units import number_range

if TYPE_CHECKING:
    from ..studies.schema.settings import TrialSettings

SOLVED_LENGTH = "max_length"
"""The metric that is 0 if a training has not solved the first length of its curriculum."""

NEAR_CHANCE = 0.05
"""The share of the way from chance to 1 up to which an accuracy counts as that of guessing."""


def unsolved_sentence(lengths: Collection[float], settings: Iterable[TrialSettings]) -> str:
    """Return a hint to train longer if no training solved the first length of its curriculum; else ""."""
    starts = {each.train.curriculum.start for each in settings if each.train.curriculum is not None}
    if not starts or set(lengths) != {0.0}:
        return ""
    first = number_range(sorted(starts))
    return f"no training solved length {first}, the start of the curriculum: train longer or start shorter"


def chance_of(metric: str, settings: TrialSettings) -> float | None:
    """Return the value that guessing reaches in an accuracy metric. None if unknown, or for other metrics."""
    chance = settings.task.chance if isinstance(settings.task, GeneratedTask) else None
    if chance is None:
        return None
    return {"accuracy": chance, "scaled_accuracy": 0.0}.get(metric_family(metric).partition("_")[2])


def chance_sentence(metric: str, chance: float, values: Collection[float]) -> str:
    """Return a sentence that says that no model has learnt a task; "" unless all values are near chance."""
    if not values or max(values) > chance + NEAR_CHANCE * (1 - chance):
        return ""
    far = f"{100 * NEAR_CHANCE:g} % of the way from guessing ({chance:.2g}) to 1"
    hint = "; train longer, or make the task easier" if metric.startswith("dev_") else ""
    return f"no model gets {far}, so none has learnt this{hint}"
