"""A replica in a process of its own: it takes the steps that it is told to take, and nothing else."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

import torch
from torch import distributed

from ...plugins import load_plugin_files
from ..core.cpu import prepare_cpu
from ..core.device_stream import DeviceStream
from ..core.process_end import end_with
from ..core.seeds import derive_seed
from ..training_parts.activation_checkpointing import checkpoint_activations, checkpointing_fault
from ..trial.memory_retries import free_memory
from ..trial.provenance import peak_mib, reset_peak_memory
from ..trial.training import Training
from .messages import Ask, Build, Carried, Failure, ReplicaPost, Restore, from_bytes, to_bytes
from .share import ShardedShare, Share

_NCCL = {
    "TORCH_NCCL_RETHROW_CUDA_ERRORS": "0",  # else torch ends the process where a kernel has failed
    "TORCH_NCCL_ASYNC_ERROR_HANDLING": "2",  # where something was waited for for ten minutes, it is left,
    "TORCH_NCCL_DUMP_ON_TIMEOUT": "0",  # and the process is not ended, nor waited for by who describes it,
    "TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC": "0",  # for a minute for each of what is waited for
}
"""Settings of torch, unless the environment has others, with which failures come to who tells of them."""

UNHEARD = (signal.SIGINT, signal.SIGTERM)
"""Signals that the whole group may get, of which a replica takes no note: whoever leads says when to stop."""


def main() -> None:
    """Answer on the connection whose descriptor is the first argument, as long as its other end is there."""
    connection = Connection(int(sys.argv[1]))
    end_with(int(sys.argv[2]))
    for number in UNHEARD:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, UNHEARD)
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        try:
            _Replica(connection.recv(), connection).answer()
        except (EOFError, BrokenPipeError):
            raise
        except Exception as error:  # noqa: BLE001 -- whatever it is, the trial has failed by it
            connection.send(Failure.of(error))
            os._exit(1)  # what ends in order waits for the other replicas, which may wait for this one


def use_device(post: ReplicaPost) -> torch.device:
    """The device of a replica, which its process uses from now on; raises where it cannot."""
    device = torch.device(post.device)
    if device.type == "cuda":
        torch.cuda.set_device(device)
    return device


def join(post: ReplicaPost) -> None:
    """Meet the other replicas, all of which are about to do so: whoever never comes is waited for."""
    device = use_device(post)
    for name, value in _NCCL.items():
        os.environ.setdefault(name, value)
    distributed.init_process_group(
        "nccl" if device.type == "cuda" else "gloo",
        init_method=f"file://{post.meeting}",
        rank=post.rank,
        world_size=post.replicas,
    )
    if device.type == "cuda":  # NCCL meets when it first adds something: now, as all are still there
        distributed.all_reduce(torch.zeros(1, device=device))


class _Replica:
    """The trainings of this process, by their keys."""

    def __init__(self, post: ReplicaPost, connection: Connection) -> None:
        self._rank, self._connection, self._checkpoints = post.rank, connection, post.checkpoints
        prepare_cpu(post.threads)
        load_plugin_files(post.plugins)
        self._device = use_device(post)
        connection.send(None)
        join(post)
        self._trainings: dict[int, Training] = {}

    def answer(self) -> None:
        """Do what is asked until the connection is closed."""
        connection = self._connection
        while True:
            match connection.recv():
                case Build() as asked:
                    self._build(asked)
                case Restore() as asked:
                    self._restore(asked)
                case Ask(key=key, what="step"):
                    self._step(self._trainings[key])
                case Ask(key=key, what="carried"):
                    connection.send(self._carried(self._trainings[key]))
                case Ask(key=key, what="weights" | "state" as what):
                    self._trainings[key].trained.gather(what)
                case Ask(key=key):
                    del self._trainings[key]
                    free_memory()  # what shards weights holds them in cycles
                case other:
                    raise AssertionError(other)

    def _build(self, asked: Build) -> None:
        reset_peak_memory(self._device)
        if asked.sharded:
            from .sharded_weights import make_sharded  # noqa: PLC0415 -- loads much that few trials need

            make = make_sharded(evaluates=False, begin=lambda _what: None)
            training = Training(asked.settings, self._device, asked.data, make)
        else:
            training = Training(asked.settings, self._device, asked.data)
        if self._checkpoints and checkpointing_fault(asked.settings, training.model) is None:
            checkpoint_activations(training.model)
        share = ShardedShare if asked.sharded else Share
        training.replica = share(self._rank, asked.parts, begin=lambda: None)
        self._trainings[asked.key] = training

    def _restore(self, asked: Restore) -> None:
        training, state = self._trainings[asked.key], from_bytes(asked.state)
        (training.restore if asked.weights else training.restore_course)(state)

    def _step(self, training: Training) -> None:
        """One step; what is dropped follows from the trial, the replica and the step alone."""
        seed = derive_seed(training.settings.seed, f"dropout of replica {self._rank}, step {training.step}")
        training.noise = DeviceStream(self._device, seed)
        training.take_step()

    def _carried(self, training: Training) -> Carried:
        """What it has done up to now."""
        assert training.replica is not None, "it is given when it is built"
        carried: list[Any] = training.objective.carried(training.replica.parts)
        return Carried(
            parts=to_bytes(carried),
            fingerprint=training.trained.fingerprint(),
            peak_mib=peak_mib(self._device),
        )


if __name__ == "__main__":
    main()
