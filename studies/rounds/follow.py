"""Studies whose next trials depend on the results of a store."""

from __future__ import annotations

from ...storage import Store
from ..study import Study
from .ablation_path import follow_path


def follow_rounds(study: Study, store: Store) -> Study:
    """Return the study with the rounds of its path; return any other study unchanged."""
    return follow_path(study, store) if study.design.kind == "path" else study


def has_more(further: Study, study: Study) -> bool:
    """Return whether a study has trials now that it had not before."""
    known = {trial.id for trial in study.trials}
    return any(trial.id not in known for trial in further.trials)
