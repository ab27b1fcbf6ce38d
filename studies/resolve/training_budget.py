"""The length of a training: budgets that set it, such as `[train] tokens`, and settings beyond its end.

Tokens and FLOPs are turned into steps of an epoch. A trial only stores steps, so that trials with equally
many steps are the same, however a study counts them. Seconds stay in the settings: only the training can
count them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from pydantic import Field

from ...grammar.vocabulary.spec import uncounted_kernels
from ..catalog.optimisers import OwnScheduleSettings
from ..schema.settings import BUDGET_KEYS, TrainSettings, TrialSettings, read_recipe
from ..text.strict_model import InvalidTableError, StrictModel, ValidationProblem, validate
from ..text.units import number_range, plural
from .costs import has_many_lengths, sequence_tokens, step_flops

_STEPS = "steps_per_epoch"
_LARGEST_DEVIATION = 10.0  # percent of a budget that whole steps may miss without a warning
_MAX_SENTENCES = 4

SECONDS_EFFECT = "its steps depend on the device, and FLOPs count one step an epoch"


class BudgetSettings(StrictModel):
    """Keys of `[train]` with a training's length in tokens or FLOPs, in place of `steps_per_epoch`."""

    tokens: int | None = Field(default=None, ge=1)
    """the tokens of the whole training, instead of steps_per_epoch: each epoch has the number of steps that
    comes nearest"""
    flops: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """the operations of the whole training, forward and backward, instead of steps_per_epoch"""


def spend_budget(settings: TrialSettings, key: str, amount: float) -> TrialSettings:
    """Return the settings with `steps_per_epoch` set by this amount of the budget's key.

    Raise ValueError if that number is unknown, or if the budget is less than half a step in each epoch.
    """
    if has_many_lengths(settings):
        raise ValueError(f"a budget needs sequences of one length, but these differ: set {_STEPS} instead")
    if key == "flops":
        if fault := uncounted_kernels(read_recipe(settings.model.recipe).root):
            raise ValueError(fault)
        step = step_flops(settings)
    else:
        step = settings.train.batch_size * sequence_tokens(settings)
    least = settings.train.epochs * step
    if amount < (half := -(-least // 2)):
        raise ValueError(f"expected at least {half:,}, which is half a step in each epoch, got {amount:,.0f}")
    return settings.with_train(steps_per_epoch=max(1, round(amount / least)))


def take_budget(tables: Mapping[str, Any], problems: list[ValidationProblem]) -> tuple[str, float] | None:
    """Remove a budget in tokens or FLOPs from a trial's [train] table; return its key and its amount.

    Set steps_per_epoch to 1 if it is missing. Return None for a faulty budget, which is added to the
    problems, and for seconds, which stay.
    """
    train = tables["train"]
    given = [key for key in (_STEPS, *BUDGET_KEYS) if key in train]
    own = {key: train.pop(key) for key in BudgetSettings.model_fields if key in train}
    train.setdefault(_STEPS, 1)
    try:
        found = validate(BudgetSettings, own)
    except InvalidTableError as error:
        problems += [replace(each, path=("train", *each.path)) for each in error.problems]
        return None
    budgets = [(key, amount) for key in own if (amount := getattr(found, key)) is not None]
    if len(given) > 1:
        expected = f"expected only one of {', '.join((_STEPS, *BUDGET_KEYS))}"
        message = f"{expected}, got {' and '.join(given)}: remove one"
        problems.append(ValidationProblem(("train", given[-1]), message))
        return None
    return budgets[0] if budgets else None


def budget_note(train: Mapping[str, Any], trials: Iterable[TrialSettings]) -> tuple[str, str]:
    """Return a note on the steps that the budget in [train] gives.

    The note is a label and a text. The text also states by how many percent the steps may miss the budget; if
    that is much, the label is "warning". Without a budget the text is "".
    """
    key = next((key for key in BUDGET_KEYS if key in train), None)
    if key == "seconds":
        return "budget", f"seconds end each training: {SECONDS_EFFECT}"
    steps = sorted({each.train.steps_per_epoch for each in trials}) if key else []
    if not steps:
        return "budget", ""
    off = 50 / (steps[0] - 0.5)  # rounding to whole steps changes a budget by up to half a step
    count = f"{number_range(steps)} step{'' if steps == [1] else 's'}"
    if off > _LARGEST_DEVIATION:
        text = f"{key} give only {count} in each epoch, which can miss the budget by {off:.3g} %"
        return "warning", f"{text}: fewer epochs come nearer"
    return "budget", f"{key} give {count} in each epoch, within {off:.3g} % of the budget"


def unreached_settings(train: TrainSettings) -> Iterator[str]:
    """Yield a sentence for each setting of [train] that needs more steps or epochs than the training has."""
    epochs = f"the {plural(train.epochs, 'epoch')} of the training"
    waits = {"stop.epochs": train.stop.epochs} if train.stop else {}
    waits |= {"early_stopping.patience": train.early_stopping.patience} if train.early_stopping else {}
    own = train.schedule if isinstance(train.schedule, OwnScheduleSettings) else OwnScheduleSettings()
    waits |= {"schedule.patience": own.patience} if own.name == "plateau" else {}
    # a wait begins after the first epoch, and one that ends with the last changes nothing
    yield from (
        f"{key} = {wait:,} has no effect within {epochs}"
        for key, wait in waits.items()
        if wait >= train.epochs - 1
    )
    if train.seconds is not None:  # the number of steps is not known
        return
    steps, warmup = train.epochs * train.steps_per_epoch, train.schedule.warmup
    within = f"the {plural(steps, 'step')} of the training"
    if warmup > steps:
        share = 100 * steps / warmup
        yield f"warmup = {warmup:,} is longer than {within}: the rate ends at {share:.2g} % of lr"
    elif own.cooldown > steps - warmup:
        yield f"cooldown = {own.cooldown:,} is too long for {within}: the rate never reaches lr"
    if late := [each for each in own.milestones if each >= steps]:
        yield f"milestones = {late} has no effect within {within}"
    if own.name == "recent" and (first := (own.patience + 1) * own.every) >= steps:
        yield f"the schedule recent first compares losses after {first:,} steps, not within {within}"
    if train.average is not None and (span := round(1 / (1 - train.average))) > steps:
        how = f"spans about {span:,} steps, more than {within}: it weighs them nearly equally"
        yield f"average = {train.average:g} {how}"
    if (sampling := train.scheduled_sampling) is not None and sampling.double_every > steps:
        growth = 2 ** (steps / sampling.double_every)
        key = f"scheduled_sampling.double_every = {sampling.double_every:,}"
        yield f"{key} is longer than {within}: the share becomes {growth:.3g} times start"


def unreached_note(trials: Iterable[TrialSettings]) -> str:
    """Return a note on the settings of [train] that trials do not reach, or ""."""
    found = list(dict.fromkeys(text for each in trials for text in unreached_settings(each.train)))
    more = f"; and {len(found) - _MAX_SENTENCES:,} more of this kind" if len(found) > _MAX_SENTENCES else ""
    return "; ".join(found[:_MAX_SENTENCES]) + more
