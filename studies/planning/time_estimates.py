"""Estimates of how long trials train, from outcomes on this machine or from a few measured steps."""

from __future__ import annotations

import platform
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Literal, get_args

import polars as pl

from ..catalog.tasks import AlgorithmicTask
from ..resolve.costs import flops_of_test, highest_length, max_training_flops, sequence_tokens
from ..resolve.trial import CellKey, Kind, Trial, first_of_each_kind
from ..schema.settings import TrialSettings, read_recipe
from ..text.units import format_duration
from .final_values import final_value

EstimateBasis = Literal["measured", "at most", "unknown"]
"""The basis of a time: "measured" on finished trials that differ only in the seed, or set by [train]
seconds; "at most" from the speed of other trials or measured steps, for a length that grows every epoch; or
unknown."""

MeasureSteps = Callable[[Sequence[TrialSettings]], Callable[[TrialSettings], float] | None]
"""Measures some steps of these trials; the result gives an upper bound of each trial's seconds."""


NO_NUMBER = "–"
"""The placeholder for a missing number."""


@dataclass(frozen=True, slots=True)
class TimeEstimate:
    """An estimate of a training time in seconds.

    `basis` says how it was made. `seconds` is None if the time is unknown. For an upper bound, `expected` is
    the time if the length grows as far as in similar stored models.
    """

    seconds: float | None
    basis: EstimateBasis
    expected: float | None = None

    @property
    def words(self) -> str:
        """The estimate as text, such as `~9 s, ≤ 15 s`; a dash for an unknown time."""
        if self.seconds is None:
            return NO_NUMBER
        bound = f"{'≤ ' if self.basis == 'at most' else ''}{format_duration(self.seconds)}"
        if self.expected is None or format_duration(self.expected) == bound.removeprefix("≤ "):
            return bound
        return f"~{format_duration(self.expected)}, {bound}"

    def scaled(self, factor: float) -> TimeEstimate:
        """Return the estimate of a share or a multiple of the work."""
        seconds, expected = (
            None if each is None else each * factor for each in (self.seconds, self.expected)
        )
        return TimeEstimate(seconds, self.basis, expected)


MIN_INFORMATIVE_FLOPS = 1e8
"""The FLOPs of a step above which its time predicts other recipes' times; below, overhead dominates."""

UNKNOWN_TIME = TimeEstimate(None, "unknown")


