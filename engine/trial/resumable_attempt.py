"""One attempt at one trial, from its claim to its stored outcome."""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from ...storage import AttemptRows, MetricRow, Store
from ...storage.leases import Lease, LeaseState
from ...storage.trial_files import NOTE_FILE
from ...studies.resolve.trial import code_fault
from ...studies.schema.settings import TrialSettings
from ..core.events import Event
from ..core.process import StoppedMidway, TimeLimitPassed, give_back_memory, interruptible, raise_if_stopped
from ..core.run import Run, RunStatus
from . import failures, outcome
from .checkpoints import Checkpoint, CheckpointData
from .evaluation import LeakError
from .failures import (
    MachineError,
    OomRetries,
    free_memory,
    is_out_of_memory,
    lost_gpu,
    machine_failure,
    may_be_out_of_memory,
    note_lost_gpu,
    storing,
)
from .outcome import Job, keep_model, last_epoch_metrics, measured, trial_row
from .training import TOKENS_PER_S, NotANumberError, Training

if TYPE_CHECKING:
    from ..run.outcome_buffer import OutcomeBuffer


class Claims:
    """The claims of one worker of a run.

    No other process trains a trial that the worker has claimed. `claim` takes a lease, and reads the store
    only when needed. If the lease of a job's first attempt is free, no other process has had the trial,
    unless leases were removed. So the store is read when a trial is taken over, and after such a removal.
    """

    def __init__(self, store: Store, run: str) -> None:
        self._store, self._leases = store, store.leases(run)
        self._ended: dict[str, int] = {}
        self._sweep: bytes | None = None  # as of the last reading of the store

    def claim(self, job: Job) -> Lease | Run:
        """Claim a job's trial, and return the lease, which has the number of the attempt.

        If another process has the trial or has ended it, return that process's run.
        """
        trial = job.trial.id
        claimed = self._leases.claim(trial, job.attempt, gone=job.gone)
        if isinstance(claimed, LeaseState) and claimed.ended:
            if self._has_ended(job, at_once=True):
                return Run(trial=trial, attempt=claimed.attempt, status="done")
            # its row was lost or never written, so the trial is free
            if claimed.lists_are_current or claimed.attempt <= job.gone:
                claimed = self._leases.claim(trial, claimed.attempt + 1)
        if isinstance(claimed, LeaseState):
            return run_elsewhere(claimed)
        if self._has_ended(job, at_once=claimed.attempt > job.attempt):
            claimed.release()
            return Run(trial=trial, attempt=job.attempt, status="done")
        return claimed

    def _has_ended(self, job: Job, *, at_once: bool) -> bool:
        """Return whether the store has an outcome of the job. With `at_once`, the store is read again."""
        if self._ended.get(job.trial.id, -1) < job.attempt:
            # read before the store: a later removal must cause another reading
            sweep = self._leases.last_sweep()
            if at_once or sweep != self._sweep:
                self._ended, self._sweep = self._store.last_numbers(), sweep
        return self._ended.get(job.trial.id, -1) >= job.attempt


def run_elsewhere(state: LeaseState) -> Run:
    """Return the run of a trial that another process holds. Its outcome is not stored yet."""
    owner = state.owner
    return Run(trial=state.trial, attempt=state.attempt, status="elsewhere", host=owner.host, pid=owner.pid)


@storing()
def store_pruned(job: Job, store: Store, reason: str) -> Event:
    """Store a trial as pruned by a scheduler.

    If another process holds the trial, store nothing. Raise MachineError if it cannot be stored.
    """
    lease = Claims(store, job.run).claim(job)
    if isinstance(lease, Run):
        return Event(kind="elsewhere", run=lease)
    checkpoint = Checkpoint(store, job.trial.id)
    saved = checkpoint.load()
    run, rows = (saved.run, saved.metrics) if saved else (Run(trial=job.trial.id), [])
    run = replace(
        run, attempt=lease.attempt, status="pruned", reason=reason, metrics=last_epoch_metrics(rows)
    )
    store.write(trial_row(job.trial, run, started=datetime.now(UTC)), rows)
    checkpoint.remove()
    lease.end()
    return Event(kind="ended", run=run)


TrainingFactory = Callable[[TrialSettings, torch.device, Path], Training]
"""Creates a training from a trial's settings, a device, and the folder of the corpora."""

START_LIMIT_S = 60.0
"""The minimum time for a start under any limit, because reading data and building models is not training."""

