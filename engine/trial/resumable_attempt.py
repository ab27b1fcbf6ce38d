"""One attempt at one trial: it advances an epoch at a time, and whatever happens becomes a stored outcome."""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol, Self

import torch

from ...blocks.layers.kernels.choice import noting_kernels
from ...storage import AttemptRows, MetricRow, Store
from ...studies.planning.memory_estimates import OF_SETTINGS_ALONE, MemoryEstimator
from ...studies.resolve.plugin_code import code_fault
from ..core.cpu import give_back_memory
from ..core.events import Ended, EpochFinished, Event, MachineFailed, Started, Taken
from ..core.interruption import StoppedMidway, TimeLimitPassed, interruptible, leave_if_asked
from ..core.trainable import Trainable, TrainingFactory
from . import checkpoints, last_words, provenance
from .checkpoints import Checkpoint, CheckpointData
from .claims import Claims
from .leaks import LeakError
from .machine_failures import (
    MachineError,
    lost_gpu,
    machine_failure,
    note_lost_gpu,
    storing,
)
from .memory_retries import MemoryTries, free_memory, is_out_of_memory, may_be_out_of_memory
from .outcome import Job, Totals, keep_model, last_epoch_metrics, measured_totals, trial_row
from .training import NotANumberError, Training

START_LIMIT_S = 60.0
"""The least time to begin in, whatever the limit is: reading data and building models is no training."""

_CPU = torch.device("cpu")  # where states are read: trainings bring them to where they are needed

_log = logging.getLogger(__name__)


class Holder(Protocol):
    """Stores outcomes of attempts some time after they have ended, several at once."""

    def add(self, attempt: Attempt) -> None:
        """Store its outcome by and by, unless it is lost by then, and close it."""
        ...

    def flush_if_due(self) -> None:
        """Store what has waited for long enough."""
        ...


