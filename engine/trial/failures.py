"""Failures that a trial does not cause itself.

A machine breaks, a process dies, or the memory is too small. After a failure of the machine nothing is
stored, and the study stops. A process that dies leaves a crash report next to the checkpoint. A trial fails
if its processes die too often in one of its epochs.

A trial that ran out of memory is tried again: alone in its process, then with smaller micro-batches. The
parts of a batch are computed one after the other, and their gradients are added. The numbers are the same up
to the order of sums, but dropout draws for each part. The device in the trial's row also states the number of
parts. Evaluations without enough memory use smaller batches, which changes only the order of sums.
"""

from __future__ import annotations

import errno
import faulthandler
import gc
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import torch

from ...errors import ActivememError
from ...storage.processes import this_machine
from ...studies.planning.memory_estimates import MAX_DOUBLINGS
from ...studies.schema.settings import TrialSettings
from ..core.models import PrecisionError
from ..core.resources import Machine, gpu_fault
from ..corpora.files import DataError
from ..objectives.base import Metrics, ModelOf, Objective

_ERRNOS = frozenset(
    {
        errno.ENOSPC,
        errno.EDQUOT,
        errno.EROFS,
        errno.EIO,
        errno.EMFILE,
        errno.ENFILE,
        errno.ESTALE,
        errno.ENODEV,
    }
)
"""Error numbers of full, read-only, broken and vanished disks, and of exhausted file tables."""

_NO_GPU = (
    "Torch not compiled with CUDA enabled",
    "No CUDA GPUs are available",
    "NVIDIA driver on your system",  # there is none, or it is too old
    "CUDA driver initialization failed",
    "Unexpected error from cudaGetDeviceCount",
    "CUDA unknown error",
    "Cannot re-initialize CUDA in forked subprocess",
    "CUDNN_STATUS_SUBLIBRARY_",  # a cuDNN library is missing or has another version
    "cuDNN version incompatibility",
)
"""Messages of torch where no GPU, driver or library can be used from the start.

Later failures of a GPU are torch's AcceleratorError.
"""

_OWN_ASSERT = "device-side assert triggered"
"""The message of the one failure of a GPU that a trial causes: an index out of range, for example."""

_lost: list[str] = []


class MachineError(ActivememError):
    """Error for a machine that cannot train, such as one with a full disk. The message is one line."""


class HeadLostError(MachineError):
    """Error for a Ray cluster that has lost its head node.

    Ray ends this process half a minute later, or already when it exits.
    """


def check_gpu(machine: Machine) -> None:
    """Raise MachineError if trials need a GPU but this machine has none.

    With gpus = "auto", also raise it if there is a GPU but CUDA fails, because training on a CPU would take
    days.
    """
    gpus = machine.gpus
    if gpus and machine.address is None and (fault := gpu_fault()) is not None:
        asked = "a GPU" if gpus == "auto" else f"{gpus:g} for each trial"
        remedy = "; to train on CPUs, set gpus = 0" if gpus == "auto" else ""
        raise MachineError(
            f"gpus: expected {asked}, but torch finds none here, because CUDA fails: {fault}{remedy}"
        )
    if gpus != "auto" and gpus and machine.address is None and not torch.cuda.is_available():
        raise MachineError(f"gpus: expected {gpus:g} for each trial, but torch finds none here")


def check_row_writer() -> None:
    """Raise MachineError if pyarrow, which writes rows, cannot be imported.

    A trial writes its row when it ends, so that otherwise hours of training would fail at their end.
    """
    try:
        import pyarrow.parquet  # noqa: F401, PLC0415 -- loads slowly
    except ImportError as error:
        what = f"rows cannot be written, as pyarrow cannot be imported: {error}"
        raise MachineError(f"{what}; python -m pip install --force-reinstall pyarrow") from error


@contextmanager
def storing() -> Iterator[None]:
    """Within this context, raise MachineError for errors of the file system, such as a full disk."""
    try:
        yield
    except OSError as error:
        raise MachineError(_describe_os_error(error)) from error
    except RuntimeError as error:  # torch's error for a file that it could not write
        cause = error.__cause__ or error.__context__
        if not isinstance(cause, OSError):
            raise
        raise MachineError(_describe_os_error(cause)) from error


def note_lost_gpu(error: BaseException) -> None:
    """Record that this process has lost its GPU, if this loss caused the given error.

    From then on every CUDA call of this process raises an error, so trials that start later are not blamed.
    If the error does not say so, the GPU is queried, because CUDA's libraries report failures without their
    cause.
    """
    reason = _failure_of_gpu(error)
    if reason is None and torch.cuda.is_initialized():
        try:
            torch.cuda.current_stream().query()  # does not wait for kernels that still run
        except RuntimeError as failure:
            reason = _failure_of_gpu(failure)
    if not _lost and reason is not None:
        _lost.append(f"this process cannot use its GPU any more: {reason}")


def lost_gpu() -> str | None:
    """Return why this process cannot use its GPU any more; None if it can."""
    return _lost[0] if _lost else None


