"""Random seeds by purpose, and the random stream of a training on its device."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Generator, Tensor


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
