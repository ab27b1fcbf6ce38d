"""Claims of jobs before training, based on leases and new outcomes in the store."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from datetime import UTC, datetime

import torch

from ...storage import Store
from ...storage.leases import Lease, LeaseState
from ..core.events import ClaimedElsewhere, Ended
from . import checkpoints
from .failures import storing
from .outcome import Job, Totals, last_epoch_metrics, trial_row

REFRESH_S = 1800.0
"""The store is read again after this many seconds; leases of ended trials are kept longer than this."""


class Claims:
    """Claimer of jobs for one worker of a run.

    If the lease of a job's first attempt is free, no other process has had the trial, unless leases of ended
    trials were removed. So the store is read when a trial is taken over, after such a removal, and after
    `REFRESH_S` by either of two clocks. The monotonic clock stops while a machine sleeps, and the wall clock
    may be corrected.
    """

    def __init__(self, store: Store, run: str) -> None:
        self._store, self._leases = store, store.leases(run)
        self._ended: dict[str, int] = {}
        self._read_at, self._sweep = (-math.inf, -math.inf), b""

    def claim(self, job: Job) -> tuple[Job, Lease] | ClaimedElsewhere:
        """Claim a job: return it with its attempt number and lease, or the process that has the trial."""
        trial = job.trial.id
        claimed = self._leases.claim(trial, job.attempt, gone=job.gone)
        if isinstance(claimed, LeaseState) and claimed.ended:
            if self._has_ended(job, at_once=True):
                return ClaimedElsewhere(trial=trial, attempt=claimed.attempt, ended=True)
            if claimed.lists_are_current or claimed.attempt <= job.gone:  # its row is lost, or never was
                claimed = self._leases.claim(trial, claimed.attempt + 1)
        if isinstance(claimed, LeaseState):
            return taken(claimed)
        if self._has_ended(job, at_once=claimed.attempt > job.attempt):
            claimed.release()
            return ClaimedElsewhere(trial=trial, attempt=job.attempt, ended=True)
        return replace(job, attempt=claimed.attempt), claimed

    def _has_ended(self, job: Job, *, at_once: bool) -> bool:
        if self._ended.get(job.trial.id, -1) < job.attempt:
            self._refresh(at_once=at_once)
        return self._ended.get(job.trial.id, -1) >= job.attempt

    def _refresh(self, *, at_once: bool) -> None:
        """Read the numbers of the last attempts, unless they were read recently and nothing forces it."""
        now, sweep = (time.monotonic(), time.time()), self._leases.last_sweep()  # before the store is read
        passed = [abs(each - then) for each, then in zip(now, self._read_at, strict=True)]
        if at_once or max(passed) > REFRESH_S or sweep != self._sweep:
            self._ended, self._read_at, self._sweep = self._store.last_numbers(), now, sweep


def taken(state: LeaseState) -> ClaimedElsewhere:
    """Return the event that another process has a trial whose outcome is not in the store yet."""
    owner = state.owner
    return ClaimedElsewhere(
        trial=state.trial, attempt=state.attempt, ended=False, host=owner.host, pid=owner.pid
    )


@storing()
def store_pruned(job: Job, store: Store, reason: str) -> Ended | ClaimedElsewhere:
    """Store a trial as pruned by a scheduler, unless another process has the trial.

    Raise MachineError if it cannot be stored.
    """
    claimed = Claims(store, job.run).claim(job)
    if isinstance(claimed, ClaimedElsewhere):
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
