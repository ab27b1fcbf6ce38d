"""What a page is made of: a study and what its store holds, read once, so that all sections agree.

A store may grow while a page is made of it; counts, tables and claims all speak of the same moment.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import polars as pl

from ...storage import Store
from ..plan import Plan, plan
from ..settings import Settings
from ..standing import Standing, own, standing
from ..study import Study
from ..trial import Trial
from ..wanted import wanted

Draw = Callable[[Settings], str]
"""What draws the model of a trial, as SVG."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """The study with its store, how it stands, and what is known of it without training.

    `outcomes` are the latest attempts in the store, `own` those at trials of the study. Without `draw` there
    are no diagrams.
    """

    study: Study
    store: Store
    outcomes: pl.DataFrame
    own: pl.DataFrame
    standing: Standing
    plan: Plan
    draw: Draw | None

    def done(self, trials: Sequence[Trial]) -> pl.DataFrame:
        """The outcomes of those trials that are done."""
        ids = [trial.id for trial in trials]
        return self.own.filter(pl.col("trial").is_in(ids) & (pl.col("status") == "done"))


def gather(study: Study, store: Store, draw: Draw | None) -> Material:
    """The material of a page, from all trials of the store; raises StoreError."""
    outcomes = store.trials(wanted([study]))
    return Material(
        study=study,
        store=store,
        outcomes=outcomes,
        own=own(study, outcomes),
        standing=standing(study, store, outcomes),
        plan=plan(study, store),
        draw=draw,
    )
