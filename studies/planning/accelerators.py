"""GPUs with their published peak speeds and memory, and a plan's time on one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ...errors import ActivememError, nearest_hint
from ..text.units import format_bytes, format_duration

if TYPE_CHECKING:
    from ..plan import Plan

PEAK_TFLOPS: Mapping[str, Mapping[str, float]] = {
    "v100": {"float32": 15.7},
    "a100": {"float32": 19.5, "tf32": 156.0, "bf16": 312.0},
    "h100": {"float32": 66.9, "tf32": 494.7, "bf16": 989.4},
    "h200": {"float32": 66.9, "tf32": 494.7, "bf16": 989.4},
    "l4": {"float32": 30.3, "tf32": 60.0, "bf16": 121.0},
}
"""Peak TFLOPs per second by precision, without sparsity; of the SXM boards where there are several. Source:
NVIDIA's data sheets."""

MEMORY_GB: Mapping[str, int] = {"v100": 32, "a100": 80, "h100": 80, "h200": 141, "l4": 24}
"""The memory of these GPUs in 10⁹ bytes; of the largest boards where there are several. Source: as above."""

REACHED_SHARE = 0.3
"""The assumed fraction of a GPU's peak; small models reach less."""


class AcceleratorError(ActivememError):
    """Error for a GPU that is unknown or cannot train in the study's precision."""


def time_on(plan: Plan, name: str) -> str:
    """Return a sentence with a plan's time on a GPU: `one H100 would take at most 49 min at 30 % …`.

    It also says if the trial with the largest step does not fit into the GPU's memory.

    Raise AcceleratorError for an unknown GPU.
    """
    peaks = PEAK_TFLOPS.get(name.lower())
    if peaks is None:
        raise AcceleratorError(f"unknown GPU '{name}'{nearest_hint(name, PEAK_TFLOPS)}")
    precisions = sorted({each.trial.settings.train.precision for each in plan.trials} or {"float32"})
    if lacking := [each for each in precisions if each not in peaks]:
        raise AcceleratorError(
            f"{name} cannot compute in [train] precision {lacking[0]}; it supports {', '.join(peaks)}"
        )
    slowest = min(precisions, key=peaks.__getitem__)
    seconds = plan.flops / (REACHED_SHARE * peaks[slowest] * 1e12)
    bound = f"at most {format_duration(seconds)}"
    if plan.estimate.expected is not None and plan.estimate.seconds:
        about = format_duration(seconds * plan.estimate.expected / plan.estimate.seconds)
        bound = f"about {about}, {bound}"
    return (
        f"one {name.upper()} would take {bound} at {100 * REACHED_SHARE:.0f} % of its peak, "
        f"{peaks[slowest]:g} TFLOPs a second in {slowest}; small models reach less"
        f"{_memory_note(plan, name.lower())}"
    )


def _memory_note(plan: Plan, name: str) -> str:
    """Say that the trial with the largest step does not fit into a GPU's memory; "" if it fits."""
    if plan.memory is None:
        return ""
    label, held = plan.memory
    room = MEMORY_GB[name] * 10**9
    parts = held.parts_that_fit(room)
    if parts == 1:
        return ""
    how = f"only in {parts} parts of a batch" if parts else "not, in whatever parts of a batch"
    return f"; {label} fits into its {format_bytes(room)} {how}: a step holds {format_bytes(held.total)}"
