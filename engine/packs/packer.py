"""Packs: groups of trials that take their steps together."""

from __future__ import annotations

import json
import logging
import time
import traceback
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import torch

from ...blocks.layers.recurrent import LSTM
from ...studies.catalog.tasks import GeneratedTask
from ...studies.planning.memory_estimates import step_memory, trials_together
from ...studies.schema.settings import TrialSettings
from ..core.models import meta_model
from ..core.process import StoppedMidway, TimeLimitPassed, interruptible, raise_if_stopped
from ..objectives import has_one_shape
from ..trial.failures import free_memory, may_be_out_of_memory, note_lost_gpu
from ..trial.resumable_attempt import Attempt
from ..trial.training import Training
from ..trial.training_parts import map_tensors
from .stacked_steps import StackedSteps, stacking_fault

_OWN_KEYS = {
    *("optimizer", "schedule", "clip_norm", "clip_tensor_norm", "clip_step_norm", "average", "measure"),
    *("curriculum", "lengths", "epochs", "stop", "early_stopping"),
}
"""Keys of [train] in which the trials of a pack may differ."""

_EQUAL_KEYS = {"batch_size", "steps_per_epoch", "precision", "groups"}
"""Keys of [train] in which they are equal. All other keys must have their defaults."""

_ALONE_REASONS = {
    "accumulate": "gradients are accumulated over parts of a batch",
    "compile": "its model is compiled",
    "span_loss": "its loss has a penalty on learnt spans",
    "loss_terms": "its loss has other terms",
    "keep": "the weights of its best epoch are kept",
    "callbacks": "it has callbacks",
    "seconds": "it trains for a fixed time",
}


def form_of(settings: TrialSettings) -> str | None:
    """Return a text that is equal for all trials that can share a pack.

    This text is the form of the trial. Return None if the trial cannot join a pack. Trials of the same form
    have models and batches of the same shapes. Algorithmic tasks with the same interface share a form; for
    other tasks all task settings must be equal.
    """
    if alone_reason(settings) is not None:
        return None
    task, train = settings.task, settings.train
    form = {
        "model": settings.model.model_dump(mode="json"),
        "interface": repr((task.spec.kind, task.interface)),
        # the task determines the loss and the shapes of batches
        "task": task.model_dump(mode="json") if isinstance(task, GeneratedTask) else None,
        "train": train.model_dump(mode="json", include=_EQUAL_KEYS),
        "code": dict(settings.code),
    }
    return json.dumps(form, sort_keys=True)


