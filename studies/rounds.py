"""The ablation path from the baseline to the target: each round keeps the change with the best stored result.

Each round tries all remaining changes and keeps the best one, even if all of them make the result worse. The
choice depends only on the store, so every command and every driver of a run has the same path. Source:
Fawcett and Hoos (2016), "Analysing differences between algorithm configurations through ablation".
"""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean

import polars as pl

from ..storage import Store
from .catalog.metrics import find_metric
from .planning.trial_values import (
    ValueStatus,
    describe_divergence,
    ignorant_losses,
    may_diverge,
    trial_values,
)
from .resolve.grid import GridBuilder
from .schema.design import level_key
from .study import Study
from .text.document import Diagnostics, parse_document
from .text.errors import StudyError

_UNDECIDED = (ValueStatus.BEGUN, ValueStatus.PENDING, ValueStatus.INCOMPLETE, ValueStatus.MISSING)


def follow_path(study: Study, store: Store) -> Study:
    """Return a path with all rounds that the store decides, and the trials of the next one."""
    while (step := _best_step(study, store)) is not None:
        study = with_steps(study, (*study.design.taken, step))
    return study


def _best_step(study: Study, store: Store) -> str | None:
    """Return the factor that the round changes for good.

    None if it is undecided, or no change has all seeds.
    """
    design = study.design
    tried = {
        name: [
            trial
            for trial in study.cells
            if all(level_key(trial.levels[each]) == level_key(level) for each, level in levels.items())
        ]
        for name, levels in design.tries().items()
    }
    ids = {trial.id for trials in tried.values() for trial in trials}
    if not ids:
        return None
    rows = trial_values(study.name, ids, _outcomes(store, design.metric, ids), design.metric)
    if rows["status"].is_in(_UNDECIDED).any():
        return None
    known = rows.filter(pl.col("status") == ValueStatus.DONE)
    values: dict[str, float] = dict(known.select("trial", "value").iter_rows())
    means = {
        name: fmean(values[trial.id] for trial in trials)
        for name, trials in tried.items()
        if trials and all(trial.id in values for trial in trials)
    }
    higher = design.direction == "max" if design.direction else find_metric(design.metric).higher_is_better
    best = max if higher else min
    return best(means, key=means.__getitem__, default=None)


def _outcomes(store: Store, metric: str, ids: set[str]) -> pl.DataFrame:
    """Return the latest attempts of these trials, with diverged ones marked."""
    outcomes = store.trials({metric}).filter(pl.col("trial").is_in(list(ids)))
    doubtful = outcomes.filter(may_diverge())
    return describe_divergence(outcomes, store.metric_course("loss", doubtful), ignorant_losses(doubtful))


def with_steps(study: Study, taken: tuple[str, ...]) -> Study:
    """Return the study after its path has kept these changes, with the next round's cells.

    Raise StudyError.
    """
    document = parse_document(study.name, study.text, study.overrides)
    diagnostics = Diagnostics(document)
    design = replace(study.design, taken=taken)
    grid = GridBuilder(
        diagnostics=diagnostics,
        study=study.name,
        template=study.template,
        design=design,
        budget=study.budget,
        tolerance=0.0,
    ).build()
    if diagnostics.faults:
        raise StudyError(document.source, diagnostics.faults)
    return replace(study, design=design, trials=grid.trials, cells=grid.cells, over_budget=grid.over_budget)


def follow_rounds(study: Study, store: Store) -> Study:
    """Return the study with the rounds of its path; return any other study unchanged."""
    return follow_path(study, store) if study.design.kind == "path" else study


def has_more(further: Study, study: Study) -> bool:
    """Return whether a study has more trials than before."""
    known = {trial.id for trial in study.trials}
    return any(trial.id not in known for trial in further.trials)
