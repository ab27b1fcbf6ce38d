"""Plan costs that may need torch and data: optimiser state, sequence lengths and measured steps."""

from __future__ import annotations

import platform
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

_PLANNED_FLOPS = 3e10
"""The maximum FLOPs of a measured step: a slow core takes a few seconds for it."""

if TYPE_CHECKING:
    from ..engine.optimisers.build import GroupSize
    from ..studies.catalog.datasets import Dataset
    from ..studies.planning.memory_estimates import FindLongest, LongestBatch, WeightState
    from ..studies.planning.plan import Plan
    from ..studies.planning.time_estimates import MeasureSteps
    from ..studies.schema.settings import TrialSettings
    from ..studies.study import Study
    from .machine_settings import ResolvedSettings


def plan_here(
    study: Study,
    settings: ResolvedSettings,
    only: Collection[str] | None = None,
) -> Plan:
    """Return the plan of a study, or of some trials of a grid, with this machine's store and devices."""
    from ..studies.planning.memory_estimates import MemoryEstimator
    from ..studies.planning.plan import make_plan

    memory = MemoryEstimator(
        count_state=count_state,
        find_longest=longest_below(settings.data),
        checkpoints=settings.values.activation_checkpointing,
    )
    return make_plan(
        study,
        settings.store,
        only,
        memory=memory,
        measure=measure_steps(settings),
        locate=lambda dataset: _locate(settings.data, dataset),
    )


def measure_steps(settings: ResolvedSettings) -> MeasureSteps:
    """Return a function that measures steps on this machine's CPU, if trials train there.

    Measurements are cached, so that only the first plan of a study loads torch.
    """

    def measure(trials: Sequence[TrialSettings]) -> Callable[[TrialSettings], float] | None:
        from ..engine.core.gpus import has_gpu
        from ..grammar.analysis.measured_costs import remember
        from ..studies.catalog.tasks import AlgorithmicSettings, GeneratedTask
        from ..studies.planning.step_times import steps_to_measure, trial_seconds
        from ..studies.resolve.trial import settings_to_json

        drawn = all(isinstance(each.task, AlgorithmicSettings | GeneratedTask) for each in trials)
        gpus = settings.values.gpus
        if settings.values.address is not None or not drawn or (gpus and (gpus != "auto" or has_gpu())):
            return None
        steps = {flops: each for flops, each in steps_to_measure(trials).items() if flops <= _PLANNED_FLOPS}
        if not steps:
            return None
        key = (platform.node(), [settings_to_json(each) for each in steps.values()])
        found = remember("speed", key, lambda: _measure_speed(steps, settings))
        speed = [(float(flops), nanoseconds / 1e9) for flops, nanoseconds in found.items()]
        return (lambda one: trial_seconds(one, sorted(speed), grows_every=1)) if speed else None

    return measure


def _measure_speed(steps: Mapping[float, TrialSettings], settings: ResolvedSettings) -> dict[str, int]:
    """Return the nanoseconds of each step by its FLOPs; empty if a step fails."""
    from ..engine.core.resources import Machine
    from ..engine.run.short_grids import measure_speed

    found = measure_speed(steps, Machine(gpus=0.0, data=settings.data))
    return {str(flops): round(1e9 * seconds) for flops, seconds in found or ()}


def _locate(folder: Path, dataset: Dataset) -> str:
    from ..engine.corpora.availability import check_availability
    from .views.datasets import format_location

    return format_location(check_availability(dataset, folder))


def group_sizes_of(study: Study) -> list[GroupSize]:
    """Return the sizes of the weight groups in a study; torch is loaded only if there are any."""
    settings = [trial.settings for trial in study.trials or study.boundary_trials()]
    if not any(each.train.groups for each in settings):
        return []
    from ..engine.optimisers.build import group_sizes

    return group_sizes(settings)


def count_state(settings: TrialSettings) -> WeightState | None:
    """Return the optimiser state of a trial; torch is only loaded if the shapes of weights matter."""
    if not (settings.train.groups or settings.train.optimizer.state_depends_on_shapes):
        return None
    from ..engine.optimisers.build import weight_state

    return weight_state(settings)


def longest_below(folder: Path) -> FindLongest:
    """Return a function that finds the longest training sequences.

    Torch is only loaded for prepared tasks.
    """
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
