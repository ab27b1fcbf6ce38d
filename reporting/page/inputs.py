"""What a page is made of: a study and what its store holds, read once, so that all sections agree.

A store may grow while a page is made of it; counts, tables and claims all speak of the same moment.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import polars as pl

from ...storage import Store
from ...studies.planning.plan import Plan, make_plan
from ...studies.planning.status import StudyStatus, study_outcomes, study_status
from ...studies.resolve.trial import Trial
from ...studies.schema.settings import TrialSettings
from ...studies.study import Study
from ..probe_metrics import displayed_metrics

DrawModel = Callable[[TrialSettings], str]
"""What draws the model of a trial, as SVG."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageInputs:
    """The study with its store, how it stands, and what is known of it without training.

    `outcomes` are the latest attempts in the store, `own` those at trials of the study. Without `draw` there
    are no diagrams.
    """

    study: Study
    store: Store
    outcomes: pl.DataFrame
    own_outcomes: pl.DataFrame
    status: StudyStatus
    plan: Plan
    draw: DrawModel | None

    def done_outcomes(self, trials: Sequence[Trial]) -> pl.DataFrame:
        """The outcomes of those trials that are done."""
        ids = [trial.id for trial in trials]
        return self.own_outcomes.filter(pl.col("trial").is_in(ids) & (pl.col("status") == "done"))


def load_inputs(study: Study, store: Store, draw: DrawModel | None) -> PageInputs:
    """The material of a page, from all trials of the store; raises StoreError."""
    outcomes = store.trials(displayed_metrics([study]))
    return PageInputs(
        study=study,
        store=store,
        outcomes=outcomes,
        own_outcomes=study_outcomes(study, outcomes),
        status=study_status(study, store, outcomes),
        plan=make_plan(study, store),
        draw=draw,
    )