class Attempt:
    """A trial on its way from its last checkpoint to its outcome, claimed first and held by a lease.

    A trial that another process has, or has taken over from this one, ends here without an outcome. It is
    saved after each epoch, every `checkpoint_every_s` seconds amid one, and where somebody asks to stop;
    after epochs of less than a moment only now and then, if that is asked for. Rows have what is `told`.
    `time_limit_s` bounds the training seconds over all starts; a trial that exceeds it has failed, amid its
    epoch if that does not end soon, and resumes from its checkpoint when it is tried with a longer limit.
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
        data: Path = Path("data"),
        make_training: TrainingFactory = Training,
        guard: last_words.Guard | None = None,
        memory: MemoryEstimator = OF_SETTINGS_ALONE,
        told: str = "",
    ) -> None:
        self.job, self.ended, self._guard = job, False, guard
        self._claims, self._lease = claims or Claims(store, job.run), None
        self._store, self._device, self._limit = store, device, time_limit_s
        self._data, self._make_training, self._told = data, make_training, told
        self._every, self._saved_at = checkpoint_every_s, time.monotonic()
        self._least_s, self._unsaved_epochs, self._saved_s = 0.0, 0, 0.0
        self._checkpoint = checkpoint or checkpoints.checkpoint_of(store, job.trial.id, job.shorter)
        self._tries = MemoryTries(job.trial.settings, self._checkpoint.folder, memory)
        self._training: Trainable | None = None
        self._told_start = self._died = False
        self._totals, self._rows, self._kernels = Totals(), list[MetricRow](), set[str]()
        self._started = datetime.now(UTC)
        self._suspect_epoch: int | None = None  # in which a process has died
        self._holder: Holder | None = None
        self._outcome: AttemptRows | None = None

    def held_by(self, holder: Holder) -> Self:
        """Let its outcome wait for those of others, unless a process has died of it."""
        self._holder = holder
        return self

    def saved_after(self, seconds: float) -> Self:
        """Save it after an epoch only if it has trained for so long since it was saved last.

        Where a process has died of it, it is saved after each epoch, so that the next death is told apart.
        """
        self._least_s = seconds
        return self

    @property
    def outcome(self) -> AttemptRows:
        """What is to be stored of it, now that it has ended."""
        assert self._outcome is not None, "it has ended"
        return self._outcome

    @property
    def epoch(self) -> int | None:
        """The epochs that it has trained; None before it has started."""
        return None if self._training is None else self._training.epoch

    @property
    def packable(self) -> Training | None:
        """Its training, if it may take steps together with others: no process died in this epoch of it."""
        training = self._training
        if not isinstance(training, Training) or self.ended or training.finished:
            return None
        return training if training.epoch != self._suspect_epoch else None

    @property
    def time_left_s(self) -> float | None:
        """The training seconds that it may take."""
        if self._limit is None or self._training is None:
            return None
        return self._limit - self._training.seconds

    @property
    def save_is_due(self) -> bool:
        """Whether it is to be saved amid its epoch."""
        return self._every is not None and time.monotonic() - self._saved_at >= self._every

    @property
    def trained(self) -> bool:
        """Whether its last epoch is over, so that advancing ends it."""
        return self._training is not None and self._training.finished

    def release(self) -> None:
        """Give the trial back as it is after its last epoch, or in its checkpoint, unless it has ended."""
        if self._unsaved_epochs and lost_gpu() is None:
            with suppress(MachineError):  # what is not on disk is trained again
                self.save_midway()
        if self._lease is not None and not self.ended:
            self._lease.release()
        self.ended, self._training = True, None

    def leave(self) -> Taken:
        """Give the trial back since another process has its search point; to have begun it was no death."""
        if self._training is not None and not self.ended:
            self._checkpoint.record_stop()
        self.release()
        return Taken(trial=self.job.trial.id, attempt=self.job.attempt, ended=False)

    def advance(self) -> Event:
        """Start, train one more epoch, or end; the event of that. Must not be called after the end.

        A failure of the machine is an event, and leaves the trial as it was before. Where another process has
        taken the trial over, as after this one was suspended, whatever fails here is due to that process,
        which writes and removes the same files. Raises StoppedMidway.
        """
        try:
            return self._claim() or self._advance()
        except Exception as error:
            if self._is_surely_lost():
                return self._leave()
            if (reason := machine_failure(error)) is None:
                raise
            return MachineFailed(reason=reason)

    def _claim(self) -> Taken | None:
        """Claim the trial, if that has not been done; another process that has it."""
        if self._lease is not None:
            return None
        with storing():
            claimed = self._claims.claim(self.job)
        if isinstance(claimed, Taken):
            self.ended = True
            return claimed
        self.job, self._lease = claimed
        return None

    def _advance(self) -> Event:
        """As `advance`, but for failures of the machine, which are raised."""
        while (event := self._try_to_advance()) is None:
            free_memory()  # now that no frame of what has failed is left
        return event

    def _try_to_advance(self) -> Event | None:
        """As `_advance`; None where memory ran out and it is tried again."""
        try:
            return self._next_event()
        except (LeakError, NotANumberError) as error:
            return self._end("failed", str(error))
        except TimeLimitPassed:
            self._training = None  # what it has done of the epoch is not counted
            return self._end("failed", f"time limit of {self._limit:g} s passed {self._where()}")
        except (Exception, SystemExit) as error:  # whatever a trial raises is its outcome; the study goes on
            if machine_failure(error) is not None:
                raise
            note_lost_gpu(error)
            summary = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
            if may_be_out_of_memory(error):
                if self._tries.next():
                    self._checkpoint.record_stop()
                    self._training = None
                    return None
                summary = "out of memory" if is_out_of_memory(error) else summary
            return self._end("failed", f"{summary} {self._where()}\n{traceback.format_exc()}")

    def _next_event(self) -> Event | None:
        """What happens next; None where it begins again, which has been told before."""
        if self._training is None:
            self._tries.wait_for_room(self._device, self._look_up)
            event, was_told = self._start(), self._told_start
            self._told_start = True
            return None if isinstance(event, Started) and was_told else event
        return self._end("done", None) if self._training.finished else self._epoch(self._training)

    def _start(self) -> Event:
        """Build the training and load its checkpoint, unless it has killed its workers too often."""
        if (lost := lost_gpu()) is not None:
            raise MachineError(lost)
        words = last_words.take_last_words(self._checkpoint.folder)
        with storing():
            saved = self._checkpoint.load(_CPU)
            self._totals, self._rows = (saved.totals, saved.metrics) if saved else (Totals(), [])
            self._tries.read(self._device)
            if words is not None and words.passed_memory_limit and self._tries.next(was_alone=True):
                words = None
            tries = f"/{self._tries.tries}" if self._tries.tries else ""
            place = f"{'0' if saved is None else saved.place}{tries}"
            deaths = self._checkpoint.record_start(self.job.trial.to_json(), self.job.run, place)
        if (reason := last_words.failure_by_death(deaths, words, self._limit, self._where())) is not None:
            return self._end("failed", reason)
        with self._limited(None if self._limit is None else max(self._limit, START_LIMIT_S)):
            provenance.reset_peak_memory(self._device)
            if (fault := code_fault(self.job.trial.settings)) is not None:
                raise MachineError(fault)
            training = self._make_training(self._tries.settings, self._device, self._data)
            if saved is not None:
                training.restore(saved.state)
        self._training = training
        self._died, self._saved_s, self._unsaved_epochs = deaths.in_all > 0, training.seconds, 0
        self._suspect_epoch = training.epoch if self._died else None
        return Started(trial=self.job.trial.id, epoch=training.epoch)

    def _epoch(self, training: Trainable) -> Event:
        """Train one epoch and save its checkpoint; one that is left midway is saved there."""
        self._saved_at = time.monotonic()
        self._keep_if_last(training)
        try:
            left = None if self._limit is None else self._limit - training.seconds
            with self._limited(left), noting_kernels(self._kernels):
                metrics = training.advance(lambda: self._between_steps(training))
        except StoppedMidway:
            if training.can_be_saved:
                self._save(training)
            raise
        step, epoch = training.step, training.epoch
        self._rows += [MetricRow(step=step, epoch=epoch, name=each, value=metrics[each]) for each in metrics]
        self._totals = self._measured(training)
        self._unsaved_epochs += 1
        is_late = self._limit is not None and training.seconds > self._limit and not training.finished
        is_unsafe = self._died or training.seconds - self._saved_s >= self._least_s
        if (is_late or is_unsafe) and not self._save(training):
            return self._leave()
        if is_late:
            return self._end("failed", f"time limit of {self._limit:g} s passed at epoch {training.epoch}")
        return EpochFinished(trial=self.job.trial.id, epoch=training.epoch, metrics=metrics)

    @contextmanager
    def _limited(self, seconds: float | None) -> Iterator[None]:
        """A context that ends after so long, and in which a death is told beside the checkpoint."""
        folder = self._checkpoint.folder
        with (
            last_words.leaving_last_words(folder, self._limit) as descriptor,
            interruptible(seconds, descriptor),
        ):
            if self._guard is not None:
                self._guard(last_words.words_file(folder))
            yield

    def _between_steps(self, training: Trainable) -> None:
        """Leave the training if somebody has asked to stop, and save it where it is time to."""
        self._look_up()
        self._keep_if_last(training)
        if self.save_is_due:
            self._save(training)

    def _look_up(self) -> None:
        """Leave if somebody has asked to stop, and have others' outcomes stored that have waited."""
        leave_if_asked()
        if self._holder is not None:
            self._holder.flush_if_due()

    def save_midway(self) -> None:
        """Save it amid its epoch, if all of its state is of one moment."""
        if self._training is not None and not self.ended and self._training.can_be_saved:
            self._save(self._training)

    def watch_pack(self) -> None:
        """Have what watches the memory blame no trial while several take steps together."""
        if self._guard is not None:
            self._guard(self._checkpoint.folder / "last_words_of_pack")

    def _keep_if_last(self, training: Trainable) -> None:
        """Keep the training before its last evaluation, if it is to be: one with more epochs has another."""
        if self.job.keep_checkpoint and training.lacks_last_evaluation:
            path = self._store.final_checkpoint_file(self.job.trial.id)
            with storing():
                checkpoints.save_final(path, self._current_state(training))
                self._store.publish(path)

    def _current_state(self, training: Trainable) -> CheckpointData:
        return CheckpointData(state=training.state(), metrics=self._rows, totals=self._totals)

    def _save(self, training: Trainable) -> bool:
        """Save the training as it is; False if another process has taken the trial over."""
        if self._is_lost():
            return False
        saved = self._current_state(training)
        with storing():
            self._checkpoint.save(saved)
        self._saved_at, self._saved_s, self._unsaved_epochs = time.monotonic(), training.seconds, 0
        return True

    def _is_lost(self) -> bool:
        return self._lease is not None and self._lease.is_lost()

    def _is_surely_lost(self) -> bool:
        """Return whether another process has taken the trial over; False where the store cannot say."""
        try:
            return not self.ended and self._is_lost()
        except OSError:
            return False

    def leave_if_lost(self) -> Taken | None:
        """Leave an outcome that waits to the process that has taken the trial over meanwhile, if one has."""
        return self._leave() if self._is_lost() else None

    def _leave(self) -> Taken:
        """Leave the trial to the process that has taken it over, since this one was silent for too long."""
        told = "trial %s: another process has taken it over from attempt %d, whose result is dropped"
        _log.warning(told, self.job.trial.id, self.job.attempt)
        self.ended, self._training = True, None
        return Taken(trial=self.job.trial.id, attempt=self.job.attempt + 1, ended=False)

    def _end(self, status: str, reason: str | None) -> Ended | Taken:
        """Write the outcome; the checkpoint is kept only if a longer time limit could use it."""
        if self._is_lost():
            return self._leave()
        final = last_epoch_metrics(self._rows)
        if self._training is not None:
            self._totals = self._measured(self._training)
            final = self._training.summary(final) if final else final
        row = trial_row(self.job, self._totals, final, status=status, reason=reason, started=self._started)
        outputs = None
        if status == "done" and self.job.keep_weights and self._training is not None:
            with storing():
                keep_model(self._store, self.job.trial, self._training, row)
            outputs = self._training.outputs()
        self.ended = True  # the row may be there although its flush fails: the lease is never given back
        self._outcome = AttemptRows(row, self._rows, outputs)
        if self._holder is not None and status == "done" and self._suspect_epoch is None:
            self._holder.add(self)
        else:
            with storing():
                self._store.write(*self._outcome)
            self.close()
        self._training = None  # its memory is free for the trials behind it
        give_back_memory()
        return Ended(trial=row.trial, status=status, reason=reason, metrics=final)

    def close(self) -> None:
        """Remove what an unfinished trial has, now that the outcome is stored."""
        reason, self._rows = self.outcome.trial.reason, []
        self._outcome = None
        if reason is None or not reason.startswith("time limit"):
            self._checkpoint.remove()
        if self._lease is not None:
            self._lease.end()

    def _measured(self, training: Trainable) -> Totals:
        told = [self._told, self._tries.told, *(f", kernels of {each}" for each in sorted(self._kernels))]
        return measured_totals(self._totals, training, self._device, told="".join(told))

    def _where(self) -> str:
        return f"at epoch {self._totals.epochs + 1}{self._tries.told}"