def count_packs(every: Iterable[TrialSettings], most: int) -> int:
    """Count the packs of at most `most` of these trials; a trial that trains alone counts as one."""
    forms = Counter(map(form_of, every) if most > 1 else (None for _ in every))
    alone = forms.pop(None, 0)
    return alone + sum(-(-count // most) for count in forms.values())


def alone_reason(settings: TrialSettings) -> str | None:
    """Return why a trial cannot join a pack; None if it can."""
    train, task = settings.train, settings.task
    if not has_one_shape(settings):
        return f"task {task.name} has batches of several shapes"
    if train.lengths is not None and train.lengths[0] != train.lengths[1]:
        return "each batch has a length of its own ([train] lengths)"
    if train.precision == "bf16":
        return "it computes with 16 bits ([train] precision)"
    for key, field in type(train).model_fields.items():
        if key not in _OWN_KEYS | _EQUAL_KEYS and getattr(train, key) != field.default:
            return f"{_ALONE_REASONS.get(key, 'packs do not handle this key')} ([train] {key})"
    return None


def foresee_packs(every: Iterable[TrialSettings]) -> tuple[list[int], Counter[str]]:
    """Predict which trials of a run can share packs.

    Return the sizes of the groups of trials with equal shapes, and how many trials train alone, by reason.
    Models are built on the meta device, so they need no memory.
    """
    forms, faults, alone = Counter[str | None](), dict[str, str | None](), Counter[str]()
    for settings in every:
        if (form := form_of(settings)) is not None and form not in faults:
            faults[form] = stacking_fault(meta_model(settings))
        reason = alone_reason(settings) if form is None else faults[form]
        if reason is None:
            forms[form] += 1
        else:
            alone[reason] += 1
    shared = [count for count in forms.values() if count > 1]
    if single := len(forms) - len(shared):
        alone["no other trial has the same model and batch shape"] += single
    return shared, alone


MOST_NUMBERS = 20 * 2**10
"""The largest number of values in the outputs of a trial's layer for a pack on a CPU.

With more, computing takes longer than calling operations, and some packs are slower than their trials alone.
"""

MOST_NUMBERS_OF_LSTM = 2**13
"""The same for models with an LSTM, which has a fused kernel on a CPU. A pack cannot use it."""

_log = logging.getLogger(__name__)


class Packer:
    """Trainer of packs of at most `most` trials.

    With `fitting`, trials on a CPU form packs only if their steps are small, and on a GPU a pack must fit in
    `device_bytes`, the worker's share of its memory. If a pack fails, its trials repeat the epoch and then
    take their steps one by one. If memory runs out, later packs of their form have at most half as many
    members.
    """

    def __init__(self, most: int, *, fitting: bool = False, device_bytes: int | None = None) -> None:
        self._most, self._fitting, self._device_bytes = most, fitting, device_bytes
        self._bounds: dict[str, int] = {}  # maximum pack size of a form, after a pack of it failed

    def take_steps(self, attempts: Sequence[Attempt]) -> None:
        """Take the remaining steps of the current epoch for trials that fit into packs.

        Raise StoppedMidway on a requested stop, after saving all consistent trainings.
        """
        waiting = deque(self._groups(attempts))
        while waiting:
            form, members = waiting.popleft()
            if len(members) > (most := self._bounds.get(form, self._most)):
                waiting.extend((form, part) for part in _split(members, most))
                continue
            try:
                taken = self._try_pack(form, members)
            except StoppedMidway:
                for attempt in attempts:
                    attempt.save_midway()
                raise
            if not taken:
                free_memory()  # only now, because until here the frames of the failed call held tensors
                waiting.append((form, members))

    def _try_pack(self, form: str, members: Sequence[Attempt]) -> bool:
        """Take the steps of a pack, and return whether it succeeds; if not, allow only smaller packs."""
        try:
            take_steps_together(members)
        except Exception as error:  # noqa: BLE001 -- any error fails only the trial that causes it
            half = -(-len(members) // 2)
            most = half if len(members) > 2 and may_be_out_of_memory(error) else 1
            self._bounds[form] = most
            # another process then tries each trial alone, since the faulty one is unknown
            note_lost_gpu(error)
            how = "one by one" if most == 1 else f"in packs of at most {most}"
            what = " ".join(f"{type(error).__name__}: {error}".split())
            recipe = members[0].job.trial.settings.model.recipe
            _log.warning("%s: trials train %s, because together they fail: %s", recipe, how, what)
            return False
        return True

    def _groups(self, attempts: Iterable[Attempt]) -> Iterator[tuple[str, Sequence[Attempt]]]:
        groups: dict[tuple[str, str], list[Attempt]] = {}
        for attempt in attempts:
            training = attempt.packable
            if training is not None and (form := self._form(training)) is not None:
                key = form, f"{training.objective.step_shape}, {training.steps_left} steps"
                groups.setdefault(key, []).append(attempt)
        for (form, _), members in sorted(groups.items()):
            for part in _split(members, self.most_at_once(_trainings(members)[0])):
                yield form, part

    def most_at_once(self, training: Training) -> int:
        """Return the largest allowed size of a pack with this training."""
        if not self._fitting:
            return self._most
        shape, width = training.objective.step_shape, training.settings.model.d_model
        if training.device.type == "cpu":
            has_lstm = any(isinstance(each, LSTM) for each in training.model.modules())
            most = MOST_NUMBERS_OF_LSTM if has_lstm else MOST_NUMBERS
            return self._most if shape.sequences * shape.tokens * width <= most else 1
        if self._device_bytes is None:
            return self._most
        held = step_memory(training.settings, shape.tokens)
        return max(1, min(self._most, trials_together(held, self._device_bytes)))

    def _form(self, training: Training) -> str | None:
        settings = training.settings
        form = form_of(settings)
        if form is None or self._bounds.get(form) == 1:
            return None
        if (fault := stacking_fault(training.model)) is not None:
            self._bounds[form] = 1
            _log.info("%s: trials train one by one: %s", settings.model.recipe, fault)
            return None
        return form


def take_steps_together(members: Sequence[Attempt]) -> None:
    """Take the remaining steps of an epoch for all members.

    The steps end early at the members' time limits. All members have the same form and sequence length. Raise
    StoppedMidway on a stop, normally between two steps. If a step raises an exception, the trainings are
    restored to the state before this call, and the exception is raised again.
    """
    trainings = _trainings(members)
    # with many small tensors this is much faster than copy.deepcopy
    before = [map_tensors(training.state(), lambda each: each.detach().clone()) for training in trainings]
    left_s = _time_left_s(members)
    try:
        # each member is charged its share of the time, so together they may use the sum
        with interruptible(None if left_s is None else left_s * len(members)):
            while trainings[0].steps_left and ((left_s := _time_left_s(members)) is None or left_s > 0.0):
                _take_steps_until_due(members, left_s)
                for attempt in members:
                    if attempt.save_is_due:
                        attempt.save_midway()
    # TimeLimitPassed is no Exception
    except (TimeLimitPassed, Exception) as error:
        traceback.clear_frames(error.__traceback__)  # the frames hold tensors, and memory may be short
        for training, state in zip(trainings, before, strict=True):
            training.restore(state)
        if not isinstance(error, TimeLimitPassed):
            raise


def _trainings(members: Sequence[Attempt]) -> list[Training]:
    return [attempt.training for attempt in members if attempt.training is not None]


def _take_steps_until_due(members: Sequence[Attempt], left_s: float | None) -> None:
    """Take steps until the epoch ends, a checkpoint is due, or each has had about `left_s` seconds."""
    trainings = _trainings(members)
    began, device = time.perf_counter(), trainings[0].device
    try:
        with StackedSteps(trainings) as stacked:
            while trainings[0].steps_left:
                raise_if_stopped()
                stacked.step()
                passed_s = (time.perf_counter() - began) / len(members)
                if left_s is not None and passed_s > left_s:
                    break
                if any(attempt.save_is_due for attempt in members):
                    break
        if device.type != "cpu":
            # otherwise the time of these steps would count for the trial that is evaluated first
            torch.accelerator.synchronize(device)
    finally:
        seconds = (time.perf_counter() - began) / len(members)
        for training in trainings:
            training.work.add_seconds(seconds)


def _time_left_s(members: Sequence[Attempt]) -> float | None:
    left = [attempt.time_left_s for attempt in members if attempt.time_left_s is not None]
    return min(left, default=None)


def _split(members: Sequence[Attempt], most: int) -> Iterator[Sequence[Attempt]]:
    packs = -(-len(members) // most)
    for begin, end in pairwise(place * len(members) // packs for place in range(packs + 1)):
        if end - begin > 1:
            yield members[begin:end]
