"""A summary of a study, by its kind."""

from __future__ import annotations

import polars as pl

from ....studies.presentation.effects import EffectsSpec
from ....studies.presentation.scaling import ScalingTableSpec
from ....studies.presentation.scores import AggregateSpec
from ....studies.presentation.search import PointsSpec
from ....studies.study import Study
from ..table import Table
from .aggregate import aggregate_table
from .effects import effects_table
from .laws import table_of_laws
from .points import points_table


def summary_table(
    study: Study,
    spec: EffectsSpec | AggregateSpec | ScalingTableSpec | PointsSpec,
    outcomes: pl.DataFrame,
) -> Table:
    """The table that `spec` describes, which fits the study, over its trials in `outcomes`."""
    if isinstance(spec, EffectsSpec):
        return effects_table(study, spec, outcomes)
    if isinstance(spec, AggregateSpec):
        return aggregate_table(study, spec, outcomes)
    if isinstance(spec, ScalingTableSpec):
        return table_of_laws(study, spec, outcomes)
    return points_table(study, spec, outcomes)
