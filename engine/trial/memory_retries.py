"""Retries of a trial that ran out of memory: alone in its process, then with smaller micro-batches.

The parts of a batch are computed one after the other, and their gradients are added. The numbers are the same
up to the order of sums, but dropout draws for each part. The row's device says the number of parts.
Evaluations without enough memory use smaller batches, which changes only the order of sums.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import torch

from ...studies.planning.memory_estimates import MAX_DOUBLINGS
from ...studies.resolve.costs import longest_pair
from ...studies.schema.settings import TrialSettings
from ..objectives.base import Metrics, ModelOf, Objective

Result = TypeVar("Result")

_FILE = "memory_tries"

_UNCHANGED_BATCHES = ("beside others", "alone")
"""The tries that keep batches as the settings say."""

_OUT_OF_MEMORY = (
    "can't allocate memory",  # of torch on a CPU
    "out of memory",  # of CUDA
    "_ALLOC_FAILED",  # of cuBLAS, cuFFT, cuSOLVER and cuSPARSE
    "_ALLOCATION_FAILED",  # of cuDNN, since its version 9
)

_PERHAPS_OUT_OF_MEMORY = (
    "_STATUS_NOT_INITIALIZED",  # of cuBLAS and cuDNN: each thread's handles take memory beside torch's
    "was unable to find an engine",  # of convolutions: torch passes over those that memory is too short for
    "NVML_SUCCESS == r INTERNAL ASSERT FAILED",  # of torch, which asks who holds it: MIG does not say
)


class OomRetries:
    """Counter of a trial's out-of-memory errors, which decides the number of parts of its batches."""

    def __init__(self, settings: TrialSettings, folder: Path) -> None:
        train = settings.train
        self._settings, self._file = settings, folder / _FILE
        self._parts = [train.accumulate for _ in _UNCHANGED_BATCHES]
        for parts in (train.accumulate << times for times in range(1, MAX_DOUBLINGS + 1)):
            if not _can_be_split(settings, parts):
                break
            self._parts.append(parts)
        self.tries = 0
        """how often it has run out of memory so far"""

    @property
    def parts(self) -> int:
        """Return the parts of a batch in the current try."""
        return self._parts[self.tries]

    @property
    def settings(self) -> TrialSettings:
        """Return the training settings with these parts; the trial keeps its id."""
        train = self._settings.train
        if self.parts == train.accumulate:
            return self._settings
        return self._settings.model_copy(
            update={"train": train.model_copy(update={"accumulate": self.parts})}
        )

    @property
    def device_suffix(self) -> str:
        """Return the suffix of the row's device; empty if batches follow the settings."""
        return "" if self.parts == self._settings.train.accumulate else f", batches in {self.parts} parts"

    def read(self) -> None:
        """Continue from the tries of earlier processes."""
        with suppress(OSError, ValueError):
            self.tries = min(int(self._file.read_text("ascii")), len(self._parts) - 1)

    def next(self) -> bool:
        """Switch to the next way to train; return False if there is none."""
        if self.tries + 1 >= len(self._parts):
            return False
        self.tries += 1
        with suppress(OSError):  # it is then tried from the beginning
            self._file.write_text(f"{self.tries}", "ascii")
        return True


def _can_be_split(settings: TrialSettings, parts: int) -> bool:
    train = settings.train
    if train.batch_tokens is not None:
        return train.sequences(longest_pair(settings)) >= parts
    return train.batch_size >= parts and not (train.loss_terms and train.batch_size % parts)


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether memory ran out; on a CPU, torch raises a plain RuntimeError for that."""
    if isinstance(error, RuntimeError):
        return isinstance(error, torch.OutOfMemoryError) or any(text in str(error) for text in _OUT_OF_MEMORY)
    return isinstance(error, MemoryError)


def may_be_out_of_memory(error: BaseException) -> bool:
    """Return whether memory ran out, or CUDA's libraries raised an error that may mean this."""
    is_likely = isinstance(error, RuntimeError) and any(text in str(error) for text in _PERHAPS_OUT_OF_MEMORY)
    return is_likely or is_out_of_memory(error)


def in_smaller_parts(compute: Callable[[int], Result], parts: int, most: int) -> Result:
    """Return `compute(parts)`; if memory runs out, double the parts up to `most`."""
    while True:
        try:
            return compute(parts)
        except RuntimeError as error:
            if not may_be_out_of_memory(error) or 2 * parts > most:
                raise
        free_memory()  # now that no frame of what has failed is left
        parts *= 2


def evaluate_with_room(objective: Objective[ModelOf], model: ModelOf, *, last: bool) -> Metrics:
    """Evaluate a model; if memory runs out, its batches are split into more parts."""
    before, first = objective.state(), objective.evaluation_parts

    def evaluate(parts: int) -> Metrics:
        if parts > first:
            objective.restore(before)
        objective.evaluation_parts = parts
        return objective.evaluate(model, last=last)

    return in_smaller_parts(evaluate, first, objective.settings.train.batch_size)


def free_memory() -> None:
    """Free unused device memory. A lost device raises no error here; the next computation reports it."""
    gc.collect()
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        with suppress(RuntimeError):
            torch.cuda.empty_cache()