def _failure_of_gpu(error: BaseException) -> str | None:
    found = (each for each in _causes(error) if isinstance(each, torch.AcceleratorError))
    return next((str(each).partition("\n")[0] for each in found if not is_out_of_memory(each)), None)


def machine_failure(error: BaseException) -> str | None:
    """Describe the machine failure that caused an error, in one line.

    Return None if the trial caused the error. After a GPU is lost, CUDA's libraries only report that
    something failed, so the process's own record of the loss is used.
    """
    if _lost and any(isinstance(each, RuntimeError) for each in _causes(error)):
        return lost_gpu()
    if (reason := _failure_of_gpu(error)) is not None and _OWN_ASSERT not in reason:
        return f"the GPU fails: {reason}"
    return next((reason for each in _causes(error) if (reason := _reported_fault(each)) is not None), None)


def _reported_fault(error: BaseException) -> str | None:
    if isinstance(error, MachineError | DataError | PrecisionError):
        return " ".join(str(error).split())
    if isinstance(error, OSError) and error.errno in _ERRNOS:
        return _describe_os_error(error)
    if isinstance(error, ModuleNotFoundError):
        return f"a module is missing: {error}"
    if not isinstance(error, RuntimeError | AssertionError):
        return None
    is_missing = any(text in str(error) for text in _NO_GPU)
    return f"a GPU is missing: {str(error).splitlines()[0]}" if is_missing else None


def _describe_os_error(error: OSError) -> str:
    what = error.strerror or str(error)
    return f"{what}: {error.filename}" if error.filename else what


def _causes(error: BaseException) -> Iterator[BaseException]:
    each: BaseException | None = error
    while each is not None:
        yield each
        each = each.__cause__


MAX_WORKER_DEATHS = 3
"""The number of worker deaths in the same epoch of a trial, within one run, after which the trial fails."""

MAX_DEATHS = 6
"""The number of process deaths in the same epoch of a trial, over all runs, after which the trial fails."""

