"""Budgets that set the length of a training: `[train] tokens`, `flops` and `seconds`.

Tokens and FLOPs are turned into steps of an epoch. A trial only stores steps, so that trials with equally
many steps are the same, however a study counts them. Seconds stay in the settings: only the training can
count them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import Field

from ...grammar.vocabulary.spec import uncounted_kernels
from ..schema.settings import BUDGET_KEYS, TrialSettings, read_recipe
from ..text.strict_model import InvalidTableError, StrictModel, ValidationProblem, validate
from ..text.units import number_range
from .costs import has_many_lengths, sequence_tokens, step_flops

_STEPS = "steps_per_epoch"
_LARGEST_DEVIATION = 10.0  # percent of a budget that whole steps may miss without a warning

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
        problems += [
            ValidationProblem(("train", *each.path), each.message, key=each.key) for each in error.problems
        ]
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
