"""A plan on this machine: what optimisers keep and how long sequences are may need torch, and the data."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..engine.optimisers.parameter_groups import GroupSize
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
        measure=_measure_steps(settings),
        locate=lambda dataset: _locate(settings.data, dataset),
    )


def _measure_steps(settings: ResolvedSettings) -> MeasureSteps:
    """Return what measures steps on this machine's CPU, where trials are to train on it."""

    def measure(trials: Sequence[TrialSettings]) -> Callable[[TrialSettings], float] | None:
        from ..engine.core.gpus import has_gpu
        from ..engine.core.resources import Machine
        from ..engine.run.short_grids import measure_steps

        gpus = settings.values.gpus
        if settings.values.address is not None or (gpus and (gpus != "auto" or has_gpu())):
            return None
        return measure_steps(trials, Machine(gpus=0.0, data=settings.data))

    return measure


def _locate(folder: Path, dataset: Dataset) -> str:
    from ..engine.corpora.availability import check_availability
    from .views.datasets import format_location

    return format_location(check_availability(dataset, folder))


def group_sizes_of(study: Study) -> list[GroupSize]:
    """Return the sizes of the weight groups in a study; torch is loaded only if there are any."""
    settings = [trial.settings for trial in study.trials or study.boundary_trials()]
    if not any(each.train.groups for each in settings):
        return []
    from ..engine.optimisers.parameter_groups import group_sizes

    return group_sizes(settings)


def count_state(settings: TrialSettings) -> WeightState | None:
    """Return what an optimiser keeps; load torch only where that needs the shapes of weights."""
    if not (settings.train.groups or settings.train.optimizer.state_depends_on_shapes):
        return None
    from ..engine.optimisers.build import weight_state

    return weight_state(settings)


def longest_below(folder: Path) -> FindLongest:
    """Return a finder of the longest training sequences; torch is loaded only for prepared tasks."""
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
