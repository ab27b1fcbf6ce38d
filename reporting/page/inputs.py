"""The inputs of a page: a study and its store's contents, read once, so that all sections agree.

A store may grow while a page is made. Counts, tables and claims all show the same moment.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from ...storage import Store
from ...studies.planning.plan import Plan, make_plan
from ...studies.planning.status import StudyStatus, study_outcomes, study_status
from ...studies.study import Study
from ..outcomes import load_outcomes


@dataclass(frozen=True, slots=True, kw_only=True)
class PageInputs:
    """The study with its store, and its status.

    `outcomes` are the latest attempts in the store, `own_outcomes` those at trials of the study.
    """

    study: Study
    store: Store
    outcomes: pl.DataFrame
    own_outcomes: pl.DataFrame
    status: StudyStatus

    def make_plan(self) -> Plan:
        """Return the plan of the study, which needs no training."""
        return make_plan(self.study, self.store)


def load_inputs(study: Study, store: Store) -> PageInputs:
    """Return the inputs of a page, from all trials of the store; raises StoreError."""
    outcomes = load_outcomes(store, study)
    return PageInputs(
        study=study,
        store=store,
        outcomes=outcomes,
        own_outcomes=study_outcomes(study, outcomes),
        status=study_status(study, store, outcomes),
    )
