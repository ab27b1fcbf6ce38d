"""Where trials will train, how many of them have room there at once, and which cannot have several GPUs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..engine.core.gpus import (
    Gpu,
    count_gpus_of_processes,
    gpu_fault,
    gpu_here,
    has_multi_process_service,
    service_fault,
)
from ..engine.core.resources import Gpus, cpus_here
from ..storage import Store
from ..studies.planning.memory_estimates import GpuRoom, StepMemory, fits, room_on_gpu
from ..studies.planning.plan import Plan, most_at_once
from ..studies.text.units import format_bytes, plural
from .plan_costs import longest_below

if TYPE_CHECKING:
    from ..studies.resolve.trial import Trial
    from ..studies.study import Study
    from .machine_settings import MachineSettings, ResolvedSettings


def free_for_run(study: str, store: Store) -> int | None:
    """What the run that trains a study here now found free of each GPU; None without such a run."""
    found = (store.load_study_record(study) or {}).get("gpu")
    if found is None:
        return None
    leases, last = store.watched_leases(), store.last_numbers()
    claims = [leases.find(trial, last.get(trial, -1) + 1) for trial in store.state().notes]
    owners = [claim.owner for claim in claims if claim is not None and not (claim.ended or claim.gone)]
    here = any(each.run == found["run"] and each.machine == leases.owner.machine for each in owners)
    return found["free"] if here else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """So many of the trials to run cannot take their steps on several devices: a run trains none of all."""

    trials: int
    of: int
    reasons: tuple[str, ...]


FindRefusal = Callable[[int | None], Refusal | None]
"""What is refused where each device has so many bytes, if that is known."""


def where(
    plan: Plan,
    machine: MachineSettings,
    run_free: int | None = None,
    find_refusal: FindRefusal = lambda _bytes: None,
    at_once: int | None = None,
) -> str:
    """Which device trains: `this machine's GPU, NVIDIA H100: 12 such trials at once, as many as fit …`.

    Where a run of the study trains here now, `run_free` is what it found free of each GPU, and all that it
    goes by: its own trials hold a part of that by now. No more of the study's trials than `at_once` can train
    at once; None is any number.
    """
    gpus, address = machine.gpus, machine.address
    if address is not None:
        asked = "CPUs" if not gpus else "its GPUs, if a node has one, else its CPUs"
        asked = asked if gpus in ("auto", 0) else f"its GPUs, {_told(gpus)} for each trial"
        if (refusal := find_refusal(None)) is not None:
            return f"nowhere: {_refused(refusal, machine.devices)}"
        here = _where_here(plan, machine, run_free, find_refusal, at_once, local=True)
        return f"the cluster at {address}: {asked}; with --local, {here}"
    return _where_here(plan, machine, run_free, find_refusal, at_once)


def _where_here(
    plan: Plan,
    machine: MachineSettings,
    run_free: int | None,
    find_refusal: FindRefusal,
    at_once: int | None,
    *,
    local: bool = False,
) -> str:
    """The device of this machine."""
    gpus = machine.gpus
    if not gpus:
        return "this machine's CPU, as gpus = 0"
    if (found := gpu_here()) is None:
        return _without_gpu(gpus)
    gpu, count = found
    gpu = gpu if run_free is None else replace(gpu, free=min(gpu.bytes, run_free))
    others = _others(gpu, run_free)
    if gpus != "auto" and gpus > count:
        return f"nowhere: gpus = {gpus:g}, and torch finds {plural(count, 'GPU')} here"
    if gpus != "auto" and gpus > 1:
        return f"{_on_several(plan, gpu, machine.devices, find_refusal)}{others}"
    if local:
        return f"this machine's GPU, {gpu.name}, for one trial at a time{others}"
    count = max(count, count_gpus_of_processes())
    name = f"this machine's {f'{count} GPUs' if count > 1 else 'GPU'}, {gpu.name}"
    shared = plan.memory and _shared(plan.memory[1], gpu, count, machine, others=others, at_once=at_once)
    return f"{name}: {shared}" if shared else f"{name}{others}"


def _on_several(plan: Plan, gpu: Gpu, devices: int, find_refusal: FindRefusal) -> str:
    """What a step holds on each of several of this machine's GPUs, or why it cannot be taken there."""
    held = plan.memory[1] if plan.memory else None
    if (refusal := find_refusal(gpu.free)) is not None:
        return f"nowhere: {_refused(refusal, devices)}{f'; {_on_one(held, gpu.free)}' if held else ''}"
    told = f": {_held_on_each(held, devices, gpu.free)}" if held else ""
    return f"{devices} of this machine's GPUs for each trial, {gpu.name}{told}"


