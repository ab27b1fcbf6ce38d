"""Choice of the next seeds, to decide undecided claims and tables in the fewest hours.

The effects and the spread found so far predict how much each candidate decides at each of the later looks.
The candidate with the most expected decisions per hour of training gets its seeds up to its next look. Then
all candidates are predicted again. Candidates with one seed, and so no spread, come first.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ...studies.planning.time_estimates import TimeEstimator
from .candidate import NextSeeds
from .of_claims import claim_candidates
from .of_tables import table_candidates

if TYPE_CHECKING:
    import polars as pl

    from ...studies.study import Study


def next_seeds(
    study: Study, outcomes: pl.DataFrame, metrics: pl.DataFrame | None, *, seconds: float | None = None
) -> NextSeeds | None:
    """Return the trials to train next; None if everything is decided, or more seeds would not help.

    `study` is the study of the file, without later seeds. `outcomes` and `metrics` are the arguments of
    `check_claims`. Candidates that train for more than `seconds` are left out. So are candidates that depend
    on the study's own trials without a value: these trials come first, or will never have a value.
    """
    estimator = TimeEstimator(outcomes, study.with_later_seeds().cells)
    found = (
        *claim_candidates(study, outcomes, metrics, estimator),
        *table_candidates(study, outcomes, estimator),
    )
    affordable = (each for each in found if seconds is None or (each.seconds or 0.0) <= seconds)
    return max(affordable, key=_decided_for_time, default=None)


def _decided_for_time(candidate: NextSeeds) -> tuple[float, float]:
    """Return a sort key: most decided questions per second first, then the shortest training.

    Trials of unknown duration count as one second each.
    """
    seconds = candidate.seconds_at_decision or float(len(candidate.trials))
    return math.inf if candidate.expected is None else candidate.expected / seconds, -seconds
