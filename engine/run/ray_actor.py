"""Worker of a run on Ray: an actor that trains one cohort (group of trials) after another."""

from __future__ import annotations

import faulthandler
import logging
import os
import pickle
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from math import nan
from types import FrameType
from typing import Any

import ray
from ray import tune

from ...plugins import PluginFile, load_plugin_files
from ..core.events import MachineFailed
from ..core.process import StoppedMidway, stop_soon
from ..core.resources import Machine
from ..trial.failures import MachineError, lost_gpu
from ..trial.resumable_attempt import Attempt, TrainingFactory
from .cluster_nodes import StorePlace
from .ray_connection import Code, code_fault, look_at_code
from .worker import Worker, collect

REPORT_S = 0.5
"""The seconds between two reports of a worker; in a search it reports after each epoch."""

COMPLETED = "whole"
"""The key of a result that marks a cohort as completed; Tune's "done" also marks cohorts that it stops."""


LOOK_S = 0.5
"""The interval at which a worker checks whether it must leave, in seconds."""


class _WorkerLeavesError(Exception):
    """Error that ends a worker after its node or GPU is lost. A different worker resumes its trials."""


def request_stop(run: str) -> None:
    """Signal all workers of a run to stop at their next step.

    The driver calls this. Ray's key-value store is used because it needs no process of its own, unlike a
    public Ray actor. Without this signal, Tune stops workers only at the end of an epoch.
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


class CohortActor(tune.Trainable):
    """The Ray actor of a worker, which trains cohorts (groups of trials), each a single trial to Ray Tune."""

    def setup(  # pyright: ignore[reportIncompatibleMethodOverride] -- with_parameters adds what `run_cohorts` gives
        self,
        config: dict[str, Any],
        *,
        place: StorePlace,
        machine: Machine,
        make_training: TrainingFactory,
        metric: str | None,
        plugins: tuple[PluginFile, ...],
        run: str,
        code: Code,
    ) -> None:
        """Prepare the worker process, and start its first cohort (group of trials).

        If a metric is given, the trials of a cohort advance in lockstep, and each epoch is reported to Tune.
        An error becomes the first result: if it were raised here, Tune would retry for minutes.
        """
        share_cores(machine)
        logging.getLogger("ray").setLevel(logging.ERROR)
        faulthandler.disable()  # otherwise a trial could not write crash reports to its own file
        self._metric = metric
        self._attempts: list[Attempt] = []
        self._broken: str | None = None
        self._leaving = _LeaveWatcher(run)
        try:
            if (fault := code_fault(code, look_at_code())) is not None:
                raise MachineError(fault)
            load_plugin_files(plugins)
            self._worker = Worker(place.open(), machine, make_training)
            self.reset_config(config)
        except Exception as error:  # noqa: BLE001 -- no trial has begun, whatever the error
            what = " ".join(f"{type(error).__name__}: {error}".split())
            self._broken = f"a worker on {socket.gethostname()} cannot begin: {what}"

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        """Start the next cohort in the same process."""
        self.cleanup()
        self._attempts = self._worker.attempts(pickle.loads(new_config["tasks"]))
        self._events = self._worker.events(self._attempts)
        self._in_step = self._worker.in_step(self._attempts)
        return True

    def cleanup(self) -> None:
        """Release the claims of trials that have not ended. Tune calls this before it ends the actor."""
        for attempt in self._attempts:
            attempt.release()
        if self._attempts:
            self._worker.flush()

    def step(self) -> dict[str, Any]:
        """Train the current cohort for some time, and return the events. In a search, this is one epoch."""
        unfinished = {"events": [], "done": True, COMPLETED: False}
        unfinished |= {} if self._metric is None else {"epoch": 0, self._metric: nan}
        if self._broken is not None:
            return unfinished | {"events": [MachineFailed(reason=self._broken)]}
        if (lost := lost_gpu()) is not None:
            self.cleanup()
            raise _WorkerLeavesError(lost)
        try:
            with self._leaving.stopping_on_sigterm():
                found = self._work()
            if lost_gpu() is None:
                return found
            # this worker is about to end, and Tune continues its cohort
            events = [event for event in found["events"] if not isinstance(event, MachineFailed)]
            return found | {"events": events, "done": False, COMPLETED: False}
        except StoppedMidway:
            self.cleanup()
            if self._leaving.is_preempted:
                raise _WorkerLeavesError(f"the node of {socket.gethostname()} is being preempted") from None
            return unfinished

    def _work(self) -> dict[str, Any]:
        if self._metric is None:
            events = collect(self._events, REPORT_S)
            return {"events": events, "done": not events, COMPLETED: not events}
        events = self._in_step.advance()
        return {
            "events": events,
            "done": self._in_step.ended,
            COMPLETED: self._in_step.ended,
            "epoch": self._in_step.epoch,
            self._metric: self._in_step.mean_metric(self._metric),
        }

    def save_checkpoint(self, checkpoint_dir: str) -> None:
        """Do nothing: trials keep their own checkpoints in the store."""


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
        """Within this context, let SIGTERM stop the step and save the training, not end the process."""
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
        """Ask Ray at intervals whether to stop. Ignore errors, as of a head node that does not answer."""
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
