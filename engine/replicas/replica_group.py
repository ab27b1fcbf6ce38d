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
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import torch
from torch import distributed

from ...plugins import loaded_files
from ...studies.schema.settings import TrialSettings
from ..core.process_end import describe_end
from ..trial.machine_failures import MachineError, ReplicaDiedError
from .messages import Ask, Build, Carried, Failure, ReplicaPost, Restore
from .replica_process import UNHEARD, join, use_device

WatchProcesses = Callable[[Sequence[int]], None]
"""Learns the processes of replicas when they have been started, and that there are none when they end."""

_END_S = 0.2
"""So long what a replica says at its end may take to arrive."""

_POLL_S = 0.1
"""So often it is looked, while replicas meet, whether all of them are still there."""

_PATIENCE_S = 600.0
"""So long replicas may take to meet, and to answer: as long as torch waits for what they add up."""

_START = "from activemem.engine.replicas.replica_process import main; main()"


@dataclass(slots=True, eq=False)
class _Process:
    """Another replica, the pipe to it, what it has failed by, and whether it has ended without a word."""

    process: subprocess.Popen[bytes]
    connection: Connection
    failure: Failure | None = None
    is_gone: bool = False

    def hear(self) -> Any:  # noqa: ANN401 -- whatever it is asked
        """What it says next; raises EOFError or OSError where it has ended."""
        if isinstance(told := self.connection.recv(), Failure):
            self.failure = told
        return told

    def hear_to_the_end(self) -> None:
        """Hear what it has said up to now."""
        try:
            while self.failure is None and self.connection.poll(_END_S):
                self.hear()
        except (EOFError, OSError):
            self.is_gone = True

    def end(self) -> str:
        """End it, if it has not ended; how it has."""
        if self.is_gone:  # what Python does at its end may be left
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(_END_S)
        self.connection.close()
        self.process.kill()
        return describe_end(self.process.wait())


@dataclass(frozen=True, slots=True)
class BuiltTraining:
    """A training as replicas know it: which of the processes, one after the other, and by which key."""

    generation: int
    key: int


class ReplicaGroup:
    """The replicas of one process's trainings, on these devices, of which the first is its own.

    The others compute activations again in the backward pass where `checkpoints`. What is to `watch` them
    learns their processes.
    One thread asks them; only what they are to `forget` may come from any, at any moment.
    """

    def __init__(
        self,
        devices: Sequence[torch.device],
        *,
        checkpoints: bool = False,
        watch: WatchProcesses | None = None,
    ) -> None:
        self.devices, self._checkpoints, self._watch_processes = tuple(devices), checkpoints, watch
        self._processes: list[_Process] = []
        self._meeting: tempfile.TemporaryDirectory[str] | None = None
        self._keys = count()
        self._generation = 0
        self._forgotten = deque[BuiltTraining]()

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
        """Tell all other replicas, first what they are to forget; raises what has ended one of them."""
        while self._forgotten:
            if self.knows(known := self._forgotten.popleft()):
                self._send(Ask(key=known.key, what="forget"))
        self._send(message)

    def ask(self, message: Ask) -> list[Carried]:
        """Tell all other replicas; the answer of each."""
        self.tell(message)
        return self._hear()

    def _send(self, message: Build | Restore | Ask) -> None:
        if not self._processes:
            raise ReplicaDiedError("the other replicas have ended, and nobody takes their part of a step")
        for each in self._processes:
            try:
                each.connection.send(message)
            except OSError:
                self.end()

    def _hear(self) -> list[Any]:
        """What each of the others says next; raises as `end` what ends one of them, or MachineError."""
        late_at, answers = time.monotonic() + _PATIENCE_S, dict[int, Any]()
        silent = {each.connection: rank for rank, each in enumerate(self._processes)}
        while silent:
            if not (ready := wait(list(silent), max(late_at - time.monotonic(), 0.0))):
                self.end()
                raise MachineError(
                    f"replica {min(silent.values()) + 1} has not answered within {_PATIENCE_S:g} s"
                )
            for connection in [each for each in silent if each in ready]:
                rank = silent.pop(connection)
                try:
                    answers[rank] = self._processes[rank].hear()
                except (EOFError, OSError):
                    self.end()
                    raise
                if isinstance(answers[rank], Failure):
                    self.end()
        return [answers[rank] for rank in sorted(answers)]

    def forget(self, known: BuiltTraining) -> None:
        """Have the others forget a training, before whatever they are told next.

        It is only noted: this may be called where Python frees a training, in any thread and amid a message.
        """
        self._forgotten.append(known)

    def end(self) -> None:
        """End all other replicas; raises ReplicaDiedError if one had ended without a word.

        Else it raises what the first of them has failed by, if any has. The failures of the others may follow
        from either, as they wait for each other.
        """
        processes, self._processes = self._processes, []
        for each in processes:
            each.hear_to_the_end()
        if self._watch_processes is not None:
            self._watch_processes(())
        ended = [each.end() for each in processes]
        if (group := distributed.group.WORLD) is not None:
            with suppress(RuntimeError):  # of a GPU that is lost, as whoever has lost it tells
                group.abort()  # else NCCL waits until all is added, to which nobody adds his part any more
            with suppress(RuntimeError):
                distributed.destroy_process_group()
        if self._meeting is not None:
            self._meeting.cleanup()
            self._meeting = None
        for rank, (each, how) in enumerate(zip(processes, ended, strict=True), 1):
            if each.is_gone:
                raise ReplicaDiedError(f"replica {rank} on {socket.gethostname()} has ended: {how}")
        if failures := [each.failure for each in processes if each.failure is not None]:
            raise min(failures, key=lambda each: each.at).error()

    def _start(self) -> None:
        """Start all other replicas and meet them, in a folder that is there as long as they are.

        A replica looks others up in it when it first exchanges something with them. They are met only once
        each has said that it can. Raises MachineError where the group of those before could not be left, as a
        process has one at a time.
        """
        if distributed.group.WORLD is not None:
            raise MachineError("this process cannot meet other replicas again: it could not leave the last")
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
        if self._watch_processes is not None:
            self._watch_processes(self.pids)
        try:
            try:
                self._hear()
                self._meet(posts[0])
            except BaseException:
                self.end()
                raise
        except ReplicaDiedError as error:  # which no trial has done
            raise MachineError(f"{error}, before the replicas have met") from error
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
