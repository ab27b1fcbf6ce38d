"""Outcomes of the tiny study, as after a run."""

import json
from datetime import UTC, datetime

from activemem import load_study
from activemem.storage import MetricRow, Store, TrialRow

WHEN = datetime(2026, 11, 28, 12, tzinfo=UTC)


def store_outcome(
    trial,
    store,
    *,
    status="done",
    reason=None,
    value=7.0,
    version="0.1.0",
    losses=(0.5,),
    as_id=None,
    stored=None,
):
    """Store an outcome of a trial, with its loss after some epochs, also under other settings and id."""
    settings = trial.settings
    lengths = () if settings.train.curriculum is None else (("max_length", value),)
    row = TrialRow(
        trial=as_id or trial.id,
        attempt=0,
        study=trial.study,
        recipe=settings.model.recipe,
        recipe_id="00000000",
        task=settings.task.name,
        seed=settings.seed,
        status=status,
        reason=reason,
        factors=json.dumps(dict(trial.levels)),
        settings=stored or settings.model_dump_json(),
        metrics=(*lengths, ("loss", losses[-1])) if status == "done" else (),
        parameters=2000,
        flops=1e9,
        epochs=2,
        steps=4,
        seconds=60.0,
        peak_mib=1.0,
        version=version,
        commit=None,
        device="a processor, 1 thread",
        host="elsewhere",
        started=WHEN,
        finished=WHEN,
    )
    epochs = enumerate(losses, 3 - len(losses))
    store.write(row, [MetricRow(step=2 * at, epoch=at, name="loss", value=loss) for at, loss in epochs])


def make_partial_store(path, folder="results", reason="not a number at epoch 1"):
    """Write the tiny study's record with six trials done, one failed and one missing."""
    study, store = load_study(path), Store(folder)
    *first, failing, _left = study.trials
    for number, each in enumerate(first):
        store_outcome(each, store, value=5.0 + number)
    store_outcome(failing, store, status="failed", reason=reason)
    store.records.save(study.name, {"text": study.document.text, "overrides": [], "path": str(path)})
    return store
