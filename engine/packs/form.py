"""The form of a trial; trials of one form can take steps together."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ...studies.catalog.tasks import GeneratedTask
from ...studies.schema.settings import TrialSettings
from ..core.models import meta_model
from ..objectives import has_one_shape
from .stacked_steps import stacking_fault


def form_of(settings: TrialSettings) -> str | None:
    """Return the form of a trial as text; None if it cannot join a pack.

    Trials of one form have models and batches of the same shapes. Algorithmic tasks with the same interface
    share a form; for other tasks all task settings must be equal.
    """
    if alone_reason(settings) is not None:
        return None
    train, interface = settings.train, settings.task.interface
    task = None
    if isinstance(settings.task, GeneratedTask):
        task = settings.task.model_dump(mode="json")  # on which shapes of batches depend, and losses
    form = {
        "model": settings.model.model_dump(mode="json"),
        "interface": repr(interface),
        "task": task,
        "batch_size": train.batch_size,
        "steps_per_epoch": train.steps_per_epoch,
        "precision": train.precision,
        "groups": [group.model_dump(mode="json") for group in train.groups],
        "code": dict(settings.code),
    }
    return json.dumps(form, sort_keys=True)


def count_packs(every: Iterable[TrialSettings], most: int) -> int:
    """Return the number of packs of at most `most` trials; a trial that trains alone counts as one."""
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
    reasons = {
        "gradients are accumulated over parts of a batch ([train] accumulate)": train.accumulate > 1,
        "it computes with 16 bits ([train] precision)": train.precision == "bf16",
        "its model is compiled ([train] compile)": train.compile,
        "its loss has a penalty on learnt spans ([train] span_loss)": bool(train.span_loss),
        "its loss has other terms ([train] loss_terms)": bool(train.loss_terms),
        "its optimizer changes during training ([train] changes)": bool(train.changes),
        'the weights of its best epoch are kept ([train] keep = "best")': train.keep == "best",
        "it has callbacks ([train] callbacks)": bool(train.callbacks),
    }
    return next((reason for reason, holds in reasons.items() if holds), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class PackOutlook:
    """Expected packs: the number of trials that share a form, the largest group, and why others are alone."""

    together: int
    largest: int
    alone: Mapping[str, int]


def foresee_packs(every: Iterable[TrialSettings]) -> PackOutlook:
    """Predict the packs of trials; models are built without weights."""
    forms, faults, alone = Counter[str](), dict[str, str | None](), Counter[str]()
    for settings in every:
        reason = alone_reason(settings)
        form = form_of(settings) if reason is None else None
        if form is not None:
            if form not in faults:
                faults[form] = stacking_fault(meta_model(settings))
            reason = faults[form]
        if reason is not None:
            alone[reason] += 1
        elif form is not None:
            forms[form] += 1
    shared = [count for count in forms.values() if count > 1]
    if single := len(forms) - len(shared):
        alone["no other trial has the same model and batch shape"] += single
    return PackOutlook(together=sum(shared), largest=max(shared, default=0), alone=alone)