class TimeEstimator:
    """Estimator of training times from the outcomes on the device of this machine that was used last."""

    def __init__(
        self, outcomes: pl.DataFrame, trials: Sequence[Trial], measure: MeasureSteps | None = None
    ) -> None:
        """Compute speeds and training times from outcomes.

        Speeds come from all outcomes, and training times from the outcomes of these trials. If no outcome
        gives a speed, `measure` measures it.
        """
        self._outcomes, self._trials, self._measure = outcomes, trials, measure
        rows = _outcomes_on_this_device(outcomes)
        speed = pl.col("flops").sum() / pl.col("seconds").sum()
        self._speeds: Mapping[str, float] = dict(rows.group_by("recipe_id").agg(speed).iter_rows())
        large = rows.filter(pl.col("flops") / pl.col("steps") >= MIN_INFORMATIVE_FLOPS)
        self._task_speeds: Mapping[str, float] = dict(large.group_by("task").agg(speed).iter_rows())
        self._speed: float | None = large.select(speed).item() if len(large) else None
        seconds = dict(rows.filter(pl.col("status") == "done").select("trial", "seconds").iter_rows())
        cells: dict[CellKey, list[float]] = {}
        for trial in trials:
            if trial.id in seconds:
                cells.setdefault(trial.cell, []).append(seconds[trial.id])
        self._cells: Mapping[CellKey, float] = {cell: fmean(found) for cell, found in cells.items()}
        self._known: dict[Kind, TimeEstimate] = {}

    def estimate(self, trial: Trial) -> TimeEstimate:
        """Estimate the training time of one trial."""
        kind = Kind(trial.common)  # shared by the trials of a cell
        if kind not in self._known:
            self._known[kind] = self._estimate_cell(trial)
        return self._known[kind]

    def _estimate_cell(self, trial: Trial) -> TimeEstimate:
        """Estimate the time of a trial from others of its cell, or from its FLOPs and a measured speed."""
        if (seconds := self._cells.get(trial.cell)) is not None:
            return TimeEstimate(seconds, "measured")
        settings = trial.settings
        if settings.train.seconds is not None:
            return TimeEstimate(settings.train.seconds, "measured")
        known = self._task_speeds.get(settings.task.name, self._speed)
        speed = self._speeds.get(read_recipe(settings.model.recipe).id, known)
        flops = max_training_flops(settings)
        if speed is not None:
            seconds = (flops + flops_of_test(settings)) / speed
        elif self._measured is not None:
            seconds = self._measured(settings)
        else:
            return UNKNOWN_TIME
        reached = self._reached.get((settings.task.name, _blocks(settings.model.recipe)))
        if reached is None:
            return TimeEstimate(seconds, "at most")
        return TimeEstimate(seconds, "at most", expected=seconds * _flops_to(settings, reached) / flops)

    @cached_property
    def _measured(self) -> Callable[[TrialSettings], float] | None:
        if self._measure is None:
            return None
        return self._measure([each.settings for each in first_of_each_kind(self._trials)])

    @cached_property
    def _reached(self) -> Mapping[tuple[str, frozenset[str]], float]:
        """The mean `max_length` of finished trials, by task and block names.

        The metric is the longest length that a trial has learned. Trials of all machines count, because the
        reached length does not depend on the machine's speed.
        """
        done = self._outcomes.filter(pl.col("status") == "done")
        lengths = done.select("task", "recipe", length=final_value("max_length")).drop_nulls()
        found: dict[tuple[str, frozenset[str]], list[float]] = {}
        for task, recipe, length in lengths.iter_rows():
            found.setdefault((task, _blocks(recipe)), []).append(length)
        return {key: fmean(each) for key, each in found.items()}


def total_time(estimates: Iterable[TimeEstimate]) -> TimeEstimate:
    """Add the estimated times of trials. The sum is as certain as the least certain estimate (`basis`)."""
    found = list(estimates)
    bases: list[EstimateBasis] = ["measured", *(one.basis for one in found)]
    basis = max(bases, key=get_args(EstimateBasis).index)
    if basis == "unknown":
        return UNKNOWN_TIME
    expected = sum(one.seconds or 0.0 if one.expected is None else one.expected for one in found)
    is_bounded = any(one.expected is not None for one in found)
    return TimeEstimate(sum(one.seconds or 0.0 for one in found), basis, expected if is_bounded else None)


def _blocks(recipe: str) -> frozenset[str]:
    # arguments are removed first: models with the same blocks in other sizes count as similar
    return frozenset(re.findall(r"[a-z_]\w*", re.sub(r"(?<=\w)\([^()]*\)", "", recipe)))


def _flops_to(settings: TrialSettings, length: float) -> float:
    """Return the training FLOPs of a trial that reaches this length but not the next one."""
    train, task = settings.train, settings.task.spec
    if not isinstance(task, AlgorithmicTask) or train.curriculum is None:
        return max_training_flops(settings)
    end = max(train.curriculum.start, int(length) + task.length_step)
    curriculum = train.curriculum.model_copy(update={"end": min(end, highest_length(settings))})
    return max_training_flops(settings.with_train(curriculum=curriculum))


