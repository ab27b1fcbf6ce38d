"""What of a plan needs the shapes of weights, and with them torch: groups, and what optimisers keep."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from ..engine.optimisers.parameter_groups import GroupSize
    from ..studies.planning.memory_estimates import FindLongest, LongestBatch, WeightState
    from ..studies.schema.settings import TrialSettings
    from ..studies.study import Study


def group_sizes_of(study: Study) -> list[GroupSize]:
    """The sizes of the groups of weights in a study; torch is loaded only where there are any."""
    settings = [trial.settings for trial in study.trials or study.boundary_trials()]
    if not any(each.train.groups for each in settings):
        return []
    from ..engine.optimisers.parameter_groups import group_sizes

    return group_sizes(settings)


def count_state(settings: TrialSettings, *, sharded: bool = False) -> WeightState | None:
    """What an optimiser keeps; torch is loaded only where that needs the names and shapes of weights.

    So does what is gathered of weights that may be sharded.
    """
    if not (sharded or settings.train.groups or settings.train.optimizer.state_depends_on_shapes):
        return None
    from ..engine.optimisers.state_size import weight_state

    return weight_state(settings)


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
