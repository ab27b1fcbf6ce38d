"""Devices of a plan: where trials will train, and how many fit at once."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ..engine.core.gpus import (
    Gpu,
    count_gpus_of_processes,
    gpu_fault,
    gpu_here,
)
from ..engine.core.resources import Gpus, cpus_here
from ..storage import Store
from ..studies.planning.memory_estimates import GpuRoom, StepMemory, room_on_gpu
from ..studies.planning.plan import Plan, most_at_once
from ..studies.schema.search_settings import RACE
from ..studies.text.units import format_bytes, plural

if TYPE_CHECKING:
    from ..engine.packs.form import PackOutlook
    from ..studies.planning.plan import Plan
    from ..studies.resolve.trial import Trial
    from ..studies.study import Study
    from .machine_settings import MachineSettings, ResolvedSettings


def free_for_run(study: str, store: Store) -> int | None:
    """Return the free memory of each GPU at the start of the study's run here; None without a run."""
    found = (store.records.load(study) or {}).get("gpu")
    if found is None:
        return None
    leases, last = store.watched_leases(), store.last_numbers()
    claims = [leases.find(trial, last.get(trial, -1) + 1) for trial in store.state().notes]
    owners = [claim.owner for claim in claims if claim is not None and not (claim.ended or claim.gone)]
    here = any(each.run == found["run"] and each.machine == leases.owner.machine for each in owners)
    return found["free"] if here else None


def describe_device(
    plan: Plan,
    machine: MachineSettings,
    run_free: int | None = None,
    at_once: int | None = None,
) -> str:
    """Describe the training device.

    For example `this machine's GPU, NVIDIA H100: 12 such trials at once, as many as fit …`. If a run of the
    study trains here now, its own trials use a part of the memory. `run_free` is then the memory that the run
    found free on each GPU. At most `at_once` of the study's trials can train at once; None is any number.
    """
    gpus, address = machine.gpus, machine.address
    if address is not None:
        asked = "CPUs" if not gpus else "its GPUs, if a node has one, else its CPUs"
        asked = asked if gpus in ("auto", 0) else f"its GPUs, {_gpu_share(gpus)} for each trial"
        here = _where_here(plan, machine, run_free, at_once, local=True)
        return f"the cluster at {address}: {asked}; with --local, {here}"
    return _where_here(plan, machine, run_free, at_once)


def _where_here(
    plan: Plan,
    machine: MachineSettings,
    run_free: int | None,
    at_once: int | None,
    *,
    local: bool = False,
) -> str:
    gpus = machine.gpus
    if not gpus:
        return "this machine's CPU, because gpus = 0"
    if (found := gpu_here()) is None:
        return _without_gpu(gpus)
    gpu, count = found
    gpu = gpu if run_free is None else replace(gpu, free=min(gpu.bytes, run_free))
    others = _others(gpu, run_free)
    if local:
        return f"this machine's GPU, {gpu.name}, for one trial at a time{others}"
    count = max(count, count_gpus_of_processes())
    name = f"this machine's {f'{count} GPUs' if count > 1 else 'GPU'}, {gpu.name}"
    shared = plan.memory and _shared(plan.memory[1], gpu, count, machine, others=others, at_once=at_once)
    return f"{name}: {shared}" if shared else f"{name}{others}"


def _without_gpu(gpus: Gpus) -> str:
    if (fault := gpu_fault()) is not None:
        return f"nowhere: torch finds no GPU here, because CUDA fails: {fault}"
    if gpus == "auto":
        return "this machine's CPU: torch finds no GPU here"
    return f"nowhere: gpus = {gpus:g}, and torch finds no GPU here"


def _others(gpu: Gpu, run_free: int | None) -> str:
    """Describe other processes' use of a GPU, or that a running study found less than all of it."""
    if gpu.free == gpu.bytes:
        return ""
    held = f"other processes use {format_bytes(gpu.bytes - gpu.free)}"
    return f" ({held if run_free is None else 'free at the start of its run here'})"


def _shared(
    held: StepMemory, gpu: Gpu, count: int, machine: MachineSettings, *, others: str, at_once: int | None
) -> str:
    if (cpus := cpus_here()) < machine.cpus:
        here = f"{plural(cpus, 'CPU')} {'is' if cpus == 1 else 'are'} here"
        return f"no such trial, because cpus = {machine.cpus:g} and {here}; one with --local"
    asked = _trials_per_gpu(machine.gpus)
    trials = None if at_once is None else at_once / count
    found = room_on_gpu(
        held, gpu.free, cpus=cpus / count, cpus_of_each=machine.cpus, trials=trials, asked=asked
    )
    place = "" if count == 1 else " on each"
    if found.bound == "one" or (at_once is not None and found.bound == "trials" and at_once < count):
        busy = int(cpus / machine.cpus) if found.bound == "one" else at_once
        place = f" on {'one' if busy == 1 else busy} of them"
    told = f"{_at_once(held, gpu.free, found, machine.gpus, place)}{others}"
    if found.trials == 1 or not found.by_memory:
        return told
    return f"{told}; one with --local"


