"""The steps of an epoch of several trials, taken together or one by one, whichever is faster."""

from __future__ import annotations

import copy
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from statistics import median
from typing import NamedTuple, TypeVar, cast

import torch

from ..core.interruption import TimeLimitPassed, interruptible, leave_if_asked
from ..trial.resumable_attempt import Attempt
from ..trial.training import Training
from .gate import LEAST_RATIO, Gate, MeasuredRatio
from .stacked_optimiser import words_on_moves
from .stacked_steps import StackedSteps

_State = TypeVar("_State")

TIMED_STEPS = 2
"""So many steps are timed together, behind one that is not; one of each trial is timed alone."""


class Member(NamedTuple):
    """A trial that is under way, and its training."""

    attempt: Attempt
    training: Training

    @property
    def recipe(self) -> str:
        """Return the recipe of its model."""
        return self.training.settings.model.recipe


class Pack:
    """Trials of one form that are at the same length, for what is left of an epoch."""

    def __init__(self, form: str, members: Sequence[Member], gate: Gate | None) -> None:
        self._form, self._gate, self._members = form, gate, members
        self._attempts = [member.attempt for member in members]
        self._trainings = [member.training for member in members]
        self._device = self._trainings[0].device

    def take_steps(self) -> None:
        """Take the steps together if that is faster; otherwise, or where time is over, they are left.

        Raises StoppedMidway, between two steps if that takes no longer than some seconds, and whatever a step
        raises; the trainings are then as they were before.
        """
        if self._is_told() is False:
            return
        before = [_copied(training.state()) for training in self._trainings]
        try:
            with self._interruptible():
                self._take_steps()
        except (TimeLimitPassed, Exception) as error:
            traceback.clear_frames(error.__traceback__)  # what they hold may be what is missing
            for training, state in zip(self._trainings, before, strict=True):
                training.restore(state)
            if not isinstance(error, TimeLimitPassed):
                raise

    def _interruptible(self) -> AbstractContextManager[None]:
        """Return a context that ends some seconds after the first of the time limits has passed."""
        self._attempts[0].watch_pack()
        left_s = self._time_left_s()
        return interruptible(None if left_s is None else left_s * len(self._members))

    def _time_left_s(self) -> float | None:
        """Return the training seconds that are left to the trial that has least."""
        left = [attempt.time_left_s for attempt in self._attempts if attempt.time_left_s is not None]
        return min(left, default=None)

    def _take_steps(self) -> None:
        if not self._is_faster():
            return
        while self._trainings[0].steps_left and ((left_s := self._time_left_s()) is None or left_s > 0.0):
            self._together(self._trainings[0].steps_left)
            for attempt in self._attempts:
                if attempt.save_is_due:
                    attempt.save_midway()

    @property
    def _gated_form(self) -> str:
        """Return the form by which the gate knows it, with how weights are moved."""
        return f"{self._form}, {words_on_moves(self._trainings)}"

    @property
    def _size(self) -> tuple[int, int]:
        """Return how many trials there are, and the tokens of their sequences."""
        return len(self._members), self._trainings[0].objective.step_shape.tokens

    def _is_told(self) -> bool | None:
        """Return whether the gate says that steps are faster together; None if it does not know."""
        return True if self._gate is None else self._gate.lets_pass(self._gated_form, *self._size)

    def _is_faster(self) -> bool:
        """Return whether steps are faster together, by the gate or by measuring the next steps."""
        passes = self._is_told()
        if passes is None and self._can_measure:
            (trials, tokens), ratio = self._size, self._sure_ratio()
            if self._gate is not None and ratio is not None:
                measured = MeasuredRatio(trials=trials, tokens=tokens, ratio=round(ratio, 3))
                self._gate.remember(self._gated_form, measured)
                passes = measured.passes
        return bool(passes)

    @property
    def _can_measure(self) -> bool:
        """Return whether enough steps of the epoch are left."""
        return self._trainings[0].steps_left > 2 * (1 + TIMED_STEPS)

    def _sure_ratio(self) -> float | None:
        """Return the measured ratio; measure twice if it speaks against packs."""
        ratio = self._measured_ratio()
        if ratio is None or ratio >= LEAST_RATIO or not self._can_measure:
            return ratio
        again = self._measured_ratio()
        return ratio if again is None else (ratio + again) / 2

    def _measured_ratio(self) -> float | None:
        """Return how much longer a step takes alone than together; stacking is spread over an epoch.

        None where time is over before that is known. What is to be saved meanwhile waits.
        """
        began = self._now()
        together = self._together(1 + TIMED_STEPS, self._now, saving=False)
        stacking = self._now() - began - sum(together)
        if len(together) <= TIMED_STEPS:
            return None
        alone = len(self._members) * median(self._one_by_one())
        return alone / (median(together[1:]) + stacking / self._trainings[0].settings.train.steps_per_epoch)

    def _together(
        self, steps: int, now: Callable[[], float] = time.perf_counter, *, saving: bool = True
    ) -> list[float]:
        """Take up to `steps` steps together, fewer to save or at the time limit; return their times.

        The clock need not wait for a GPU where nobody asks how long its steps take.
        """
        began, times = time.perf_counter(), list[float]()
        left_s = self._time_left_s()
        try:
            with StackedSteps(self._trainings) as stacked:
                while len(times) < steps:
                    leave_if_asked()
                    step_began = now()
                    stacked.step()
                    times.append(now() - step_began)
                    passed_s = (time.perf_counter() - began) / len(self._members)
                    if left_s is not None and passed_s > left_s:
                        break
                    if saving and any(attempt.save_is_due for attempt in self._attempts):
                        break
            if self._device.type != "cpu":
                torch.accelerator.synchronize(self._device)  # or whoever is evaluated first pays for all
        finally:
            self._count(time.perf_counter() - began)
        return times

    def _one_by_one(self) -> list[float]:
        """Take one step of each alone; their times."""
        began, times = time.perf_counter(), list[float]()
        for training in self._trainings:
            leave_if_asked()
            step_began = self._now()
            training.take_steps()
            times.append(self._now() - step_began)
        self._count(time.perf_counter() - began)
        return times

    def _count(self, seconds: float) -> None:
        """Count time for all, the same share for each."""
        for training in self._trainings:
            training.work.add_seconds(seconds / len(self._trainings))

    def _now(self) -> float:
        """Return the time; of the processor if one thread does all, so that other processes do not count."""
        if self._device.type != "cpu":
            torch.accelerator.synchronize(self._device)
        elif torch.get_num_threads() == 1:
            return time.thread_time()
        return time.perf_counter()


def _copied(state: _State) -> _State:
    """Return a state of its own: as copy.deepcopy, but much faster where there are many small tensors."""
    made: object
    match state:
        case torch.Tensor():
            made = state.detach().clone()
        case dict():
            made = {key: _copied(value) for key, value in cast("dict[object, object]", state).items()}
        case list():
            made = [_copied(value) for value in cast("list[object]", state)]
        case _:
            made = copy.deepcopy(state)
    return cast("_State", made)
