"""A plan as data, for programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ..reporting.plan_ladder import planned_rungs
from ..reporting.plan_text import count_to_run
from ..reporting.results import StudyResults
from ..studies.planning.memory_estimates import StepMemory
from ..studies.planning.plan import ModelCost, Plan
from ..studies.planning.reused_trials import ShorterTrial
from ..studies.planning.time_estimates import TimeEstimate
from ..studies.presentation.design_notes import alias_words, explain_design
from ..studies.searches.words import rung_costs
from ..studies.study import Study
from .machine_settings import MachineSettings
from .plan_costs import group_sizes_of
from .plan_devices import room_for

if TYPE_CHECKING:
    from ..engine.optimisers.parameter_groups import GroupSize
    from .machine_settings import ResolvedSettings


def plan_page(
    study: Study, plan: Plan, settings: ResolvedSettings, *, device_bytes: int | None = None
) -> dict[str, Any]:
    """Return a plan made with a machine's settings.

    A search also has what its results can tell from noise.
    """
    page = plan_to_dict(
        study,
        plan,
        group_sizes_of(study),
        device_bytes=device_bytes,
        machine=settings.values,
    )
    return page | {"noise": StudyResults(study, settings.store).noise} if study.search else page


def plan_to_dict(
    study: Study,
    plan: Plan,
    groups: Sequence[GroupSize] = (),
    *,
    device_bytes: int | None = None,
    machine: MachineSettings | None = None,
) -> dict[str, Any]:
    """Return the plan with all its trials, for a program; seconds are null if nothing is known."""
    return {
        "study": study.name,
        "title": study.title,
        "total": plan.total,
        "part": plan.subset_size,
        "counts": dict(plan.counts),
        "left": count_to_run(study, plan),
        "elsewhere": plan.elsewhere,
        "estimate": _estimate(plan.estimate),
        "design": {
            "kind": study.design.kind,
            "told": explain_design(study.design),
            "aliases": alias_words(study.design),
        },
        **_models(study, plan),
        "ladder": [asdict(each) for each in planned_rungs(study)],
        "rungs": [asdict(each) for each in rung_costs(study)],
        "memory": None if plan.memory is None else {"label": plan.memory[0], **asdict(plan.memory[1])},
        "device": None
        if plan.memory is None or device_bytes is None
        else _device(plan.memory[1], device_bytes, machine or MachineSettings()),
        "data": {"facts": list(plan.data.facts), "warnings": list(plan.data.warnings)},
        "flops": plan.flops,
        "test": None if plan.test is None else asdict(plan.test),
        "groups": _groups_to_list(groups),
        "trials": [
            {
                "id": each.trial.id,
                "levels": dict(each.trial.levels),
                "status": each.status,
                "estimate": _estimate(each.estimate),
                "goes_on": _goes_on(plan.going_on.get(each.trial.id)),
            }
            for each in plan.trials
        ],
    }


def _models(study: Study, plan: Plan) -> dict[str, list[dict[str, Any]]]:
    """Return the models, those that are refused or were trained by other code, and how far models see."""
    return {
        "models": [
            {
                **_model_to_dict(model),
                "memory": model.memory,
                "estimate": _estimate(model.estimate),
                **_match(study, model),
            }
            for model in plan.models
        ],
        "refused": [{**_model_to_dict(each), "excess": each.excess} for each in plan.over_budget],
        "stale": [
            {
                "id": trial,
                "stored": each.stored,
                "code": {what: list(both) for what, both in each.changes.items()},
            }
            for trial, each in plan.stale.items()
        ],
        "ceilings": [
            {"labels": each.labels, "left": each.left, "right": each.right, "lengths": dict(each.max_lengths)}
            for each in plan.reach_limits
        ],
        "short": [
            {"labels": each.labels, "task": each.task, "sees": each.sees, "needs": each.needs}
            for each in plan.short_reaches
        ],
    }


def _goes_on(shorter: ShorterTrial | None) -> dict[str, str | int] | None:
    return None if shorter is None else {"trial": shorter.trial, "epoch": shorter.epochs}


def _model_to_dict(model: ModelCost) -> dict[str, Any]:
    names = ("label", "recipe", "trials", "parameters", "step_flops")
    return {name: getattr(model, name) for name in names}


def _match(study: Study, model: ModelCost) -> dict[str, Any]:
    """Return the size solved for a model, and the difference of its parameters from the baseline's."""
    if study.design.matched_size is None or model.size_match is None:
        return {}
    name, found = study.design.matched_size[0], model.size_match
    return {"match": {"name": name, "value": found.size, "target": found.target, "residual": found.residual}}


def _estimate(estimate: TimeEstimate) -> dict[str, Any]:
    return {"seconds": estimate.seconds, "basis": estimate.basis}


def _groups_to_list(sizes: Sequence[GroupSize]) -> list[dict[str, Any]]:
    """Each group of each model, for a program."""
    return [
        {**each.group.model_dump(), "weights": each.weights, "numbers": each.numbers, "of": each.of}
        for each in sizes
    ]


def _device(held: StepMemory, device_bytes: int, machine: MachineSettings) -> dict[str, Any]:
    found = room_for(held, device_bytes, machine.gpus)
    parts = held.parts_that_fit(device_bytes)
    return {"bytes": device_bytes, "trials": found.trials, "fit": found.by_memory, "parts": parts}