_FILE = "crash_report"
_STDERR = 2
_FATAL = re.compile(r"^Fatal Python error: (.*)$", re.MULTILINE)
_TIMEOUT = re.compile(r"^Timeout \(.*\)!$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class CrashCounts:
    """Counts of a trial's processes that started at the same epoch and step, and died.

    `in_run` counts this run, `in_all` all runs.
    """

    in_run: int
    in_all: int


@contextmanager
def recording_crashes(folder: Path) -> Iterator[int]:
    """Within this context, record a crash of this process in a file of the folder.

    The file begins with what the system has killed so far for lack of memory: such a kill can write nothing.
    Yield the descriptor of the file, or of standard error if the file cannot be written. A crash such as a
    segmentation fault writes its traceback there, unless this process has other fault handlers.
    """
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND
        descriptor = os.open(crash_report_file(folder), flags, 0o666)
    except OSError:
        descriptor = _STDERR
    else:
        with suppress(OSError):
            os.write(descriptor, f"{_memory_kills()}\n".encode())
    mine = not faulthandler.is_enabled()
    try:
        if mine:
            faulthandler.enable(descriptor)
        yield descriptor
    finally:
        if mine:
            faulthandler.disable()
        if descriptor != _STDERR:
            os.close(descriptor)


def crash_report_file(folder: Path) -> Path:
    """Return the crash report file of the trial whose checkpoint is in this folder."""
    return folder / _FILE


def take_crash_report(folder: Path) -> str:
    """Return and remove the crash report of the last process; "" if it left no report."""
    path = crash_report_file(folder)
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
        path.unlink()
    except OSError:
        return ""
    before, _, report = text.partition("\n")
    machine, _, count = before.rpartition(" ")
    now_on, _, now = _memory_kills().rpartition(" ")
    is_known = count.isdecimal() and now.isdecimal() and machine == now_on
    return _KILLED_FOR_MEMORY if not report and is_known and int(now) > int(count) else report


_KILLED_FOR_MEMORY = "a kill by the system, for lack of memory"


def _memory_kills() -> str:
    """Return this machine, and how many processes it has killed for lack of memory; "" if it does not say."""
    try:
        counts = dict(map(str.split, Path("/proc/vmstat").read_text(encoding="ascii").splitlines()))
    except (OSError, ValueError):
        return ""
    return f"{this_machine()} {counts.get('oom_kill', '')}"


def failure_by_death(deaths: CrashCounts, text: str, limit_s: float | None, where: str) -> str | None:
    """Return the error message of a trial whose processes died.

    Return None if the trial is retried. `text` is the report of the last death, and `where` says in which
    part of the training it was. A trial also fails if its time limit, `limit_s`, has passed in native code.
    """
    if limit_s is not None and _TIMEOUT.search(text):
        return f"time limit passed {where}, in native code that did not return\n{text}"
    if deaths.in_run < MAX_WORKER_DEATHS and deaths.in_all < MAX_DEATHS:
        return None
    most = MAX_WORKER_DEATHS if deaths.in_run >= MAX_WORKER_DEATHS else deaths.in_all
    if not text:
        return f"the worker died {most} times {where}"
    fatal = _FATAL.search(text)
    summary = fatal[1].lower() if fatal else text.partition("\n")[0]
    rest = "" if text.strip() == summary else f"\n{text}"
    return f"the worker died {most} times {where}, the last time by: {summary}{rest}"


Result = TypeVar("Result")

_TRIES_FILE = "memory_tries"

_UNCHANGED_BATCHES = ("beside others", "alone")
"""The tries that do not split batches into more parts than the settings do."""

_OUT_OF_MEMORY = (
    "can't allocate memory",  # torch on a CPU
    "out of memory",  # CUDA
    "_ALLOC_FAILED",  # cuBLAS, cuFFT, cuSOLVER and cuSPARSE
    "_ALLOCATION_FAILED",  # cuDNN since version 9
)

_PERHAPS_OUT_OF_MEMORY = (
    "_STATUS_NOT_INITIALIZED",  # cuBLAS and cuDNN: their handles need memory outside torch's
    "was unable to find an engine",  # convolutions: torch skips algorithms that do not fit the memory
    # torch asks NVML which process uses the memory, but NVML fails with MIG
    "NVML_SUCCESS == r INTERNAL ASSERT FAILED",
)


class OomRetries:
    """Counter of a trial's out-of-memory failures.

    The count decides how the next try saves memory. The first two tries use whole batches: the first together
    with other trials, the second alone. Each further try splits batches into twice as many parts.
    """

    def __init__(self, settings: TrialSettings, folder: Path) -> None:
        train = settings.train
        self._settings, self._file = settings, folder / _TRIES_FILE
        self._parts = [train.accumulate for _ in _UNCHANGED_BATCHES]
        for parts in (train.accumulate << times for times in range(1, MAX_DOUBLINGS + 1)):
            if train.batch_size < parts or (train.loss_terms and train.batch_size % parts):
                break
            self._parts.append(parts)
        self.tries = 0
        """how often it has run out of memory so far"""

    @property
    def parts(self) -> int:
        """Return the number of parts into which the current try splits a batch."""
        return self._parts[self.tries]

    @property
    def settings(self) -> TrialSettings:
        """Return the trial's settings for the current try.

        They split each batch into `parts`. The trial keeps its id.
        """
        if self.parts == self._settings.train.accumulate:
            return self._settings
        return self._settings.with_train(accumulate=self.parts)

    @property
    def device_suffix(self) -> str:
        """Return the suffix ", batches in N parts" of a device's name, or "" if [train] sets this number."""
        return "" if self.parts == self._settings.train.accumulate else f", batches in {self.parts} parts"

    def read(self) -> None:
        """Read how often earlier processes of the trial ran out of memory."""
        with suppress(OSError, ValueError):
            self.tries = min(int(self._file.read_text("ascii")), len(self._parts) - 1)

    def next(self) -> bool:
        """Go to the next try, which needs less memory. Return False if there is no further try."""
        if self.tries + 1 >= len(self._parts):
            return False
        self.tries += 1
        with suppress(OSError):  # then the next process counts from 0 again
            self._file.write_text(f"{self.tries}", "ascii")
        return True


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error means that memory ran out. On a CPU, torch then raises a plain RuntimeError."""
    if isinstance(error, RuntimeError):
        return isinstance(error, torch.OutOfMemoryError) or any(text in str(error) for text in _OUT_OF_MEMORY)
    return isinstance(error, MemoryError)


def may_be_out_of_memory(error: BaseException) -> bool:
    """Return whether an error means, or may mean, that memory ran out.

    Some errors of CUDA's libraries leave their cause open.
    """
    is_likely = isinstance(error, RuntimeError) and any(text in str(error) for text in _PERHAPS_OUT_OF_MEMORY)
    return is_likely or is_out_of_memory(error)


def in_smaller_parts(compute: Callable[[int], Result], parts: int, most: int) -> Result:
    """Return `compute(parts)`. Whenever memory runs out, retry with twice as many parts, up to `most`."""
    while True:
        try:
            return compute(parts)
        except RuntimeError as error:
            if not may_be_out_of_memory(error) or 2 * parts > most:
                raise
        free_memory()  # only now, because until here the frames of the failed call held tensors
        parts *= 2


def evaluate_with_room(objective: Objective[ModelOf], model: ModelOf, *, last: bool) -> Metrics:
    """Evaluate a model, and again with batches split into more parts if memory runs out."""
    before, first = objective.state(), objective.evaluation_parts

    def evaluate(parts: int) -> Metrics:
        if parts > first:
            objective.restore(before)
        objective.evaluation_parts = parts
        return objective.evaluate(model, last=last)

    return in_smaller_parts(evaluate, first, objective.settings.train.batch_size)


def free_memory() -> None:
    """Free device memory that torch reserves but does not use. A lost device raises no error here."""
    # reference cycles, such as those of tracebacks, may still hold tensors
    gc.collect()
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        with suppress(RuntimeError):
            torch.cuda.empty_cache()
