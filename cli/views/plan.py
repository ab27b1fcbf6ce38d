"""A plan on a terminal, with notes about the command's machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...engine.core.gpus import has_gpu
from ...engine.core.resources import cpus_here
from ...reporting import plan_text
from ...reporting.plan_text import NO_ESTIMATE, MachineNotes
from ...studies.planning.plan import Plan
from ...studies.planning.step_times import max_seconds_in_process
from ...studies.study import Study
from ...studies.text.units import format_duration, plural, si_prefix
from ..machine_settings import MachineSettings
from ..output import bold, output_width
from ..plan_devices import describe_capacity, describe_device

if TYPE_CHECKING:
    from ...engine.optimisers.build import GroupSize

_CORE_FLOPS = 5e10
"""The peak FLOP/s of a CPU core; few trainings reach it."""

_MAX_CPU_DAYS = 21


def format_plan(
    study: Study,
    plan: Plan,
    machine: MachineSettings,
    groups: Sequence[GroupSize] = (),
    *,
    device_bytes: int | None = None,
    noise: Sequence[str] = (),
    packs: str = "",
    run_free: int | None = None,
    at_once: int | None = None,
    first_trial: str = "",
    elsewhere: str = "",
) -> str:
    """Return the lines of `study plan`.

    - `device_bytes` adds how many trials fit on such a device.
    - `noise` has a search's detectable differences.
    - `packs` says which trials can train together.
    - `run_free` is the memory that the study's run found free on a GPU here.
    - `at_once` is the number of trials that can train at once.
    - `first_trial` is the command that trains one trial.
    - `elsewhere` says how long a named GPU would take.
    """
    notes = MachineNotes(
        total=_format_total_time(study, plan, machine, first_trial),
        where="; ".join(filter(None, (describe_device(plan, machine, run_free, at_once), elsewhere))),
        room=""
        if plan.memory is None or device_bytes is None
        else describe_capacity(plan.memory[1], device_bytes, machine),
        packs=packs,
        activation_checkpointing=machine.activation_checkpointing,
    )
    return plan_text.format_plan(
        study, plan, notes, groups=groups, noise=noise, width=output_width(), bold=bold
    )


def _cpu_months(plan: Plan) -> str:
    """Return a note that a study needs a GPU if its FLOPs alone would take this machine's CPUs weeks."""
    days = plan.flops / (_CORE_FLOPS * cpus_here()) / 86_400
    if days < _MAX_CPU_DAYS:
        return ""
    months, unit = days / 30, "month"
    if months >= 24:
        months, unit = days / 365, "year"
    unit, size = (f"{unit}s" if round(months) != 1 else unit), max(1, round(months))
    prefix, scale = si_prefix(plan.flops)
    return (
        f"needs a GPU: {plan.flops / scale:,.1f} {prefix}FLOPs take about {size:,} {unit} on this machine's "
        f"{plural(int(cpus_here()), 'CPU core')}, at {_CORE_FLOPS / 1e9:.0f} GFLOPs/s each"
    )


def _format_total_time(study: Study, plan: Plan, machine: MachineSettings, first_trial: str) -> str:
    seconds = plan.estimate.seconds
    trains_on_gpu = machine.gpus and (machine.gpus != "auto" or has_gpu())
    if seconds is None:
        unknown = f"{NO_ESTIMATE}:\n{first_trial}" if first_trial else NO_ESTIMATE
        return unknown if trains_on_gpu else _cpu_months(plan) or unknown
    bound = "at most " if plan.estimate.basis == "at most" else ""
    expected = plan.estimate.expected
    if trains_on_gpu:
        about = "" if expected is None else f"about {format_duration(expected)}, "
        return f"{about}{bound}{format_duration(seconds)} of training, one trial after the other"
    workers = max(1, int(cpus_here() / machine.cpus))
    is_alone = study.search is None and machine.address is None
    if is_alone and seconds <= max_seconds_in_process(workers):
        workers = 1  # so short a grid trains in one process
    about = "" if expected is None else f"about {_on_cpus(plan, machine, expected, workers)}; "
    return f"{about}{bound}{_on_cpus(plan, machine, seconds, workers)} on this machine"


def _on_cpus(plan: Plan, machine: MachineSettings, seconds: float, workers: int) -> str:
    """Return the core-hours of `seconds` of training and this machine's time: `3.1 core-hours, 1.6 h`."""
    longest = plan.max_trial_s if seconds == plan.estimate.seconds else 0.0  # no trial is split
    wall_s = max(seconds / workers, longest)
    core_hours = f"{seconds * machine.cpus / 3600:,.1f} core-hours, "
    return f"{'' if core_hours.startswith('0.0') else core_hours}{format_duration(wall_s)}"
