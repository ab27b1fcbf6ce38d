"""The processes of replicas: started when a training first needs them, and again when one of them is lost."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch
from torch import distributed

from ...plugins import loaded_files
from ...studies.schema.settings import TrialSettings
from ..trial.machine_failures import MachineError
from .messages import Ask, Build, Carried, Failure, ReplicaPost, Restore
from .replica_process import UNHEARD, join, use_device

_END_S = 0.2
"""So long what a replica says at its end may take to arrive."""

_POLL_S = 0.1
"""So often it is looked, while replicas meet, whether all of them are still there."""

_PATIENCE_S = 600.0
"""So long replicas may take to meet, and to answer: as long as torch waits for what they add up."""

_START = "from activemem.engine.replicas.replica_process import main; main()"


@dataclass(frozen=True, slots=True)
class _Process:
    """Another replica, and the pipe to it."""

    process: subprocess.Popen[bytes]
    connection: Connection

    def last_words(self) -> Failure | bool:
        """What it has failed by that nobody has heard; else whether it has ended."""
        try:
            while self.connection.poll(_END_S):
                if isinstance(told := self.connection.recv(), Failure):
                    return told
        except (EOFError, OSError):
            return True
        return False


@dataclass(frozen=True, slots=True)
class BuiltTraining:
    """A training as replicas know it: which of the processes, one after the other, and by which key."""

    generation: int
    key: int


class ReplicaGroup:
    """The replicas of one process's trainings, on these devices, of which the first is its own.

    The others compute activations again in the backward pass where `checkpoints`.
    """

    def __init__(self, devices: Sequence[torch.device], *, checkpoints: bool = False) -> None:
        self.devices, self._checkpoints = tuple(devices), checkpoints
        self._processes: list[_Process] = []
        self._meeting: tempfile.TemporaryDirectory[str] | None = None
        self._keys = count()
        self._generation = 0

    @property
    def pids(self) -> tuple[int, ...]:
        """The processes of the other replicas."""
        return tuple(each.process.pid for each in self._processes)

    def build(
        self, settings: TrialSettings, parts: int, data: Path, *, sharded: bool = False
    ) -> BuiltTraining:
        """Build a training in all of them."""
        if not self._processes:
            self._start()
        key = next(self._keys)
        self.tell(Build(key=key, settings=settings, parts=parts, data=data, sharded=sharded))
        return BuiltTraining(self._generation, key)

    def knows(self, known: BuiltTraining) -> bool:
        """Whether the processes that know it are still there."""
        return bool(self._processes) and self._generation == known.generation

    def tell(self, message: Build | Restore | Ask) -> None:
        """Tell all other replicas; raises what has ended one of them."""
        for each in self._processes:
            try:
                each.connection.send(message)
            except OSError:
                self.end()

    def ask(self, message: Ask) -> list[Carried]:
        """Tell all other replicas; the answer of each."""
        self.tell(message)
        return self._hear()

    def _hear(self) -> list[Any]:
        """What each of the others says next; raises what one of them has failed by, or MachineError."""
        late_at = time.monotonic() + _PATIENCE_S
        try:
            for rank, each in enumerate(self._processes, 1):
                if not each.connection.poll(max(late_at - time.monotonic(), 0.0)):
                    self.end()
                    raise MachineError(f"replica {rank} has not answered within {_PATIENCE_S:g} s")
            answers = [each.connection.recv() for each in self._processes]
        except (EOFError, OSError):
            self.end()
            raise
        if failures := [answer for answer in answers if isinstance(answer, Failure)]:
            self.end(failures)
        return answers

    def forget(self, known: BuiltTraining) -> None:
        """Have the others forget a training."""
        if self.knows(known):
            with suppress(Exception):
                self.tell(Ask(key=known.key, what="forget"))

    def end(self, heard: Sequence[Failure] = ()) -> None:
        """End all other replicas; raises what the first of them has failed by, if any has.

        The failures of the others may follow from it, as they wait for each other.
        """
        processes, self._processes = self._processes, []
        found = [each.last_words() for each in processes]
        for each in processes:
            each.connection.close()
            each.process.kill()
            each.process.wait()
        if (group := distributed.group.WORLD) is not None:
            with suppress(RuntimeError):  # of a GPU that is lost, as whoever has lost it tells
                group.abort()  # else NCCL waits until all is added, to which nobody adds his part any more
                distributed.destroy_process_group()
        if self._meeting is not None:
            self._meeting.cleanup()
            self._meeting = None
        if failures := [*heard, *(each for each in found if isinstance(each, Failure))]:
            raise min(failures, key=lambda each: each.at).error()
        if any(found):
            raise MachineError("a replica of the training has ended")

    def _start(self) -> None:
        """Start all other replicas and meet them, in a folder that is there as long as they are.

        A replica looks others up in it when it first exchanges something with them. They are met only once
        each has said that it can.
        """
        self._meeting = tempfile.TemporaryDirectory(prefix="activemem-replicas-", ignore_cleanup_errors=True)
        posts = [
            ReplicaPost(
                rank=rank,
                replicas=len(self.devices),
                device=str(device),
                threads=torch.get_num_threads(),
                meeting=str(Path(self._meeting.name) / "meeting"),
                plugins=loaded_files(),
                checkpoints=self._checkpoints,
            )
            for rank, device in enumerate(self.devices)
        ]
        self._generation += 1
        self._processes = [_start_process(post) for post in posts[1:]]
        try:
            self._hear()
            self._meet(posts[0])
        except BaseException:
            self.end()
            raise
        for each in self._processes:
            threading.Thread(target=self._watch, args=(each,), name="replica", daemon=True).start()

    def _meet(self, post: ReplicaPost) -> None:
        """Meet the others; raises what one of them has failed by, MachineError where it ends or all wait.

        By a thread that is left then: NCCL waits in native code for whoever has ended, without an end, and no
        group is there yet that could be aborted.
        """
        use_device(post)  # which each thread has for itself
        met: Future[None] = Future()
        thread = threading.Thread(target=_join, args=(post, met), name="meeting", daemon=True)
        thread.start()
        late_at = time.monotonic() + _PATIENCE_S
        while thread.is_alive():
            if any(each.process.poll() is not None for each in self._processes):
                self.end()
            if time.monotonic() > late_at:
                where = ", ".join(map(str, self.devices))
                told = "NCCL_DEBUG=INFO in the environment has NCCL say what it waits for"
                raise MachineError(f"devices have not met within {_PATIENCE_S:g} s: {where}; {told}")
            thread.join(_POLL_S)
        met.result()

    def _watch(self, replica: _Process) -> None:
        """Once a replica has ended unasked, end what waits for it here, on a GPU for ever."""
        replica.process.wait()
        if replica in self._processes and (group := distributed.group.WORLD) is not None:
            group.abort()  # what was to be added is lost, as whoever asks the replica next finds out


def _join(post: ReplicaPost, met: Future[None]) -> None:
    try:
        met.set_result(join(post))
    except BaseException as error:  # noqa: BLE001 -- it is raised where the meeting is waited for
        met.set_exception(error)


def _start_process(post: ReplicaPost) -> _Process:
    """Start a replica; a process that is no child of `multiprocessing`, since some workers may have none."""
    ours, theirs = (Connection(each.detach()) for each in socket.socketpair())
    before = signal.pthread_sigmask(signal.SIG_BLOCK, UNHEARD)  # until it ignores them
    try:
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-c", _START, str(theirs.fileno()), str(os.getpid())],
                pass_fds=[theirs.fileno()],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
                stdin=subprocess.DEVNULL,
            )
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    ours.send(post)
    return _Process(process, ours)
