"""A plan as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from ..reporting.plan_text import count_to_run, planned_rungs
from ..studies.planning.plan import Plan
from ..studies.presentation.design_notes import alias_words, explain_design
from ..studies.searches.words import rung_costs
from ..studies.study import Study
from .machine_settings import MachineSettings
from .pages import PlannedDevice, PlannedTrialEntry, StudyPlanPage
from .plan_costs import group_sizes_of
from .plan_devices import capacity_for


def plan_page(
    study: Study,
    plan: Plan,
    machine: MachineSettings,
    *,
    device_bytes: int | None = None,
    noise: Sequence[str] = (),
) -> StudyPlanPage:
    """Return the page of a plan.

    `device_bytes` adds the fit on such a device; `noise` has a search's detectable differences.
    """
    device = None
    if plan.memory is not None and device_bytes is not None:
        held = plan.memory[1]
        room = capacity_for(held, device_bytes, machine.gpus)
        device = PlannedDevice(
            bytes=device_bytes,
            trials=room.trials,
            fit=room.by_memory,
            parts=held.parts_that_fit(device_bytes),
        )
    return StudyPlanPage(
        study=study.name,
        title=study.title,
        total=plan.total,
        subset_size=plan.subset_size,
        counts=plan.counts,
        left=count_to_run(study, plan),
        elsewhere=plan.elsewhere,
        estimate=plan.estimate,
        design={
            "kind": study.design.kind,
            "told": explain_design(study.design),
            "aliases": alias_words(study.design),
        },
        match=study.design.matched_size and study.design.matched_size.name,
        models=plan.models,
        ladder=planned_rungs(study),
        rungs=rung_costs(study),
        over_budget=plan.over_budget,
        stale=plan.stale,
        reach_limits=plan.reach_limits,
        insufficient_reach=plan.insufficient_reach,
        memory=plan.memory and {"label": plan.memory[0], **asdict(plan.memory[1])},
        device=device,
        data=plan.data,
        flops=plan.flops,
        test=plan.test,
        groups=[
            {**each.group.model_dump(), "weights": each.weights, "numbers": each.numbers, "of": each.of}
            for each in group_sizes_of(study)
        ],
        trials=[
            PlannedTrialEntry(
                id=each.trial.id,
                levels=each.trial.levels,
                status=each.status,
                estimate=each.estimate,
                goes_on=plan.going_on.get(each.trial.id),
            )
            for each in plan.trials
        ],
        noise=noise,
    )
