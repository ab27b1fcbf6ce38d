"""The finished trials of a study, and their models with the stored weights."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ...errors import ActivememError
from ...storage import MetricRow, Store, TrialRow
from ...storage.rows import row_values
from ...studies.planning.status import study_outcomes
from ...studies.resolve.trial import Trial, settings_from_json, trial_id
from ...studies.schema.settings import TrialSettings
from ...studies.study import Study
from ..core.models import AnyModel, ModelFileError, read_model_file, rebuild

NOT_KEPT = "its weights were not kept"
"""The reason for skipping a model without stored weights."""

NO_TRANSLATION = "its task is not translation"
"""The reason for skipping models of other tasks when decoding is tuned."""


class ProbeError(ActivememError):
    """Error for a model that cannot be measured; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainedTrial:
    """A finished trial, its row in the store, and whether the store has its weights."""

    trial: Trial
    row: TrialRow
    is_kept: bool

    def metric_rows(self, metrics: Mapping[str, float]) -> list[MetricRow]:
        """Return the rows that store these metrics. They belong to the trial's last step."""
        steps, epochs = self.row.steps, self.row.epochs
        return [
            MetricRow(step=steps, epoch=epochs, name=name, value=value) for name, value in metrics.items()
        ]


def trained_trials(study: Study, store: Store) -> Iterator[TrainedTrial]:
    """Yield the finished trials of a study in its order, for a search all that the store has of it."""
    rows = {
        row["trial"]: row
        for row in study_outcomes(study, store.trials(first=[study.name])).iter_rows(named=True)
    }
    known = {trial.id: trial for trial in study.trials}
    kept = store.files.trials_with_weights(known or rows)
    for name in known or rows:
        row = rows.get(name)
        if row is not None and row["status"] == "done":
            final = tuple(row_values(row).items())
            trial = known.get(name) or Trial(
                study=row["study"],
                levels=json.loads(row["factors"]),
                settings=settings_from_json(row["settings"]),
            )
            stored = TrialRow(**{**row, "metrics": final})
            yield TrainedTrial(trial=trial, row=stored, is_kept=name in kept)


def load_kept_model(settings: TrialSettings, weights_file: Path) -> AnyModel:
    """Return the trained model of a trial, on the CPU. Raise ProbeError if it is missing or unreadable."""
    if not weights_file.exists():
        raise ProbeError(NOT_KEPT)
    try:
        file, expected = read_model_file(weights_file), trial_id(settings)
        if file.trial.id != expected:
            raise ModelFileError(f"{weights_file}: expected trial {expected}, got {file.trial.id}")
        return rebuild(file)
    except ModelFileError as error:
        raise ProbeError(f"its weights cannot be read: {error}") from error
