"""Trial times estimated from the speed of a few measured steps."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from ..resolve.costs import flops_of_test, highest_length, max_training_flops
from ..schema.settings import TrialSettings

SHORT_S = 200.0
"""The seconds that Ray must save, besides its start-up time on a core, to be used."""

Speed = Sequence[tuple[float, float]]
"""The FLOPs of measured steps, ascending, with their seconds."""


def max_seconds_in_process(workers: int) -> float:
    """Return the seconds up to which a grid trains in this process instead of Ray with these workers."""
    workers = max(2, workers)
    return SHORT_S * (workers + 1) / (workers - 1)  # what is saved is total · (1 - 1 / workers)


def steps_to_measure(all_settings: Sequence[TrialSettings]) -> dict[float, TrialSettings]:
    """Return the cheapest and the most expensive of these trials, by the FLOPs of a step.

    The most expensive is included at its longest length, too.
    """
    kinds = sorted(all_settings, key=max_training_flops)
    tried = [
        _short(kinds[0], longest=False),
        _short(kinds[-1], longest=False),
        _short(kinds[-1], longest=True),
    ]
    return {max(1.0, max_training_flops(each) / each.train.steps_per_epoch): each for each in tried}


def trial_seconds(settings: TrialSettings, speed: Speed, *, grows_every: int) -> float:
    """Estimate the seconds of a trial with its tests from the speed of measured steps.

    Tests have the speed of the largest measured step. A growing length is assumed to grow every `grows_every`
    epochs.
    """
    epochs, steps = settings.train.epochs, settings.train.steps_per_epoch
    growing = -(-epochs // grows_every)
    grown = settings.model_copy(update={"train": settings.train.model_copy(update={"epochs": growing})})
    flops = max_training_flops(grown) / (growing * steps)
    largest_flops, largest_s = speed[-1]
    return epochs * steps * _interpolate(flops, speed) + flops_of_test(settings) * largest_s / largest_flops


def _interpolate(flops: float, speed: Speed) -> float:
    """Return the seconds of a step of `flops` FLOPs.

    Beyond the largest measured step proportional to FLOPs.
    """
    largest_flops, largest_s = speed[-1]
    if flops >= largest_flops:
        return largest_s * flops / largest_flops
    for (low, low_s), (high, high_s) in pairwise(speed):
        if low <= flops <= high:
            return low_s + (high_s - low_s) * (flops - low) / max(high - low, 1.0)
    return speed[0][1]


def _short(settings: TrialSettings, *, longest: bool) -> TrialSettings:
    """Return the settings of one epoch at a trial's first or last length, without its callbacks."""
    train = settings.train
    changes: dict[str, object] = {"epochs": 1, "compile": False, "callbacks": ()}
    if longest and train.curriculum is not None:
        start = highest_length(settings)
        changes["curriculum"] = train.curriculum.model_copy(update={"start": start, "end": None})
    return settings.model_copy(update={"train": train.model_copy(update=changes)})