def _outcomes_on_this_device(outcomes: pl.DataFrame) -> pl.DataFrame:
    here = outcomes.filter(
        (pl.col("host") == platform.node()) & (pl.col("flops") > 0) & (pl.col("seconds") > 0)
    )
    # hosts of equal names are common among virtual machines
    if "cuda_version" in here.columns and not any(Path("/dev").glob("nvidia[0-9]*")):
        here = here.filter(pl.col("cuda_version").fill_null("") == "")
    if not len(here):
        return here
    # without how the device was used
    device = pl.col("device").str.replace(r", (a share of|batches in) .*$", "")
    latest = here.sort("finished", "trial").select(device).item(-1, 0)
    return here.filter(device == latest)


SHORT_S = 200.0
"""The seconds that Ray must save, besides its start-up time on a core, to be used."""


class RecipeTimes:
    """Estimator of a trial's training time from the finished epochs of its recipe.

    It uses the epochs that the current run has finished. A recipe's mean is mixed with the mean of all
    recipes, which weighs as much as one trial. A recipe without a finished epoch gets the mean of the others.
    """

    def __init__(self) -> None:
        self._seconds = defaultdict[str, float](float)  # by recipe
        self._shares = defaultdict[str, float](float)  # trained fractions of trials, by recipe

    def add(self, recipe: str, seconds: float, share: float) -> None:
        """Record the seconds that a part of a trial has taken, which is this `share` of the trial."""
        self._seconds[recipe] += seconds
        self._shares[recipe] += share

    @property
    def mean_s(self) -> float | None:
        """Return the mean seconds of a trial over all recipes; None before the first epoch."""
        shares = sum(self._shares.values())
        return sum(self._seconds.values()) / shares if shares else None

    def trial_s(self, recipe: str) -> float:
        """Return the expected seconds of a whole trial of this recipe."""
        mean = self.mean_s
        assert mean is not None, "there is no estimate before the first epoch"
        return (self._seconds[recipe] + mean) / (self._shares[recipe] + 1)


START_S = 1.0
"""The seconds of a trial besides its steps and tests, to build and check the model and to write its row."""

Speed = Sequence[tuple[float, float]]
"""The FLOPs of measured steps, ascending, with their seconds."""


def max_seconds_in_process(workers: int) -> float:
    """Return the longest training time, in seconds, of a grid that trains in this process.

    Longer grids use Ray workers. For longer grids, parallel training saves more than the start of Ray costs.
    """
    workers = max(2, workers)
    return SHORT_S * (workers + 1) / (workers - 1)  # parallel workers save total · (1 - 1 / workers)


MEASURED_FLOPS = 1e10
"""The largest steps that are measured, in FLOPs; a slow core takes about a second for one."""


def steps_to_measure(all_settings: Sequence[TrialSettings]) -> dict[float, TrialSettings]:
    """Return the settings of the trials whose training step is measured, by the FLOPs of that step.

    They are steps of the cheapest trial at its first length, and of the most expensive trial at its first and
    longest lengths. Batches of larger steps are reduced. A step that is too large even with one sequence is
    left out.
    """
    kinds = sorted(all_settings, key=max_training_flops)
    tried = [_short(kinds[0], 0.0), _short(kinds[-1], 0.0), _short(kinds[-1], 1.0)]
    steps = [_with_part_of_batch(each, MEASURED_FLOPS / _flops_of_step(each)) for each in tried]
    return {flops: each for each in steps if (flops := _flops_of_step(each)) <= MEASURED_FLOPS}


def _with_part_of_batch(settings: TrialSettings, part: float) -> TrialSettings:
    """Return settings whose batches have this part of their sequences: at least one, at most all."""
    if part >= 1:
        return settings
    return settings.with_train(batch_size=max(1, int(part * settings.train.batch_size)), accumulate=1)


_COMPARED_FLOPS = 3e9
"""The FLOPs of a step of which two precisions are compared: less than a tenth of a second on most cores."""

_LEAST_PART = 1 / 4
"""The smallest part of a larger batch that still has the speed of the whole batch."""

