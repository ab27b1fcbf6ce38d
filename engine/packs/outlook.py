"""Packs before anything trains: how many trials can train together, and why others cannot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ...studies.schema.settings import TrialSettings
from ..core.models import outline_model
from .form import alone_reason, form_of
from .stacked_steps import stacking_fault


@dataclass(frozen=True, slots=True, kw_only=True)
class PackOutlook:
    """Trials that share their form with others, how many there are of the largest, and the others by why."""

    together: int
    largest: int
    alone: Mapping[str, int]


def foresee_packs(every: Iterable[TrialSettings]) -> PackOutlook:
    """Return what packs there can be of trials; models are built without their weights."""
    forms, faults, alone = Counter[str](), dict[str, str | None](), Counter[str]()
    for settings in every:
        reason = alone_reason(settings)
        form = form_of(settings) if reason is None else None
        if form is not None:
            if form not in faults:
                faults[form] = stacking_fault(outline_model(settings))
            reason = faults[form]
        if reason is not None:
            alone[reason] += 1
        elif form is not None:
            forms[form] += 1
    shared = [count for count in forms.values() if count > 1]
    if single := len(forms) - len(shared):
        alone["no other trial has its model and its batches"] += single
    return PackOutlook(together=sum(shared), largest=max(shared, default=0), alone=alone)
