"""The trained models that a study has stored, each with its final metrics."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from ..errors import ActivememError, nearest_hint
from ..storage import Store
from ..storage.rows import KEY_COLUMNS, row_values
from ..studies.catalog.metrics import find_metric
from ..studies.planning.status import stored_outcomes, study_outcomes
from ..studies.schema.settings import Level
from ..studies.study import Study
from ..studies.text.units import plural

_MAX_NAMED = 5


class KeptModelError(ActivememError):
    """Error for a model that is not stored. The message lists the stored models."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptModel:
    """A trial with stored weights, with its levels and final metrics."""

    trial: str
    levels: Mapping[str, Level]
    metrics: Mapping[str, float]
    store: Store

    @property
    def path(self) -> Path:
        """Return the path of the file for `load_model`. It is downloaded first from an object store."""
        return self.store.files.weights_file(self.trial)


def kept_models(study: Study, store: Store) -> list[KeptModel]:
    """Return the stored models of a study's finished trials, sorted by trial id."""
    rows = study_outcomes(study, stored_outcomes(store, study)).filter(status="done").sort("trial")
    kept = store.files.trials_with_weights(rows["trial"])
    return [
        KeptModel(
            trial=row["trial"],
            levels=json.loads(row["factors"]),
            metrics=row_values(row),
            store=store,
        )
        for row in rows.iter_rows(named=True)
        if row["trial"] in kept
    ]


def model_file_of_trial(store: Store, trial: str) -> Path:
    """Return the file of a stored model.

    `trial` is the id of the model's trial, or the beginning of the id. Raise KeptModelError unless exactly
    one trial matches.
    """
    trials = store.trials(columns=KEY_COLUMNS)
    rows = trials.filter(pl.col("trial").str.starts_with(trial))
    # an empty prefix would match every trial
    found = sorted(store.files.trials_with_weights(rows["trial"])) if trial else []
    if len(found) != 1:
        which = f"{len(found)}: {', '.join(found[:_MAX_NAMED])}" if found else "none"
        own = trials.filter(study=trial)["trial"]
        if not found and (of_study := sorted(store.files.trials_with_weights(own))):
            more = ", …" if len(of_study) > _MAX_NAMED else ""
            which = f"a study with {plural(len(of_study), 'model')}: {', '.join(of_study[:_MAX_NAMED])}{more}"
        elif trial and len(rows):
            which = (
                f"{plural(len(rows), 'trial')} without weights: set [study] keep_weights = true and run again"
            )
        raise KeptModelError(
            f"'{trial}': expected a file, or one trial with a model in {store.absolute_place}, got {which}"
        )
    return store.files.weights_file(found[0])


def best_first(models: list[KeptModel], metric: str) -> list[KeptModel]:
    """Return the models that have a value of this metric, the best first.

    Models with equal values keep their order. Raise KeptModelError if no model has the metric, or if neither
    direction of the metric is better.
    """
    measured = [model for model in models if metric in model.metrics]
    if not measured:
        names = sorted({name for model in models for name in model.metrics})
        raise KeptModelError(f"no stored model has the metric '{metric}'{nearest_hint(metric, names)}")
    better = find_metric(metric).higher_is_better
    if better is None:
        raise KeptModelError(f"expected a metric for which higher or lower is better, got '{metric}'")
    sign = -1.0 if better else 1.0
    return sorted(measured, key=lambda model: sign * model.metrics[metric])