_LENGTH_SHARES = (1 / 2, 1 / 4, 1 / 8, 0)
"""The shares of the mean progress at which two precisions are compared, if the mean is too long."""


def steps_to_compare(all_settings: Sequence[TrialSettings]) -> list[TrialSettings]:
    """Choose the cheapest and the most expensive of these trials to compare precisions.

    A growing length has its probable mean. Larger batches are reduced to a part. If that leaves a step too
    large to be measured in a plan, the step has the whole batch at a shorter length. The list is empty if
    even the first length is too long.
    """
    kinds = sorted(all_settings, key=max_training_flops)
    steps = list[TrialSettings]()
    for each in kinds if len(kinds) == 1 else (kinds[0], kinds[-1]):
        short = _short(each, _MEAN_PROGRESS)
        part = _COMPARED_FLOPS / _flops_of_step(short)
        if part < _LEAST_PART:
            shorter = (_short(each, share * _MEAN_PROGRESS) for share in _LENGTH_SHARES)
            small = (one for one in shorter if _flops_of_step(one) * _LEAST_PART <= _COMPARED_FLOPS)
            if (short := next(small, None)) is None:
                return []
            part = 1.0
        steps.append(_with_part_of_batch(short, part))
    return steps


def positions_of_first_step(settings: TrialSettings) -> int:
    """Return the number of positions (sequences × tokens) in the first batch that a trial computes.

    With `accumulate`, this batch is one part of the first step.
    """
    train, task = settings.train, settings.task.spec
    tokens = sequence_tokens(settings)
    if isinstance(task, AlgorithmicTask) and train.curriculum is not None:
        tokens = task.sequence_length(train.curriculum.start)
    return train.batch_size * tokens // train.accumulate


def _flops_of_step(settings: TrialSettings) -> float:
    return max(1.0, max_training_flops(settings) / settings.train.steps_per_epoch)


def trial_seconds(settings: TrialSettings, speed: Speed, *, grows_every: int) -> float:
    """Estimate the seconds of a trial, including its tests, from the times of measured steps.

    Tests have the speed of the largest measured step. A growing length is assumed to grow every `grows_every`
    epochs.
    """
    if settings.train.seconds is not None:
        return settings.train.seconds
    epochs, steps = settings.train.epochs, settings.train.steps_per_epoch
    growing = -(-epochs // grows_every)
    flops = max_training_flops(settings.with_train(epochs=growing)) / (growing * steps)
    largest_flops, largest_s = speed[-1]
    tests_s = flops_of_test(settings) * largest_s / largest_flops
    return START_S + epochs * steps * _interpolate(flops, speed) + tests_s


def _interpolate(flops: float, speed: Speed) -> float:
    """Interpolate the seconds of a step with this many FLOPs."""
    largest_flops, largest_s = speed[-1]
    if flops >= largest_flops:
        return largest_s * flops / largest_flops
    for (low, low_s), (high, high_s) in pairwise(speed):
        if low <= flops <= high:
            return low_s + (high_s - low_s) * (flops - low) / max(high - low, 1.0)
    return speed[0][1]


_MEAN_PROGRESS = 0.25
"""The mean length of a trial, between its first and its longest, if it grows in every second epoch."""


def _short(settings: TrialSettings, progress: float) -> TrialSettings:
    """Return settings that shorten a trial to one epoch, to measure a step.

    Callbacks and compilation are switched off. `progress` sets the length of a curriculum: 0 is the first
    length of the trial, and 1 the longest.
    """
    train, task = settings.train, settings.task.spec
    changes: dict[str, object] = {"epochs": 1, "compile": False, "callbacks": ()}
    if progress and isinstance(task, AlgorithmicTask) and train.curriculum is not None:
        first, step = train.curriculum.start, task.length_step
        start = first + step * round(progress * (highest_length(settings) - first) / step)
        changes["curriculum"] = train.curriculum.model_copy(update={"start": start, "end": None})
    return settings.with_train(**changes)
