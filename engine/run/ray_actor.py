"""Worker of a run on Ray.

A worker is an actor that trains one cohort (group of trials) after another.
"""

from __future__ import annotations

import faulthandler
import logging
import os
import pickle
import signal
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from math import nan
from types import FrameType

import ray

from ...plugins import PluginFile, load_plugin_files
from ..core.events import Event, MachineFailed
from ..core.process import StoppedMidway, stop_soon
from ..core.resources import Machine
from ..trial.failures import MachineError, lost_gpu
from ..trial.resumable_attempt import Attempt, TrainingFactory
from .cluster_nodes import StorePlace
from .cohorts import Worker
from .ray_connection import Code, code_fault, look_at_code

REPORT_S = 0.5
"""The seconds between two reports of a worker; in a search it reports after each epoch."""

LOOK_S = 0.5
"""The interval at which a worker checks whether it must leave, in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What has happened in a cohort since the last report of its worker.

    In a search, `value` is the cohort's mean metric after `epoch`. `lost` says why the worker must be
    replaced, if so: its node or its GPU is lost.
    """

    events: Sequence[Event] = ()
    has_ended: bool = False
    epoch: int = 0
    value: float = nan
    lost: str = ""


def request_stop(run: str) -> None:
    """Signal all workers of a run to stop at their next step.

    The driver calls this. Ray's key-value store is used because it needs no process of its own, unlike a
    public Ray actor. Without this signal, a worker stops only at its next report.
    """
    with suppress(ImportError):
        from ray.experimental.internal_kv import _internal_kv_put  # noqa: PLC0415 -- private, so guarded

        # Ray has no public key-value store
        _internal_kv_put(_stop_key(run), b"1", overwrite=True)


def share_cores(machine: Machine) -> None:
    """Limit torch's compile workers to the cores of a trial.

    The environment can set another number. By default each process starts up to 32 compile workers, so many
    trials on one GPU would start thousands.
    """
    if machine.gpus != "auto" and machine.gpus < 1:
        os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", str(machine.threads))


class CohortActor:
    """The Ray actor of a worker, which trains cohorts (groups of trials), one after another.

    If a metric is given, the trials of a cohort advance in lockstep, and each epoch is reported.
    """

    def __init__(
        self,
        place: StorePlace,
        machine: Machine,
        make_training: TrainingFactory,
        *,
        metric: str | None,
        plugins: tuple[PluginFile, ...],
        run: str,
        code: Code,
    ) -> None:
        share_cores(machine)
        logging.getLogger("ray").setLevel(logging.ERROR)
        faulthandler.disable()  # otherwise a trial could not write crash reports to its own file
        self._metric, self._fault = metric, ""
        self._attempts: list[Attempt] = []
        self._leaving = _LeaveWatcher(run)
        try:
            if (fault := code_fault(code, look_at_code())) is not None:
                raise MachineError(fault)
            load_plugin_files(plugins)
            self._worker = Worker(place.open(), machine, make_training)
        except Exception as error:  # noqa: BLE001 -- no trial has begun, whatever the error
            what = " ".join(f"{type(error).__name__}: {error}".split())
            self._fault = f"a worker on {socket.gethostname()} cannot begin: {what}"

    def fault(self) -> str:
        """Return why this worker cannot begin, or ""."""
        return self._fault

    def begin(self, jobs: bytes) -> Report:
        """Begin a cohort, whose jobs are pickled, and train it for some time."""
        self._attempts = self._worker.attempts(pickle.loads(jobs))
        self._events = self._worker.events(self._attempts)
        self._in_step = self._worker.in_step(self._attempts)
        return self.train()

    def train(self) -> Report:
        """Train the current cohort for some time. In a search, this is one epoch."""
        events, has_ended, lost = list[Event](), False, ""
        try:
            with self._leaving.stopping_on_sigterm():
                has_ended = self._train(events)
        except StoppedMidway:
            events += self.release()
            if self._leaving.is_preempted:
                lost = f"the node of {socket.gethostname()} is being preempted"
        if (reason := lost_gpu()) is not None:
            events += self.release()
            events = [event for event in events if not isinstance(event, MachineFailed)]
            lost = reason
        epoch, value = 0, nan
        if self._metric is not None:
            epoch, value = self._in_step.epoch, self._in_step.mean_metric(self._metric)
        return Report(events=events, has_ended=has_ended, epoch=epoch, value=value, lost=lost)

    def _train(self, events: list[Event]) -> bool:
        """Add the events of some training to a list, and return whether the cohort has ended."""
        if self._metric is not None:
            events += self._in_step.advance()
            return self._in_step.ended
        deadline = time.monotonic() + REPORT_S
        for event in self._events:
            events.append(event)
            if time.monotonic() >= deadline:
                return False
        return True

    def release(self) -> list[Event]:
        """Release the claims of trials that have not ended, after saving their state.

        Return the events of the trials that have ended.
        """
        for attempt in self._attempts:
            attempt.release()
        return self._worker.flush()


class _LeaveWatcher:
    """Watcher that stops a worker before its node or process ends.

    The worker then saves its training. A worker stops when the run stops, and when its node or process is
    about to end. A node ends when it is drained, for example by SIGTERM to `ray start --block`.
    """

    def __init__(self, run: str) -> None:
        self.is_preempted = self._working = False
        self._key, self._node = _stop_key(run), ray.get_runtime_context().get_node_id()
        # Python sets signal handlers only in the main thread
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGTERM, self._terminate)
        threading.Thread(target=self._wait_for_stop, name="leaving", daemon=True).start()

    @contextmanager
    def stopping_on_sigterm(self) -> Iterator[None]:
        """Within this context, let SIGTERM stop the current step and save the training.

        Outside this context SIGTERM ends the process.
        """
        self._working = True
        try:
            yield
        finally:
            self._working = False

    def _terminate(self, number: int, frame: FrameType | None) -> None:
        self.is_preempted = True
        if self._working:
            stop_soon()
        # between two steps nothing is lost if Ray's own handler ends the process
        elif callable(self._before):
            self._before(number, frame)

    def _wait_for_stop(self) -> None:
        """Wait until this worker must stop; ask Ray at intervals.

        Ignore errors, such as those of a head node that does not answer.
        """
        while True:
            time.sleep(LOOK_S)
            with suppress(Exception):
                from ray._private.state import state  # noqa: PLC0415 -- private, so guarded

                # Ray has no public interface that reports a drained node; the node's SIGTERM comes later
                if self._node in state.get_draining_nodes():
                    self.is_preempted = True
            with suppress(Exception):
                from ray.experimental.internal_kv import _internal_kv_exists  # noqa: PLC0415 -- as above

                if self.is_preempted or _internal_kv_exists(self._key):
                    stop_soon()
                    return


def _stop_key(run: str) -> bytes:
    return f"activemem:stop:{run}".encode()
