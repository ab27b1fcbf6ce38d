"""The form of a trial: those of one form can take steps together."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable

from ...studies.catalog.tasks import GeneratedTask
from ...studies.schema.settings import TrialSettings
from ..objectives import has_one_shape


def form_of(settings: TrialSettings) -> str | None:
    """Return the form of a trial as text; None if it takes its steps alone.

    Trials of one form have models and batches of the same shapes. Algorithmic tasks with the same interface
    share a form; of other tasks all settings are part of it.
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
    """In how many packs of at most so many these trials are; one that takes its steps alone is one, too."""
    forms = Counter(map(form_of, every) if most > 1 else (None for _ in every))
    alone = forms.pop(None, 0)
    return alone + sum(-(-count // most) for count in forms.values())


def alone_reason(settings: TrialSettings) -> str | None:
    """Return why a trial takes its steps alone, whatever others there are; None if it need not."""
    train, task = settings.train, settings.task
    if not has_one_shape(settings):
        return f"task {task.name} has batches of several shapes"
    if train.lengths is not None and train.lengths[0] != train.lengths[1]:
        return "each batch has a length of its own ([train] lengths)"
    reasons = {
        "the parts of a batch come one after the other ([train] accumulate)": train.accumulate > 1,
        "products have 16 bits ([train] precision)": train.precision == "bf16",
        "its model is compiled ([train] compile)": train.compile,
        "its loss has a term of learnt spans ([train] span_loss)": bool(train.span_loss),
        "its loss has other terms ([train] loss_terms)": bool(train.loss_terms),
        "its optimizer changes ([train] changes)": bool(train.changes),
        'the weights of its best epoch are kept ([train] keep = "best")': train.keep == "best",
        "it has callbacks ([train] callbacks)": bool(train.callbacks),
    }
    return next((reason for reason, holds in reasons.items() if holds), None)
