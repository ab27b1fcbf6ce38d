"""State of a training process: threads, memory, random numbers, and requests to stop.

By default glibc returns large freed blocks to the system, and the next step must fault the pages in again.
That costs up to a fifth of the time of steps with large batches.

A training ends between two steps, or within one, on a time limit or a request. The training loop checks for a
request between two steps, where a checkpoint can be saved. If a step takes too long, a timer's signal raises
an exception in the main thread at its next Python instruction. This ends even an endless loop in a block.
After the first Ctrl-C trials end at their next step; the second Ctrl-C ends them at once.
"""

from __future__ import annotations

import ctypes
import faulthandler
import hashlib
import math
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

import torch
from torch import Generator, Tensor

# constants of malloc.h
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_NEVER = -1

LARGEST_BLOCK = 2**25
"""Blocks of this many bytes or more are allocated by mmap; glibc allows no larger threshold."""


def prepare_cpu(threads: int) -> None:
    """Set the number of threads, and make malloc keep freed memory until `give_back_memory`."""
    torch.set_num_threads(threads)
    if (library := _glibc()) is not None:
        library.mallopt(_M_MMAP_THRESHOLD, LARGEST_BLOCK)
        library.mallopt(_M_TRIM_THRESHOLD, _NEVER)


@contextmanager
def restored_process() -> Iterator[None]:
    """Restore threads, malloc's settings and warning filters when this context ends.

    glibc offers no way to read its thresholds. They are set to the values that glibc itself uses after a
    large block was freed.
    """
    threads = torch.get_num_threads()
    try:
        with warnings.catch_warnings():  # scipy installs a filter when it is imported
            yield
    finally:
        torch.set_num_threads(threads)
        if (library := _glibc()) is not None:
            library.mallopt(_M_TRIM_THRESHOLD, 2 * LARGEST_BLOCK)
            library.malloc_trim(0)


def give_back_memory() -> None:
    """Return freed memory to the system.

    This includes gaps between blocks that are still in use. Call it after a training, and between parts of
    work that leave such gaps.
    """
    if (library := _glibc()) is not None:
        library.malloc_trim(0)


