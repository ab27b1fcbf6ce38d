"""The state of a process that trains: its threads, its freed memory, and its random streams by purpose.

By default glibc returns large freed blocks to the system, and the next step must fault the pages in again.
That costs up to a fifth of the time of steps with large batches.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Generator, Tensor

# of malloc.h
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_NEVER = -1

LARGEST_BLOCK = 2**25
"""Blocks of this many bytes or more are allocated by mmap; glibc allows no larger threshold."""


def prepare_cpu(threads: int) -> None:
    """Set the number of threads, and keep freed memory in the process until `give_back_memory`."""
    torch.set_num_threads(threads)
    if (library := _glibc()) is not None:
        library.mallopt(_M_MMAP_THRESHOLD, LARGEST_BLOCK)
        library.mallopt(_M_TRIM_THRESHOLD, _NEVER)


@contextmanager
def restored_process() -> Iterator[None]:
    """Restore threads, memory settings and Optuna's log level at the end of the context.

    glibc offers no way to read its thresholds. They are set to the values that glibc itself uses after a
    large block was freed.
    """
    threads, level = torch.get_num_threads(), _optuna_level()
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        if (library := _glibc()) is not None:
            library.mallopt(_M_TRIM_THRESHOLD, 2 * LARGEST_BLOCK)
            library.malloc_trim(0)
        if (optuna := sys.modules.get("optuna")) is not None:
            optuna.logging.set_verbosity(optuna.logging.INFO if level is None else level)


def _optuna_level() -> int | None:
    optuna = sys.modules.get("optuna")
    return None if optuna is None else optuna.logging.get_verbosity()


def give_back_memory() -> None:
    """Return freed memory to the system, gaps between blocks included.

    Call it after a training, and between parts of work that leave such gaps.
    """
    if (library := _glibc()) is not None:
        library.malloc_trim(0)


def _glibc() -> ctypes.CDLL | None:
    """Return glibc; None on other systems, or if the environment already configures its malloc."""
    if sys.platform != "linux" or "glibc.malloc" in os.environ.get("GLIBC_TUNABLES", ""):
        return None
    if any(name in os.environ for name in ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_")):
        return None
    library = ctypes.CDLL(None)
    return library if hasattr(library, "mallopt") and hasattr(library, "malloc_trim") else None


def derive_seed(seed: int, purpose: str) -> int:
    """Return a 63-bit seed for one purpose of a trial, independent of the recipe."""
    digest = hashlib.sha256(f"{seed}:{purpose}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


class DeviceStream:
    """The random state of a training, which replaces the process's generator during its steps."""

    def __init__(self, device: torch.device, seed: int) -> None:
        self._device = device
        self._state = Generator(device).manual_seed(seed).get_state()
        self._drawing = False
        self.settled = True  # False where an interruption has left it between two states

    @property
    def state(self) -> Tensor:
        """Return the current state."""
        return self._of_process() if self._drawing else self._state

    @state.setter
    def state(self, state: Tensor) -> None:
        """Continue from a state; a state of another kind of device seeds the stream."""
        state = state.cpu()
        if state.numel() != self._state.numel():
            digest = hashlib.sha256(state.numpy().tobytes()).digest()
            state = Generator(self._device).manual_seed(int.from_bytes(digest[:8])).get_state()
        self._state = state

    @contextmanager
    def in_process(self) -> Iterator[None]:
        """Use this stream as the process's generator within a context."""
        cuda = self._device.type == "cuda"
        with torch.random.fork_rng(devices=[self._device] if cuda else []):
            if cuda:
                torch.cuda.set_rng_state(self._state, self._device)
            else:
                torch.set_rng_state(self._state)
            self._drawing = True
            try:
                yield
            finally:
                before, self.settled = self.settled, False
                self._state, self._drawing = self._of_process(), False
                self.settled = before

    def _of_process(self) -> Tensor:
        if self._device.type == "cuda":
            return torch.cuda.get_rng_state(self._device)
        return torch.get_rng_state()
