"""Small studies with given learning curves."""

import json
from datetime import UTC, datetime

from activemem import StudyResults, load_study
from activemem.storage import MetricRow, Store, TrialRow

from ..study_texts import study_text

WHEN = datetime(2026, 11, 28, 12, tzinfo=UTC)
TASK = {"name": "mqar", "length": 16, "pairs": 2, "vocab": 16}
TRAIN = {"curriculum": None, "epochs": 4, "steps_per_epoch": 100}


def study(seeds=(0, 1, 2), **tables):
    factors = {"mixer": ["sa", "conv(k=3)"], "seed": list(seeds)}
    return load_study(study_text(**{"task": TASK, "train": TRAIN, "factors": factors, **tables}))


def target_table(value, **keys):
    return [{"name": "to", "rows": "mixer", "value": value, **keys}]


def store_course(store, trial, losses, metric="dev_loss", device="a processor, 1 thread"):
    """Store a done trial with this dev_loss, or another metric, after each epoch of 100 steps."""
    settings, steps = trial.settings, 100 * len(losses)
    row = TrialRow(
        trial=trial.id,
        attempt=0,
        study=trial.study,
        recipe=settings.model.recipe,
        recipe_id="00000000",
        task=settings.task.name,
        seed=settings.seed,
        status="done",
        factors=json.dumps(dict(trial.levels)),
        settings=settings.model_dump_json(),
        metrics=((metric, losses[-1]), ("loss", losses[-1]), ("tokens_per_s", 50.0)),
        parameters=2000,
        flops=2e6 * steps,
        epochs=len(losses),
        steps=steps,
        seconds=steps / 10,
        peak_mib=1.0,
        version="0.1.0",
        device=device,
        host="elsewhere",
        started=WHEN,
        finished=WHEN,
    )
    courses = (
        MetricRow(step=100 * epoch, epoch=epoch, name=name, value=loss)
        for epoch, loss in enumerate(losses, 1)
        for name in (metric, "loss")
    )
    store.write(row, list(courses))


def results(found, tmp_path, courses):
    """Return the results of a study with these learning curves, by mixer and seed."""
    store = Store(tmp_path)
    for trial in found.trials:
        seeds = courses[trial.levels["mixer"]]
        if (at := found.seeds.index(trial.levels["seed"])) < len(seeds):
            store_course(store, trial, seeds[at])
    return StudyResults(found, store)


FAST, SLOW, NEVER = [3.0, 1.5, 1.0, 0.9], [3.0, 2.5, 2.0, 1.5], [3.0, 2.9, 2.8, 2.7]
