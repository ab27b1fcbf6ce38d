"""Clean stops: a training ends between two steps, or within one, on a time limit or a request.

The training loop checks for a request between two steps, where a checkpoint can be saved. If a step takes too
long, a timer's signal raises an exception in the main thread at its next Python instruction. This ends even
an endless loop in a block. After the first Ctrl-C trials end at their next step; the second Ctrl-C ends them
at once.
"""

from __future__ import annotations

import faulthandler
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

GRACE_S = 5.0
"""Extra time for the running step or evaluation after a stop or time limit, before it is interrupted."""

NATIVE_GRACE_S = 5.0
"""Further time for native code, which runs no Python; after it the process is killed."""

REPEAT_S = 1.0
"""Interval between repeated interruptions of code that catches every exception."""


class Interruption(BaseException):
    """Base of interruptions of a training; not an Exception, so that blocks do not catch it."""


class TimeLimitPassed(Interruption):
    """The training has reached its time limit."""


class StoppedMidway(Interruption):
    """A stop was requested during the training."""


class _Alarm:
    """The process's only timer: the deadlines of the running context, in seconds of the monotonic clock."""

    def __init__(self) -> None:
        self.limit_at = self.stop_at = math.inf
        self.armed = False

    def arm(self) -> None:
        """Set the timer to the earliest deadline."""
        at = min(self.limit_at, self.stop_at)
        delay_s = 0.0 if math.isinf(at) else max(at - time.monotonic(), 1e-3)
        signal.setitimer(signal.ITIMER_REAL, delay_s, REPEAT_S if delay_s else 0.0)

    def ring(self, _signal: int, _frame: FrameType | None) -> None:
        """Raise the exception whose deadline has passed; called by the signal."""
        now = time.monotonic()
        if self.armed and now >= self.stop_at:
            raise StoppedMidway
        if self.armed and now >= self.limit_at:
            raise TimeLimitPassed


_alarm = _Alarm()


@contextmanager
def interruptible(limit_s: float | None, crash_report: int = 2) -> Iterator[None]:
    """Raise TimeLimitPassed in a context some seconds after `limit_s`, or StoppedMidway on a request.

    Only the main thread can be interrupted; in any other it changes nothing. If native code does not return,
    the process ends and writes a traceback to the file descriptor `crash_report`. The next attempt reads it.
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
    """Request a stop: after `GRACE_S`, current and later interruptible contexts raise StoppedMidway.

    Safe in a signal handler.
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


SIGNALS = (signal.SIGINT, signal.SIGTERM)
"""Signals that request a stop: Ctrl-C, and the signal that batch systems send."""


@dataclass(slots=True)
class Stop:
    """Stop state of a run: whether it must stop, and whether a signal requested it."""

    requested: bool = False
    interrupted: bool = False


@contextmanager
def _handled_by(
    handler: Callable[[int, FrameType | None], None], signals: Sequence[signal.Signals]
) -> Iterator[None]:
    before = {number: signal.signal(number, handler) for number in signals}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


@contextmanager
def on_interrupt(on_request: Callable[[], None]) -> Iterator[Stop]:
    """Yield a Stop that Ctrl-C or SIGTERM sets; `on_request` is called then.

    A second signal raises KeyboardInterrupt.
    """
    stop = Stop()

    def ask(_signal: int, _frame: FrameType | None) -> None:
        if stop.interrupted:
            raise KeyboardInterrupt
        stop.requested = stop.interrupted = True
        stop_soon()
        on_request()

    try:
        with _handled_by(ask, SIGNALS):
            yield stop
    finally:
        forget_stop()


@contextmanager
def left_by_sigterm() -> Iterator[None]:
    """Raise KeyboardInterrupt on SIGTERM within a context, as on Ctrl-C."""

    def leave(_signal: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    with _handled_by(leave, (signal.SIGTERM,)):
        yield


class StartLeft(BaseException):
    """The start of Ray was aborted because a stop was requested."""


@contextmanager
def stopped_by_signals() -> Iterator[None]:
    """Raise StartLeft on the first Ctrl-C or SIGTERM within a context.

    The earlier handler runs first. Ray replaces the handler of SIGTERM by one that raises SystemExit. All
    handlers are restored at the end.
    """
    before = {int(number): signal.getsignal(number) for number in SIGNALS}

    def leave(number: int, frame: FrameType | None) -> None:
        if callable(handler := before[number]):
            handler(number, frame)
        raise StartLeft

    with _handled_by(leave, SIGNALS):
        try:
            yield
        except SystemExit:
            leave(signal.SIGTERM, None)