def _trials_per_gpu(gpus: Gpus) -> int | None:
    """Return how many trials a share of a GPU allows; None if no share is set."""
    return None if gpus == "auto" or not gpus else max(1, int(1 / gpus))


def capacity_for(held: StepMemory, device_bytes: int, gpus: Gpus) -> GpuRoom:
    """Return how many trials with this share of a GPU fit it and this machine's CPUs."""
    return room_on_gpu(held, device_bytes, asked=_trials_per_gpu(gpus))


def _at_once(held: StepMemory, device_bytes: int, found: GpuRoom, gpus: Gpus, place: str) -> str:
    size = format_bytes(device_bytes)
    if not found.by_memory:
        parts = held.parts_that_fit(device_bytes)
        split = "" if parts is None else f", but one with gradient accumulation over {parts} parts"
        return f"no such trial fits into {size}{split}"
    why = {
        "memory": "as many as fit",
        "CPUs": "limited by the CPUs",
        "processes": "the limit of processes per GPU",
        "trials": "all of the study",
        "setting": f"because gpus = {gpus:g}" if gpus != "auto" else "",
        "one": "limited to one by the CPUs",
    }[found.bound]
    fit = "" if found.bound == "memory" else f"; {found.by_memory:,} fit{'s' * (found.by_memory == 1)}"
    return f"{plural(found.trials, 'such trial')} at once{place}, {why}{fit} into {size}"


def _gpu_share(gpus: Gpus) -> str:
    return f"{gpus} of one"


def describe_capacity(held: StepMemory, device_bytes: int, machine: MachineSettings) -> str:
    """Describe the fit: `21 such trials at once with 21 CPUs, as many as fit into 24.0 GB`."""
    found = capacity_for(held, device_bytes, machine.gpus)
    cpus = f" with {found.trials * machine.cpus:g} CPUs" if found.trials > 1 else ""
    return _at_once(held, device_bytes, found, machine.gpus, cpus)


def count_at_once(study: Study, plan: Plan, settings: ResolvedSettings) -> int | None:
    """Return how many trials can train at once, a pack counting as one; None if none is left."""
    machine = settings.values
    if study.search is not None or machine.pack == "off":
        return most_at_once(study, plan.num_remaining) or None
    from ..engine.core.resources import MAX_PACK
    from ..engine.packs.form import count_packs

    most = MAX_PACK if machine.pack == "auto" else machine.pack
    return count_packs((trial.settings for trial in _trials_to_run(study, plan, settings)), most) or None


def _trials_to_run(study: Study, plan: Plan, settings: ResolvedSettings) -> list[Trial]:
    """Return the trials that a run checks before it starts: for a search the corners of its space."""
    from ..studies.planning.trials_to_run import trials_to_run

    if study.search is not None:
        return study.boundary_trials()
    planned = {each.trial.id: each.status for each in plan.trials}
    stored = {trial: status for trial, status in planned.items() if status != "missing"}
    return trials_to_run(study, settings.store, stored, only=planned)


def packs(study: Study, plan: Plan, machine: MachineSettings) -> str:
    """Describe packs: `144 trials can train together, at most 16 at once …`; "" without packs or trials."""
    left = [each.trial.settings for each in plan.trials if each.status != "done"]
    if machine.pack == "off":
        return ""
    if study.search is not None:
        return _search_pack_words(study, machine)
    if not left:
        return ""
    from ..engine.core.resources import MAX_PACK
    from ..engine.packs.form import foresee_packs

    return _pack_words(foresee_packs(left), MAX_PACK if machine.pack == "auto" else machine.pack, machine)


def _search_pack_words(study: Study, machine: MachineSettings) -> str:
    assert study.search is not None, "the caller has checked for a search"
    if len(study.seeds) == 1 or study.search.scheduler.name == RACE:
        return "the trials of a search train alone, because they start one after the other"
    measured = " and that is measured to be faster" if machine.pack == "auto" else ""
    return f"the {len(study.seeds)} seeds of a point train together, where its model allows it{measured}"


def _pack_words(found: PackOutlook, most: int, machine: MachineSettings) -> str:
    reasons = sorted(found.alone.items(), key=lambda each: -each[1])
    if not found.together and len(reasons) == 1:
        return f"no trial can share a batch with others: {reasons[0][0]}"
    measured = ", where that is measured to be faster" if machine.pack == "auto" else ""
    most = min(most, found.largest)
    told = f"{plural(found.together, 'trial')} can train together, at most {most} at once{measured}"
    first = told if found.together else "no trial can share a batch with others"
    return "; ".join([first, *(f"{_count_words(count)} alone: {reason}" for reason, count in reasons)])


def _count_words(count: int) -> str:
    return "1 trains" if count == 1 else f"each of {count:,} trains"
