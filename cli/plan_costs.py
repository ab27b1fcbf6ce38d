"""A plan on this machine: what optimisers keep and how long sequences are may need torch, and the data."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..engine.optimisers.parameter_groups import GroupSize
    from ..studies.catalog.datasets import Dataset
    from ..studies.planning.memory_estimates import FindLongest, LongestBatch, WeightState
    from ..studies.planning.plan import Plan
    from ..studies.schema.settings import TrialSettings
    from ..studies.study import Study
    from .machine_settings import MachineSettings, ResolvedSettings


def plan_here(
    study: Study,
    settings: ResolvedSettings,
    only: Collection[str] | None = None,
    *,
    for_gpu: bool = False,
) -> Plan:
    """The plan of a study, or of some trials of a grid, with this machine's store, devices and data.

    What steps hold is as on a GPU if it is asked `for_gpu`, else as where this machine trains.
    """
    from ..studies.planning.memory_estimates import MemoryEstimator
    from ..studies.planning.plan import make_plan

    on_cpu = not for_gpu and _trains_on_cpu(settings.values)
    memory = MemoryEstimator(
        count_state=count_state,
        find_longest=longest_below(settings.data),
        checkpoints=settings.values.activation_checkpointing,
        device="cpu" if on_cpu else "gpu",
        cpu_gain=_cpu_gain() if on_cpu else None,
    )
    return make_plan(
        study, settings.store, only, memory=memory, locate=lambda dataset: _locate(settings.data, dataset)
    )


def _locate(folder: Path, dataset: Dataset) -> str:
    """Return where a published corpus is, or the command that fetches it."""
    from ..engine.corpora import check_availability
    from .views.datasets import format_location

    return format_location(check_availability(dataset, folder))


def group_sizes_of(study: Study) -> list[GroupSize]:
    """The sizes of the groups of weights in a study; torch is loaded only where there are any."""
    settings = [trial.settings for trial in study.trials or study.boundary_trials()]
    if not any(each.train.groups for each in settings):
        return []
    from ..engine.optimisers.parameter_groups import group_sizes

    return group_sizes(settings)


def count_state(settings: TrialSettings) -> WeightState | None:
    """Return what an optimiser keeps; load torch only where that needs the shapes of weights."""
    if not (settings.train.groups or settings.train.optimizer.state_depends_on_shapes):
        return None
    from ..engine.optimisers.state_size import weight_state

    return weight_state(settings)


def _trains_on_cpu(values: MachineSettings) -> bool:
    """Whether trials train on CPUs; of a cluster that may have a GPU nothing is known yet."""
    from ..engine.core.gpus import has_gpu

    return not values.gpus or (values.gpus == "auto" and values.address is None and not has_gpu())


def _cpu_gain(processors: Path = Path("/proc/cpuinfo")) -> float:
    """How many times fewer products frequencies must take here, as blocks ask torch, which is not loaded."""
    from ..grammar.vocabulary.convolutions import GAIN, GAIN_BESIDE_WIDER_VECTORS

    try:
        text = processors.read_text(encoding="utf-8")
    except OSError:
        return GAIN
    return GAIN_BESIDE_WIDER_VECTORS if "AuthenticAMD" in text and "avx512f" in text else GAIN


def longest_below(folder: Path) -> FindLongest:
    """What finds the longest sequences in training; torch is loaded only where a task's may be prepared."""
    from ..studies.resolve.costs import reads_lines

    found: list[FindLongest] = []

    def longest(settings: TrialSettings) -> LongestBatch | None:
        if not reads_lines(settings) or not (folder / "encoded").is_dir():
            return None
        if not found:
            from ..engine.data.prepared_lengths import PreparedLengths

            found.append(PreparedLengths(folder))
        return found[0](settings)

    return longest