def _glibc() -> ctypes.CDLL | None:
    """Return the C library if it can configure malloc here, else None.

    This needs glibc on Linux, and no environment variable that already configures malloc.
    """
    if sys.platform != "linux" or "glibc.malloc" in os.environ.get("GLIBC_TUNABLES", ""):
        return None
    if any(name in os.environ for name in ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_")):
        return None
    library = ctypes.CDLL(None)
    return library if hasattr(library, "mallopt") and hasattr(library, "malloc_trim") else None


def derive_seed(seed: int, purpose: str) -> int:
    """Return a 63-bit seed for one purpose of a trial, such as its data.

    The seed does not depend on the recipe, so that trials of different models can share random numbers.
    """
    digest = hashlib.sha256(f"{seed}:{purpose}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


class DeviceStream:
    """The random number stream of one training, separate from torch's default generator.

    Within `in_process`, it replaces the default generator.
    """

    def __init__(self, device: torch.device, seed: int) -> None:
        self._device = device
        self._state = Generator(device).manual_seed(seed).get_state()
        self._drawing = False
        self.settled = True  # False if an interruption left it between two states

    @property
    def state(self) -> Tensor:
        """Return the current state of the random stream."""
        return self._of_process() if self._drawing else self._state

    @state.setter
    def state(self, state: Tensor) -> None:
        """Continue from a saved state. A state of a different kind of device serves only as a seed."""
        state = state.cpu()
        if state.numel() != self._state.numel():
            digest = hashlib.sha256(state.numpy().tobytes()).digest()
            state = Generator(self._device).manual_seed(int.from_bytes(digest[:8])).get_state()
        self._state = state

    @contextmanager
    def in_process(self) -> Iterator[None]:
        """Within this context, use this stream as the process's default random generator."""
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
                # an interruption between these lines loses the state; then `settled` stays False
                before, self.settled = self.settled, False
                self._state, self._drawing = self._of_process(), False
                self.settled = before

    def _of_process(self) -> Tensor:
        if self._device.type == "cuda":
            return torch.cuda.get_rng_state(self._device)
        return torch.get_rng_state()


GRACE_S = 5.0
"""Seconds that a running step or evaluation still has after a stop request or the time limit."""

NATIVE_GRACE_S = 5.0
"""Further seconds for native code, in which Python cannot raise an exception; then the process is killed."""

REPEAT_S = 1.0
"""Seconds between repeated interruptions, for code that catches every exception."""


class Interruption(BaseException):
    """Base class of interruptions of a training. It is not an Exception, so that blocks do not catch it."""


class TimeLimitPassed(Interruption):
    """Interruption of a training that has reached its time limit."""


class StoppedMidway(Interruption):
    """Interruption of a training because a stop was requested."""


class _Alarm:
    """The timer of this process, which interrupts a training.

    It rings at the time limit, or soon after a stop request. The two deadlines are in seconds of the
    monotonic clock, and infinite while there are none.
    """

    def __init__(self) -> None:
        self.limit_at = self.stop_at = math.inf
        self.armed = False

    def arm(self) -> None:
        at = min(self.limit_at, self.stop_at)
        # a delay of 0 switches the timer off, so a deadline that has passed gets a small delay
        delay_s = 0.0 if math.isinf(at) else max(at - time.monotonic(), 1e-3)
        signal.setitimer(signal.ITIMER_REAL, delay_s, REPEAT_S if delay_s else 0.0)

    def ring(self, _signal: int, _frame: FrameType | None) -> None:
        """Handle the timer's signal: raise an interruption if one of the two deadlines has passed."""
        now = time.monotonic()
        if self.armed and now >= self.stop_at:
            raise StoppedMidway
        if self.armed and now >= self.limit_at:
            raise TimeLimitPassed


_alarm = _Alarm()


@contextmanager
def interruptible(limit_s: float | None, crash_report: int = 2) -> Iterator[None]:
    """Within this context, interrupt a training at its time limit or on a stop request.

    Raise TimeLimitPassed soon after `limit_s`, or StoppedMidway on a stop request. Only the main thread can
    be interrupted; in other threads the context does nothing. If native code does not return, the process
    ends and writes a traceback to the file descriptor `crash_report`. The next attempt reads it.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGALRM, _alarm.ring)
    _alarm.limit_at = math.inf if limit_s is None else time.monotonic() + max(limit_s, 0.0) + GRACE_S
    _alarm.armed = True
    if limit_s is not None:
        latest_s = max(limit_s, 0.0) + GRACE_S + NATIVE_GRACE_S
        faulthandler.dump_traceback_later(latest_s, exit=True, file=crash_report)
    try:
        _alarm.arm()
        yield
    finally:
        if limit_s is not None:
            faulthandler.cancel_dump_traceback_later()
        _alarm.armed, _alarm.limit_at = False, math.inf
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def stop_soon() -> None:
    """Request a stop.

    Once `GRACE_S` has passed, interruptible contexts raise StoppedMidway. This also applies to contexts that
    are entered later. Signal handlers may call this function.
    """
    _alarm.stop_at = min(_alarm.stop_at, time.monotonic() + GRACE_S)
    if _alarm.armed:
        _alarm.arm()


def raise_if_stopped() -> None:
    """Raise StoppedMidway if a stop was requested."""
    if not math.isinf(_alarm.stop_at):
        raise StoppedMidway


def forget_stop() -> None:
    """Clear a requested stop, so that trainings can run again."""
    _alarm.stop_at = math.inf


CLOSED = getattr(signal, "SIGHUP", None)
"""The signal of a terminal that is closed, which does not exist on every system."""

SIGNALS = (signal.SIGINT, signal.SIGTERM, *([CLOSED] if CLOSED is not None else []))
"""Signals that request a stop: Ctrl-C, the signal that batch systems send, and that of a closed terminal."""


@dataclass(slots=True)
class Stop:
    """Flags that record a request to stop a run.

    `requested` says that the run must stop. `stop_signal` is the signal that requested it, if one did.
    """

    requested: bool = False
    stop_signal: signal.Signals | None = None

    @property
    def interrupted(self) -> bool:
        """Return whether a signal requested the stop."""
        return self.stop_signal is not None


@contextmanager
def _handled_by(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    # nohup makes a program ignore that its terminal is closed
    numbers = [each for each in SIGNALS if each != CLOSED or signal.getsignal(each) != signal.SIG_IGN]
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


@contextmanager
def on_interrupt(on_request: Callable[[], None]) -> Iterator[Stop]:
    """Within this context, handle Ctrl-C, SIGTERM and a closed terminal as a request to stop.

    The first signal sets the Stop that is yielded, and calls `on_request`. A second Ctrl-C or SIGTERM raises
    KeyboardInterrupt. Where that is raised in code that ignores errors, such as `__del__`, it is sent again.
    """
    stop = Stop()
    is_urgent = False
    report, again = sys.unraisablehook, list[threading.Timer]()

    def send_again(ignored: sys.UnraisableHookArgs) -> None:
        if not isinstance(ignored.exc_value, KeyboardInterrupt):
            report(ignored)
        else:
            again.append(threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGINT)))
            again[-1].start()

    def ask(number: int, _frame: FrameType | None) -> None:
        nonlocal is_urgent
        if stop.interrupted and number == CLOSED:  # the system and the shell may both send it
            return
        if stop.interrupted:
            is_urgent = True
            raise KeyboardInterrupt
        stop.requested, stop.stop_signal = True, signal.Signals(number)
        stop_soon()
        on_request()

    sys.unraisablehook = send_again
    try:
        with _handled_by(ask):
            yield stop
    except Exception as error:
        if is_urgent:  # compiled code, such as Polars, may turn a KeyboardInterrupt into an error of its own
            raise KeyboardInterrupt from error
        raise
    finally:
        for timer in again:
            timer.cancel()
        sys.unraisablehook = report
        forget_stop()


@contextmanager
def apart_from_terminal() -> Iterator[None]:
    """Within this context, start programs that outlive a closed terminal, until this process ends them."""
    if CLOSED is None:
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {CLOSED})  # programs inherit which signals are blocked
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class StartAborted(BaseException):
    """Exception that aborts the start of Ray when a stop is requested."""


@contextmanager
def stopped_by_signals() -> Iterator[None]:
    """Within this context, raise StartAborted on the first signal that requests a stop.

    The earlier handler runs first. Ray replaces the handler of SIGTERM by one that raises SystemExit. All
    handlers are restored at the end.
    """
    before = {int(number): signal.getsignal(number) for number in SIGNALS}

    def leave(number: int, frame: FrameType | None) -> None:
        if callable(handler := before[number]):
            handler(number, frame)
        raise StartAborted

    with _handled_by(leave):
        try:
            yield
        except SystemExit:
            leave(signal.SIGTERM, None)