_log = logging.getLogger(__name__)


class Attempt:
    """State machine that takes one trial from its last checkpoint to its outcome.

    Each call of `advance` makes one transition and returns its event:

        unclaimed ── claim and start ──► training ── epoch ──► training ── end or pause ──► ended

    A lease protects the trial meanwhile. If another process has the trial, or takes it over, the attempt ends
    without an outcome. It also does so after epoch `until` of the job: the trial pauses.

    `training` is None before the start and after the end. The rows of an ended trial are its `outcome`, until
    they are stored.

    The trial is saved after each epoch, every `checkpoint_every_s` seconds within one, and on a requested
    stop. With `save_after_s` an epoch is saved only if the training took that many seconds since the last
    save. A trial whose process has died ignores `save_after_s`.

    `time_limit_s` bounds the training seconds over all starts. A trial that exceeds it fails, if necessary
    within an epoch. Under a longer limit it resumes from its checkpoint. A `buffer` stores the outcomes of
    several trials together. `gpu_share` is the part of a GPU that the trial has, for its row.
    """

    def __init__(
        self,
        job: Job,
        store: Store,
        device: torch.device,
        *,
        claims: Claims | None = None,
        checkpoint: Checkpoint | None = None,
        time_limit_s: float | None = None,
        checkpoint_every_s: float | None = None,
        save_after_s: float = 0.0,
        data: Path = Path("data"),
        make_training: TrainingFactory = Training.begin,
        buffer: OutcomeBuffer | None = None,
        gpu_share: float = 1.0,
    ) -> None:
        self.job, self.ended, self.save_after_s = job, False, save_after_s
        self._store, self._device, self._data, self._gpu_share = store, device, data, gpu_share
        self._make_training, self._buffer = make_training, buffer
        self._limit, self._every = time_limit_s, checkpoint_every_s
        self._claims, self._lease = claims or Claims(store, job.run), None
        self._checkpoint = checkpoint or Checkpoint(store, job.trial.id, job.earlier)
        self._tries = OomRetries(job.trial.settings, self._checkpoint.folder)
        self.training: Training | None = None
        self.outcome: AttemptRows | None = None
        self.run, self._rows = Run(trial=job.trial.id, attempt=job.attempt), list[MetricRow]()
        self._began = datetime.now(UTC)
        self._has_started = job.is_resumed  # an event "started" has been returned
        self._has_died = False  # a process died during this training
        self._saved_at, self._saved_seconds, self._is_unsaved = time.monotonic(), 0.0, False

    # -- transitions

    def advance(self) -> Event:
        """Take the next step of the attempt, and return its event.

        The steps are to start the trial, to train an epoch, and to end the trial. Do not call this after the
        end. A machine failure is an event that leaves the trial unchanged. While this process is suspended,
        another one may take the trial over, and write and remove the same files. A failure in this process is
        then caused by the other process. Raise StoppedMidway on a requested stop.
        """
        try:
            while (event := self._next_event()) is None:
                free_memory()  # only now: frames held the failed training until here
        except Exception as error:
            with suppress(OSError):  # an unreadable store is not a sign of another process
                if not self.ended and self.is_lost():
                    return self.drop()
            if (reason := machine_failure(error)) is None:
                raise
            return Event(kind="machine_failed", reason=reason)
        return event

    def _next_event(self) -> Event | None:
        """Make the attempt's next transition; return its event, or None if there is nothing to report."""
        if self._lease is None:
            with storing():
                claimed = self._claims.claim(self.job)
            if isinstance(claimed, Run):
                self.ended = True
                return Event(kind="elsewhere", run=claimed)
            self._lease, self.run = claimed, replace(self.run, attempt=claimed.attempt)
        try:
            if self.training is None:
                return self._start()
            if self.training.finished:
                return self._end("done")
            if self.job.until is not None and self.training.epoch >= self.job.until:
                return self._pause(self.training)
            return self._train_epoch(self.training)
        except (Exception, SystemExit, TimeLimitPassed) as error:
            is_own = machine_failure(error) is None  # asked before the process is known to have lost its GPU
            note_lost_gpu(error)
            if not is_own:
                raise
            return self._fail(error)  # whatever a trial raises is its outcome; the study continues

    def _fail(self, error: BaseException) -> Event | None:
        """End the trial after an exception. Return None if the trial is retried with less memory instead."""
        if isinstance(error, LeakError | NotANumberError):
            return self._end("failed", str(error))
        if isinstance(error, TimeLimitPassed):
            self.training = None  # the partial epoch does not count
            return self._end("failed", f"time limit of {self._limit:g} s passed {self._place()}")
        name, message = type(error).__name__, str(error).partition("\n")[0]
        if may_be_out_of_memory(error):
            if self._tries.next():
                self._checkpoint.record_stop()
                self.training = None
                return None
            if is_out_of_memory(error):
                name, message = "out of memory", ""
        summary = ": ".join(filter(None, (f"{name} {self._place()}", message)))
        return self._end("failed", f"{summary}\n{traceback.format_exc()}")

    def _start(self) -> Event | None:
        """Build the training and load its checkpoint. If the trial killed too many workers, end it."""
        if (lost := lost_gpu()) is not None:
            raise MachineError(lost)
        report = failures.take_crash_report(self._checkpoint.folder)
        with storing():
            saved = self._checkpoint.load()
            if saved is not None:
                self.run, self._rows = replace(saved.run, attempt=self.run.attempt), saved.metrics
            else:
                self.run, self._rows = Run(trial=self.run.trial, attempt=self.run.attempt), []
            self._tries.read()
            tries = f"/{self._tries.tries}" if self._tries.tries else ""
            place = f"{'0' if saved is None else saved.place}{tries}"
            deaths = self._checkpoint.record_start(self.job.trial.to_json(), self.job.run, place)
        if (reason := failures.failure_by_death(deaths, report, self._limit, self._place())) is not None:
            return self._end("failed", reason)
        with self._limited(None if self._limit is None else max(self._limit, START_LIMIT_S)):
            outcome.reset_peak_memory(self._device)
            if (fault := code_fault(self.job.trial.settings)) is not None:
                raise MachineError(fault)
            training = self._make_training(self._tries.settings, self._device, self._data)
            if saved is not None:
                training.restore(saved.state)
        self.training, self._saved_seconds, self._is_unsaved = training, training.work.seconds, False
        if deaths.in_all:
            self._has_died, self.save_after_s = True, 0.0
        if self._has_started:
            return None
        self._has_started = True
        now = replace(self.run, epoch=training.epoch, step=training.step, deaths=deaths.in_all)
        return Event(kind="started", run=now)

    def _train_epoch(self, training: Training) -> Event:
        self._saved_at = time.monotonic()
        self._keep_if_last(training)
        try:
            with self._limited(self._time_left_s):
                metrics = training.advance(lambda: self._between_steps(training))
        except StoppedMidway:
            self._save_midway()
            raise
        step, epoch = training.step, training.epoch
        self._rows += [MetricRow(step=step, epoch=epoch, name=each, value=metrics[each]) for each in metrics]
        self.run, self._is_unsaved = replace(self._measured(training), metrics=metrics), True
        seconds, left = training.work.seconds, self._time_left_s
        is_late = left is not None and left < 0 and not training.finished
        is_due = is_late or seconds - self._saved_seconds >= self.save_after_s
        if is_due and not self._save(training):
            return self.drop()
        if is_late:
            return self._end("failed", f"time limit of {self._limit:g} s passed at epoch {epoch}")
        return Event(kind="epoch", run=self.run)

    def _end(self, status: RunStatus, reason: str | None = None) -> Event:
        if self.is_lost():
            return self.drop()
        final, training = last_epoch_metrics(self._rows), self.training
        if training is not None:
            self.run = self._measured(training)
            if final:  # the last epoch's metrics, with the mean speed of all epochs
                final |= {TOKENS_PER_S: training.work.tokens / max(training.work.seconds, 1e-9)}
        self.run = replace(self.run, status=status, reason=reason, metrics=final)
        row = trial_row(self.job.trial, self.run, started=self._began)
        outputs = None
        if status == "done" and self.job.keep_weights and training is not None:
            with storing():
                # the model comes before the row: a trial with a row must have its weights
                keep_model(self._store, self.job.trial, training, row)
            outputs = training.objective.outputs()
        self.ended = True  # the row may exist although its flush failed, so the lease is never released
        self.outcome = AttemptRows(row, self._rows, outputs)
        if self._buffer is not None and status == "done" and not self._has_died:
            self._buffer.add(self)
        else:
            with storing():
                self._store.write(*self.outcome)
            self.close()
        self.training = training = None  # frees its memory for the next trials
        give_back_memory()
        return Event(kind="ended", run=self.run)

    def _pause(self, training: Training) -> Event:
        """Save the training, and give the trial back so that any worker may continue it."""
        # a process that was killed may have left a state without its note, by which the point is compared
        is_noted = (self._checkpoint.folder / NOTE_FILE).is_file()
        if (self._is_unsaved or not is_noted) and not self._save(training):
            return self.drop()
        self._checkpoint.record_stop()
        self.release()
        return Event(kind="paused", run=replace(self.run, status="paused"))

    # -- the outcome, once it has ended

    def close(self) -> None:
        """Remove the checkpoint of a trial and end its lease, once its outcome is stored.

        The checkpoint is kept if the trial could resume from it under a longer time limit.
        """
        assert self.outcome is not None, "the attempt has ended"
        reason, self._rows, self.outcome = self.outcome.trial.reason, [], None
        if reason is None or not reason.startswith("time limit"):
            self._checkpoint.remove()
        if self._lease is not None:
            self._lease.end()

    # -- giving the trial back

    def release(self) -> None:
        """Unless the trial has ended, save its state since the last epoch if possible; release the lease."""
        if self._is_unsaved and lost_gpu() is None:
            with suppress(MachineError):  # steps that are not on disk are repeated
                self._save_midway()
        if self._lease is not None and not self.ended:
            self._lease.release()
        self.ended, self.training = True, None

    def drop(self) -> Event:
        """Drop the state of a trial that another process has taken over, and its outcome if it has one."""
        message = "trial %s: another process took it over, or the store was removed; attempt %d is dropped"
        _log.warning(message, self.run.trial, self.run.attempt)
        self.ended, self.training = True, None
        return Event(
            kind="elsewhere",
            run=Run(trial=self.run.trial, attempt=self.run.attempt + 1, status="elsewhere"),
        )

    def is_lost(self) -> bool:
        """Return whether another process has taken over the trial."""
        return self._lease is not None and self._lease.is_lost()

    # -- saving

    @property
    def _save_is_due(self) -> bool:
        """Return whether it is time to save a checkpoint within the epoch."""
        return self._every is not None and time.monotonic() - self._saved_at >= self._every

    def _save_midway(self) -> None:
        """Save a checkpoint within the epoch, unless a step is in progress."""
        if self.training is not None and not self.ended and self.training.can_be_saved:
            self._save(self.training)

    def _save(self, training: Training) -> bool:
        if self.is_lost():
            return False
        with storing():
            self._checkpoint.save(self._data_of(training))
        self._saved_at, self._saved_seconds = time.monotonic(), training.work.seconds
        self._is_unsaved = False
        return True

    def _keep_if_last(self, training: Training) -> None:
        """Store a training's last state, from which a trial with more epochs can continue.

        This is done only if the job asks for it and only the last evaluation is missing.
        """
        if not self.job.keep_checkpoint or training.steps_left:
            return
        if training.epoch + 1 == training.settings.train.epochs:
            with storing():
                self._checkpoint.save_final(self._data_of(training))

    def _data_of(self, training: Training) -> CheckpointData:
        return CheckpointData(state=training.state(), metrics=self._rows, run=self.run)

    # -- within an epoch

    @contextmanager
    def _limited(self, seconds: float | None) -> Iterator[None]:
        """Within this context, limit the training to `seconds`. If the process dies, record a report."""
        folder = self._checkpoint.folder
        with failures.recording_crashes(folder) as descriptor, interruptible(seconds, descriptor):
            yield

    def _between_steps(self, training: Training) -> None:
        """Raise StoppedMidway on a requested stop. Otherwise store outcomes and checkpoints that are due."""
        raise_if_stopped()
        if self._buffer is not None:
            self._buffer.flush_if_due()
        self._keep_if_last(training)
        if self._save_is_due:
            self._save(training)

    @property
    def _time_left_s(self) -> float | None:
        """Return the remaining training seconds; None without a limit."""
        if self._limit is None or self.training is None:
            return None
        return self._limit - self.training.work.seconds

    # -- texts

    def _measured(self, training: Training) -> Run:
        return measured(
            self.run,
            training,
            self._device,
            gpu_share=self._gpu_share,
            device_suffix=self._tries.device_suffix,
        )

    def _place(self) -> str:
        return f"at epoch {self.run.epoch + 1}{self._tries.device_suffix}"
