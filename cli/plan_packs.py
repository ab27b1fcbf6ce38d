"""Packs in a plan: how many trials can train together, and why others cannot."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..studies.schema.search_settings import RACE
from ..studies.text.units import plural

if TYPE_CHECKING:
    from ..engine.packs.form import PackOutlook
    from ..studies.planning.plan import Plan
    from ..studies.study import Study
    from .machine_settings import MachineSettings


def packs(study: Study, plan: Plan, machine: MachineSettings) -> str:
    """`144 trials can train together, at most 16 at once …`; nothing without packs or trials to run.

    Torch is loaded where packs are asked for, as some models look at their weights.
    """
    left = [each.trial.settings for each in plan.trials if each.status != "done"]
    if machine.pack == "off":
        return ""
    if study.search is not None:
        return _told_of_search(study, machine)
    if not left:
        return ""
    from ..engine.core.resources import MAX_PACK
    from ..engine.packs.form import foresee_packs

    return _told(foresee_packs(left), MAX_PACK if machine.pack == "auto" else machine.pack, machine)


def _told_of_search(study: Study, machine: MachineSettings) -> str:
    assert study.search is not None, "it was looked at before"
    if len(study.seeds) == 1 or study.search.scheduler.name == RACE:
        return "the trials of a search train alone, as one comes after the other"
    measured = " and that is measured to be faster" if machine.pack == "auto" else ""
    return f"the {len(study.seeds)} seeds of a point train together, where its model can{measured}"


def _told(found: PackOutlook, most: int, machine: MachineSettings) -> str:
    reasons = sorted(found.alone.items(), key=lambda each: -each[1])
    if not found.together and len(reasons) == 1:
        return f"no trial can train with others: {reasons[0][0]}"
    measured = ", where that is measured to be faster" if machine.pack == "auto" else ""
    most = min(most, found.largest)
    told = f"{plural(found.together, 'trial')} can train together, at most {most} at once{measured}"
    first = told if found.together else "no trial can train with others"
    return "; ".join([first, *(f"{_who(count)} alone: {reason}" for reason, count in reasons)])


def _who(count: int) -> str:
    return "1 trains" if count == 1 else f"each of {count:,} trains"
