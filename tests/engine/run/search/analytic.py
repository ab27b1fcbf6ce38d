"""A search with a formula in place of training, run as by one worker."""

from datetime import UTC, datetime

from activemem import load_study
from activemem.engine import Run
from activemem.engine.run.search.search import Search
from activemem.engine.trial.outcome import trial_row


def search(text, store, value, notes, changes=(), *, max_trials=None):
    """Run a search to its end; `value` computes the metric from a point's values and a seed.

    Returns the points in the order in which their trainings ended: their values and the seed.
    """
    study = load_study(text, changes)
    source = Search(study, store, "run", notes, max_trials=max_trials)
    trained = []
    while (job := source.next_job()) is not None:
        values = {each: job.trial.levels[each] for each in study.dimensions if each in job.trial.levels}
        found = value(values, job.trial.settings.seed)
        (metric,) = study.search.settings.metric
        epochs = job.trial.settings.train.epochs
        run = Run(status="done", metrics={metric: found}, epoch=epochs, seconds=1.0, flops=1.0)
        store.write(trial_row(job.trial, run, started=datetime.now(UTC)), [])
        trained.append((values, job.trial.settings.seed))
        for event in source.job_ended(job, paused_at=None):
            notes(event)
    return trained
