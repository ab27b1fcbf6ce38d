"""A plan as a person reads it, and as data."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from textwrap import wrap
from typing import Any

from ..studies.estimates import Estimate
from ..studies.labels import level_name, short_levels
from ..studies.plan import ModelCost, Plan
from ..studies.study import Study
from .figures import WIDTH, duration, plural, prefix, squeezed
from .settings import MachineSettings

NONE = "–"
"""What stands where there is no number."""

_MOST_MODELS = 24


def picture(study: Study, plan: Plan, values: MachineSettings) -> str:
    """The lines of `study plan`: what there is to run, what each model costs, and what cannot be reached."""
    lines = [
        *wrap(f"{plan.study} · {plan.title}", WIDTH),
        *wrap(_counts(study, plan), WIDTH),
        "",
        *_models(study, plan),
    ]
    lines += [
        "",
        *wrap(_whole(plan, values), WIDTH, initial_indent="  in all   ", subsequent_indent=" " * 11),
    ]
    for note in _notes(study, plan):
        lines += ["", *note]
    for ceiling in plan.ceilings:
        lines += ["", *wrap(str(ceiling), WIDTH, initial_indent="  note   ", subsequent_indent=" " * 9)]
    return "\n".join(lines)


def _notes(study: Study, plan: Plan) -> Iterator[list[str]]:
    """What was solved for equal parameters, and each model that is over the budget."""
    solved = [model.sized for model in plan.models if model.sized is not None]
    if study.design.size is not None and solved:
        name, given = study.design.size
        baseline = {**study.design.baseline, name: given}
        cell = ", ".join(f"{factor}={level_name(level)}" for factor, level in baseline.items())
        worst = max(solved, key=lambda one: abs(one.share))
        text = f"{name} solved for the parameters of {cell}; largest residual {_signed(worst.residual)}"
        share = f", {100 * abs(worst.share):.2g} %" if worst.residual else ""
        yield wrap(text + share, WIDTH, initial_indent="  match  ", subsequent_indent=" " * 9)
    for each in plan.refused:
        text = f"{each.label}: {each.excess}; {plural(each.trials, 'trial')} not run"
        yield wrap(text, WIDTH, initial_indent="  over   ", subsequent_indent=" " * 9)


def data(study: Study, plan: Plan) -> dict[str, Any]:
    """The plan with all its trials, for a program; seconds are null where nothing is known."""
    return {
        "study": plan.study,
        "title": plan.title,
        "total": plan.total,
        "part": plan.part,
        "counts": dict(plan.counts),
        "left": left(study, plan),
        "estimate": _estimate(plan.estimate),
        "models": [
            {
                "label": model.label,
                "recipe": model.recipe,
                "trials": model.trials,
                "parameters": model.parameters,
                "step_flops": model.step_flops,
                "estimate": _estimate(model.estimate),
                **_match(study, model),
            }
            for model in plan.models
        ],
        "refused": [asdict(each) for each in plan.refused],
        "ceilings": [
            {"labels": each.labels, "left": each.left, "right": each.right, "lengths": dict(each.lengths)}
            for each in plan.ceilings
        ],
        "trials": [
            {
                "id": each.trial.id,
                "levels": dict(each.trial.levels),
                "status": each.status,
                "estimate": _estimate(each.estimate),
            }
            for each in plan.trials
        ],
    }


def left(study: Study, plan: Plan) -> int:
    """The trials that a run would train; those that a search has pruned are not among them."""
    return plan.total - sum(plan.counts.values()) if study.search else plan.left


def _counts(study: Study, plan: Plan) -> str:
    """`8 mixers × 6 tasks × 3 seeds = 144 trials · 12 in the store · 132 to run`."""
    axes = [_axis(name, len(levels)) for name, levels in plan.factors.items() if len(levels) > 1]
    seeds = plural(len(study.seeds), "seed")
    product = math.prod(map(len, plan.factors.values()))
    if study.search:
        axes, product = [plural(study.search.trials, "point"), seeds], plan.total
    elif product != plan.cells * len(study.seeds):
        axes, product = [plural(plan.cells, "cell"), seeds], plan.cells * len(study.seeds)
    whole = plural(plan.total, "trial" if product == plan.total else "distinct trial")
    held, failed = sum(plan.counts.values()), plan.counts.get("failed", 0)
    whole += f", {plan.part:,} in this part" if plan.part is not None else ""
    parts = [f"{' × '.join(axes)} = {whole}" if axes else whole, f"{held:,} in the store"]
    parts += [f"{failed:,} of them failed"] if failed else []
    parts += [f"{left(study, plan):,} to run"]
    parts[-1] += f", {plan.weightless:,} of them for their weights" if plan.weightless else ""
    over = sum(each.trials for each in plan.refused)
    return " · ".join([*parts, f"{over:,} over budget"] if over else parts)


def _axis(name: str, count: int) -> str:
    """`8 mixers`, but `5 levels of N`: a letter or a key has no plural."""
    return plural(count, name) if name.isalpha() and len(name) > 1 else f"{count:,} levels of {name}"


def _models(study: Study, plan: Plan) -> Iterator[str]:
    """A line for each model: its label, size, cost of a step and time of a trial."""
    unit, size = prefix(max((model.step_flops for model in plan.models), default=0))
    solved = () if study.design.size is None else (study.design.size[0], "residual")
    rows = [(_corner(plan), *solved, "parameters", f"{unit}FLOPs/step", "est. per trial")]
    rows += [_row(model, size) for model in plan.models[:_MOST_MODELS]]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)][1:]
    labels = _labels([row[0] for row in rows], WIDTH - sum(widths) - 3 * len(widths) - 2)
    for label, (_, *others) in zip(labels, rows, strict=True):
        yield label + "".join(f"   {text:>{width}}" for text, width in zip(others, widths, strict=True))
    if len(plan.models) > _MOST_MODELS:
        yield f"  and {plural(len(plan.models) - _MOST_MODELS, 'model')} more"


def _labels(texts: Sequence[str], room: int) -> list[str]:
    """The first column: labels too wide for it lose the arguments that all share, then their middles."""
    corner, *labels = texts
    shown = (corner, *(labels if max(map(len, labels), default=0) <= room else short_levels(labels)))
    widest = min(room, max(map(len, shown)))
    return [f"  {text:<{widest}}" for text in squeezed(shown, widest)]


def _row(model: ModelCost, size: float) -> tuple[str, ...]:
    found = model.sized
    solved = (
        () if found is None else (NONE if found.size is None else f"{found.size:,}", _signed(found.residual))
    )
    costs = (f"{model.parameters:,}", f"{model.step_flops / size:,.1f}", _time(model.estimate))
    return (model.label, *solved, *costs)


def _match(study: Study, model: ModelCost) -> dict[str, Any]:
    """What was solved for a model, and how far its parameters are from the baseline's."""
    if study.design.size is None or model.sized is None:
        return {}
    name, found = study.design.size[0], model.sized
    return {"match": {"name": name, "value": found.size, "target": found.target, "residual": found.residual}}


