"""Where trials will train, and how many of them have room there at once."""

from __future__ import annotations

from ..engine.core.gpus import Gpu, gpu_fault, gpu_here, has_multi_process_service
from ..engine.core.resources import Gpus
from ..studies.planning.memory_estimates import StepMemory, fits, trials_on_device
from ..studies.planning.plan import Plan
from ..studies.text.units import format_bytes, plural
from .machine_settings import MachineSettings


def where(plan: Plan, machine: MachineSettings) -> str:
    """Which device trains: `this machine's GPU, NVIDIA H100: 12 such trials at once fit into 80.0 GB`."""
    gpus, address = machine.gpus, machine.address
    if address is not None:
        asked = "CPUs" if not gpus else "its GPUs, if a node has one, else its CPUs"
        asked = asked if gpus in ("auto", 0) else f"its GPUs, {_told(gpus)} for each trial"
        return f"the cluster at {address}: {asked}; with --local, {_where_here(plan, gpus)}"
    return _where_here(plan, gpus)


def _where_here(plan: Plan, gpus: Gpus) -> str:
    """The device of this machine."""
    if not gpus:
        return "this machine's CPU, as gpus = 0"
    if (found := gpu_here()) is None:
        return _without_gpu(gpus)
    gpu, count = found
    if gpus != "auto" and gpus > count:
        return f"nowhere: gpus = {gpus:g}, and torch finds {plural(count, 'GPU')} here"
    if gpus != "auto" and gpus > 1:
        held = f": {_held_on_each(plan.memory[1], int(gpus), gpu.free)}" if plan.memory else ""
        return f"{gpus:g} of this machine's GPUs for each trial, {gpu.name}{held}{_others(gpu)}"
    held = f": {_shared(plan.memory[1], gpu, gpus)}" if plan.memory else _others(gpu)
    return f"this machine's GPU, {gpu.name}{held}"


def _without_gpu(gpus: Gpus) -> str:
    """Where trials that may have a GPU train on a machine on which torch finds none."""
    if (fault := gpu_fault()) is not None:
        return f"nowhere: torch finds no GPU here, as CUDA fails: {fault}"
    if gpus == "auto":
        return "this machine's CPU: torch finds no GPU here"
    return f"nowhere: gpus = {gpus:g}, and torch finds no GPU here"


def _others(gpu: Gpu) -> str:
    """What others hold of a GPU, if they do."""
    return f" (others hold {format_bytes(gpu.bytes - gpu.free)})" if gpu.free < gpu.bytes else ""


def _shared(held: StepMemory, gpu: Gpu, gpus: Gpus) -> str:
    """How many trials fit into what is free of this machine's GPU, and how they share it where they do."""
    told = room(held, gpu.free) + _others(gpu)
    if gpus == 1 or trials_on_device(held, gpu.free) < 2:
        return told
    if has_multi_process_service():
        return f"{told}, side by side by NVIDIA's multi-process service"
    return f"{told}, in turns of time: nvidia-cuda-mps-control -d has them compute side by side"


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
        return f"{told}; tried again with batches in {parts} parts {split}, which fits"
    also = "fits" if fits(part, device_bytes) else "does not fit either"
    return f"{told}; with a part of the weights on each {format_bytes(part)}, which {also}"


def room(held: StepMemory, device_bytes: int, *, devices: int = 1) -> str:
    """`53 such trials at once fit into 24.0 GB`, or what a step holds on each of several devices."""
    if devices > 1:
        return _held_on_each(held, devices, device_bytes)
    count = trials_on_device(held, device_bytes)
    told = f"{plural(count, 'such trial')} at once" if count else "not one such trial"
    return f"{told} {'fits' if count < 2 else 'fit'} into {format_bytes(device_bytes)}"
