"""The outcome of a trial that a scheduler gives up."""

from __future__ import annotations

from datetime import UTC, datetime

import torch

from ...storage import Store
from ..core.events import Ended, Taken
from . import checkpoints
from .claims import Claims
from .machine_failures import storing
from .outcome import Job, Totals, last_epoch_metrics, trial_row


def store_pruned(job: Job, store: Store, reason: str) -> Ended | Taken:
    """Store a trial that a scheduler has pruned, as it is in its checkpoint, unless another has it.

    Raises MachineError where it cannot be stored.
    """
    with storing():
        return _store_pruned(job, store, reason)


def _store_pruned(job: Job, store: Store, reason: str) -> Ended | Taken:
    claimed = Claims(store, job.run).claim(job)
    if isinstance(claimed, Taken):
        return claimed
    job, lease = claimed
    checkpoint = checkpoints.checkpoint_of(store, job.trial.id)
    saved = checkpoint.load(torch.device("cpu"))
    totals, rows = (saved.totals, saved.metrics) if saved else (Totals(), [])
    row = trial_row(
        job, totals, last_epoch_metrics(rows), status="pruned", reason=reason, started=datetime.now(UTC)
    )
    store.write(row, rows)
    checkpoint.remove()
    lease.end()
    return Ended(trial=row.trial, status="pruned", reason=reason, metrics=dict(row.metrics))