def _signed(count: int) -> str:
    """A difference with its sign, a true minus: `+12`, `−1,284`, `0`."""
    return f"{count:+,}".replace("-", "−") if count else "0"


def _corner(plan: Plan) -> str:
    """The factor whose levels the models are called by, if it is one."""
    labels = {model.label for model in plan.models}
    factors = (
        name for name, levels in plan.factors.items() if labels <= {level_name(each) for each in levels}
    )
    return next(factors, "model")


def _time(estimate: Estimate) -> str:
    if estimate.seconds is None:
        return NONE
    return f"{'≤ ' if estimate.basis == 'at most' else ''}{duration(estimate.seconds)}"


def _whole(plan: Plan, values: MachineSettings) -> str:
    """The time of all that is left, as far as it is known."""
    seconds = plan.estimate.seconds
    if seconds is None:
        return (
            "no estimate before a first trial has run on this machine: activemem study run … --max-trials 1"
        )
    most = "at most " if plan.estimate.basis == "at most" else ""
    if values.gpus:
        return f"{most}{duration(seconds)} of training, one trial after the other"
    workers = max(1, int((os.cpu_count() or 1) / values.cpus))
    wall_s = max(seconds / workers, plan.longest_s)  # no trial is split
    return f"{most}{seconds * values.cpus / 3600:,.1f} core-hours, {duration(wall_s)} on this machine"


def _estimate(estimate: Estimate) -> dict[str, Any]:
    return {"seconds": estimate.seconds, "basis": estimate.basis}