def _without_gpu(gpus: Gpus) -> str:
    """Where trials that may have a GPU train on a machine on which torch finds none."""
    if (fault := gpu_fault()) is not None:
        return f"nowhere: torch finds no GPU here, as CUDA fails: {fault}"
    if gpus == "auto":
        return "this machine's CPU: torch finds no GPU here"
    return f"nowhere: gpus = {gpus:g}, and torch finds no GPU here"


def _others(gpu: Gpu, run_free: int | None) -> str:
    """What others hold of a GPU, or that a run under way found less than all, if so."""
    if gpu.free == gpu.bytes:
        return ""
    held = f"others hold {format_bytes(gpu.bytes - gpu.free)}"
    return f" ({held if run_free is None else 'so much was free when its run began here'})"


def _shared(
    held: StepMemory, gpu: Gpu, count: int, machine: MachineSettings, *, others: str, at_once: int | None
) -> str:
    """How many trials stand on each of this machine's GPUs, why no more, and how they share it."""
    if (cpus := cpus_here()) < machine.cpus:
        here = f"{plural(cpus, 'CPU')} {'is' if cpus == 1 else 'are'} here"
        return f"not one such trial, as cpus = {machine.cpus:g} and {here}; with --local one"
    gpus, asked = machine.gpus, _asked(machine.gpus)
    if gpus != "auto" and (fault := service_fault(gpus, int(cpus / machine.cpus))) is not None:
        return f"not one such trial: {fault}; with --local one"
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
    if has_multi_process_service():
        return f"{told}, side by side by NVIDIA's multi-process service; with --local one"
    daemon = "nvidia-cuda-mps-control -d has them compute side by side"
    return f"{told}, in turns of time: {daemon}; with --local one"


def _asked(gpus: Gpus) -> int | None:
    """How many trials a share of a GPU has room beside; None where no share is set."""
    return None if gpus == "auto" or not gpus else max(1, int(1 / gpus))


def room_for(held: StepMemory, device_bytes: int, gpus: Gpus) -> GpuRoom:
    """The room for trials with such a share of a GPU of that size, whose CPUs stand beside it."""
    return room_on_gpu(held, device_bytes, asked=_asked(gpus))


def _at_once(held: StepMemory, device_bytes: int, found: GpuRoom, gpus: Gpus, place: str) -> str:
    """How many trials train on a GPU at once, and what keeps more from it."""
    size = format_bytes(device_bytes)
    if not found.by_memory:
        parts = held.parts_on_each(1, device_bytes)
        split = "without its steps recorded" if parts == 1 else f"with its batches in {parts} parts"
        return f"not one such trial fits into {size}{'' if parts is None else f', but one {split}'}"
    why = {
        "memory": "as many as fit",
        "CPUs": "as many as there are CPUs for",
        "service": "as many as NVIDIA's service takes",
        "trials": "as many as the study has",
        "setting": f"as gpus = {gpus:g}" if gpus != "auto" else "",
        "one": "as there are CPUs for no more",
    }[found.bound]
    fit = "" if found.bound == "memory" else f"; {found.by_memory:,} fit{'s' * (found.by_memory == 1)}"
    return f"{plural(found.trials, 'such trial')} at once{place}, {why}{fit} into {size}"


def _told(gpus: Gpus) -> str:
    """`0.25 of one`, or `8 of them`."""
    return f"{gpus} of one" if gpus == "auto" or gpus <= 1 else f"{gpus:g} of them"


