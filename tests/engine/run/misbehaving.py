"""A plug-in whose trainings misbehave; ACTIVEMEM_TEST_MODES lists a mode for each seed, with commas."""

import ctypes
import importlib
import itertools
import os
import sys
import time
from contextlib import suppress
from pathlib import Path

import torch

from activemem.engine.trial.training import Training


def loop():
    """Loop forever in Python, ignoring exceptions."""
    while True:
        with suppress(Exception):
            time.sleep(0.01)


def native():
    """Block forever in native code while holding the GIL; a file marks the start.

    The function waits for a lock that it already holds, without releasing the GIL: a signal does not end the
    wait, and the wait takes no CPU time.
    """
    Path(os.environ["ACTIVEMEM_TEST_FOLDER"], "native").touch()
    lock, library = ctypes.create_string_buffer(128), ctypes.PyDLL(None)
    library.pthread_mutex_init(lock, None)
    while True:
        library.pthread_mutex_lock(lock)


lost = []


def use_gpu():
    """Simulate a process whose GPU kernels have failed."""
    if lost:
        raise torch.AcceleratorError("CUDA error: device-side assert triggered\nand more")


def lose_gpu():
    """Simulate a failed kernel, after which every GPU call fails."""
    lost.append(True)
    use_gpu()


def wait():
    """Mark the start, and wait as long as a run may wait for a step after Ctrl-C."""
    Path(os.environ["ACTIVEMEM_TEST_FOLDER"], "waiting").touch()
    time.sleep(2)


MODES = {
    "well": lambda: None,
    "loop": loop,
    "wait": wait,
    "native": native,
    "exit": lambda: sys.exit(0),
    "abort": os.abort,
    "leave": lambda: os._exit(7),
    "eat": lambda: list(itertools.repeat(0)),
    "module": lambda: importlib.import_module("no_such_module"),
    "kernel": lose_gpu,
    "gpu": lambda: torch.zeros(1, device="cuda"),
}

modes = os.environ["ACTIVEMEM_TEST_MODES"].split(",")
advance = Training.advance


def misbehave(self, between_steps):
    use_gpu()
    if self.settings.seed < len(modes):
        MODES[modes[self.settings.seed]]()
    return advance(self, between_steps)


Training.advance = misbehave
