"""Worker of a run on Ray: an actor that trains one trial after another."""

from __future__ import annotations

import faulthandler
import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

import ray
from ray import tune

from ...plugins import PluginFile, load_plugin_files
from ..core.events import Event
from ..core.process import StoppedMidway, stop_soon
from ..core.resources import Machine
from ..trial.failures import MachineError, lost_gpu
from ..trial.outcome import Job
from ..trial.resumable_attempt import TrainingFactory
from .cluster_nodes import StorePlace
from .ray_connection import Code, code_fault, look_at_code
from .worker import Worker

REPORT_S = 0.5
"""The seconds between two reports of a worker; each trial's end is reported at once."""

JOB = "activemem"
"""The key of Tune's configuration of a trial that has what a worker needs, as text."""


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


class TrialActor(tune.Trainable):
    """The Ray actor of a worker, which trains one trial after the other. Each is a trial of Ray Tune, too.

    `worker_class` returns a subclass for one run, whose name is shown by Ray's dashboard.
    """

    place: StorePlace
    machine: Machine
    make_training: TrainingFactory
    plugins: tuple[PluginFile, ...]
    run: str
    code: Code

    @classmethod
    def default_resource_request(cls, config: dict[str, Any]) -> tune.PlacementGroupFactory:
        """Return the CPUs and GPUs of one worker."""
        assert cls.machine.gpus != "auto", "`auto` has been replaced by a number"
        return tune.PlacementGroupFactory([{"CPU": cls.machine.cpus, "GPU": cls.machine.gpus}])

    def setup(self, config: dict[str, Any]) -> None:
        """Prepare the worker process, and start its first trial.

        An error becomes the first result: if it were raised here, Tune would retry for minutes.
        """
        share_cores(self.machine)
        logging.getLogger("ray").setLevel(logging.ERROR)
        faulthandler.disable()  # otherwise a trial could not write crash reports to its own file
        self._events: Generator[Event] | None = None
        self._broken: str | None = None
        self._leaving = _LeaveWatcher(self.run)
        try:
            if (fault := code_fault(self.code, look_at_code())) is not None:
                raise MachineError(fault)
            load_plugin_files(self.plugins)
            self._worker = Worker(self.place.open(), self.machine, type(self).make_training)
            self.reset_config(config)
        except Exception as error:  # noqa: BLE001 -- no trial has begun, whatever the error
            what = " ".join(f"{type(error).__name__}: {error}".split())
            self._broken = f"a worker on {socket.gethostname()} cannot begin: {what}"

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        """Start the next trial in the same process."""
        self.cleanup()
        self._events = self._worker.train(Job.from_json(new_config[JOB]))
        return True

    def cleanup(self) -> None:
        """Save an unfinished trial, and release its claim. Tune calls this before it ends the actor."""
        if self._events is not None:
            self._events.close()
            self._worker.flush()
            self._events = None

    def step(self) -> dict[str, Any]:
        """Train the current trial for some time; return the new events, and the metrics of its last epoch."""
        if self._broken is not None:
            return {"events": [Event(kind="machine_failed", reason=self._broken)], "done": True}
        if (lost := lost_gpu()) is not None:
            self.cleanup()
            raise _WorkerLeavesError(lost)
        try:
            with self._leaving.stopping_on_sigterm():
                events, has_ended = self._collect()
        except StoppedMidway:
            self.cleanup()
            if self._leaving.is_preempted:
                raise _WorkerLeavesError(f"the node of {socket.gethostname()} is being preempted") from None
            return {"events": [], "done": True}
        if lost_gpu() is not None:  # this worker is about to end, and another one continues the trial
            events, has_ended = [each for each in events if each.kind != "machine_failed"], False
        found: dict[str, Any] = {}
        for event in events:
            if event.kind in ("epoch", "ended"):
                found |= {**event.run.metrics, "epoch": event.run.epoch, "status": event.run.status}
        return {**found, "events": events, "done": has_ended}

    def _collect(self) -> tuple[list[Event], bool]:
        """Return the events of about `REPORT_S` seconds, and whether the trial has ended or paused."""
        assert self._events is not None, "a trial has begun"
        deadline, taken = time.monotonic() + REPORT_S, list[Event]()
        for event in self._events:
            taken.append(event)
            if time.monotonic() >= deadline and event.kind not in ("ended", "paused"):
                return taken, False
        return [*taken, *self._worker.flush()], True

    def save_checkpoint(self, checkpoint_dir: str) -> None:
        """Do nothing: trials keep their own checkpoints in the store."""


def worker_class(name: str, **given: object) -> type[TrialActor]:
    """Return the actor class of one run, with this name, and with the attributes of `TrialActor`."""
    # a function as an attribute would become a method
    given["make_training"] = staticmethod(given["make_training"])  # pyright: ignore[reportArgumentType]
    return type(name, (TrialActor,), {**given, "__qualname__": name})


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