def _held_on_each(held: StepMemory, devices: int, device_bytes: int) -> str:
    """What a step holds on each of several devices: with all weights, maybe in parts, or a part of them."""
    size, part = format_bytes(device_bytes), held.sharded(devices)
    parts = held.parts_on_each(devices, device_bytes)
    told = f"a step holds {format_bytes(held.on_each(devices))} on each of {devices}, which"
    if parts == 1:
        return f"{told} fits into {size}"
    told = f"{told} does not fit into {size}"
    if parts is not None:
        split = format_bytes(held.on_each(devices * parts))
        return f"{told}; with its batches in {parts} parts {split}, which fits"
    also = "fits" if fits(part, device_bytes) else "does not fit either"
    return f"{told}; with a part of the weights on each {format_bytes(part)}, which {also}"


def _refused(refusal: Refusal, devices: int) -> str:
    """`on 8 GPUs each 3 of 18 trials are refused (batch_size: expected a multiple of 8, …)`."""
    are = "is" if refusal.of == 1 else "are"
    trials = f"{refusal.trials:,} of {plural(refusal.of, 'trial')}"
    return f"on {devices} GPUs each {trials} {are} refused ({'; '.join(refusal.reasons)})"


def _on_one(held: StepMemory, device_bytes: int) -> str:
    """Whether a step fits on one device instead, whole or in parts."""
    size, parts = format_bytes(device_bytes), held.parts_on_each(1, device_bytes)
    if parts is None:
        return f"with gpus = 1 a step does not fit into {size}"
    split = "" if parts == 1 else f", batches in {parts} parts"
    return f"with gpus = 1 a step fits into {size}{split}"


def room(
    held: StepMemory, device_bytes: int, machine: MachineSettings, refusal: Refusal | None = None
) -> str:
    """`21 such trials at once with 21 CPUs, as many as fit into 24.0 GB`, or what each of several holds."""
    if refusal is not None:
        return f"{_refused(refusal, machine.devices)}; {_on_one(held, device_bytes)}"
    if machine.devices > 1:
        return _held_on_each(held, machine.devices, device_bytes)
    found = room_for(held, device_bytes, machine.gpus)
    cpus = f" with {found.trials * machine.cpus:g} CPUs" if found.trials > 1 else ""
    return _at_once(held, device_bytes, found, machine.gpus, cpus)


def find_refusal(
    study: Study, plan: Plan, settings: ResolvedSettings, device_bytes: int | None
) -> Refusal | None:
    """What a run refuses; None if it trains all, as on one device, for which torch is not loaded."""
    machine = settings.values
    if machine.devices == 1:
        return None
    from ..engine.replicas.faults import ReplicaError, check_replicas

    trials, longest = _trials_to_run(study, plan, settings), longest_below(settings.data)
    refused, reasons = 0, dict[str, None]()
    for trial in trials:
        try:
            check_replicas(
                [trial.settings],
                machine.devices,
                device_bytes,
                find_longest=longest,
                checkpoints=machine.activation_checkpointing,
            )
        except ReplicaError as error:
            refused += 1
            reasons |= dict.fromkeys(error.reasons)
    return Refusal(trials=refused, of=len(trials), reasons=tuple(reasons)) if refused else None


def count_at_once(study: Study, plan: Plan, settings: ResolvedSettings) -> int | None:
    """How many of the trials to run can train at once, packs as one; None if none is left.

    Torch is loaded where packs are asked for.
    """
    machine = settings.values
    if study.search is not None or machine.pack == "off":
        return most_at_once(study, plan.num_remaining) or None
    from ..engine.core.resources import MAX_PACK
    from ..engine.packs.form import count_packs

    most = MAX_PACK if machine.pack == "auto" else machine.pack
    return count_packs((trial.settings for trial in _trials_to_run(study, plan, settings)), most) or None


def _trials_to_run(study: Study, plan: Plan, settings: ResolvedSettings) -> list[Trial]:
    """The trials that a run looks at before it begins: of a search the ends of its dimensions."""
    from ..studies.planning.trials_to_run import trials_to_run

    if study.search is not None and not study.is_population:
        return study.boundary_trials()
    planned = {each.trial.id: each.status for each in plan.trials}
    stored = {trial: status for trial, status in planned.items() if status != "missing"}
    return trials_to_run(study, settings.store, stored, only=planned)
