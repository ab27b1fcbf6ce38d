"""Stops in order: a training is left between steps, or within one, when its time is over or somebody asks.

A training can be saved between two steps, so its loop asks there whether to stop. If a step lasts too long, a
timer's signal raises an exception in the main thread at its next Python instruction. That ends even an
endless loop in a block. After the first Ctrl-C trials end at their next step; the second ends at once.
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
"""The step or the evaluation under way may take so much longer, so that most can be saved after it."""

NATIVE_GRACE_S = 5.0
"""Native code, in which no Python runs, may take so much longer still; then its process ends."""

REPEAT_S = 1.0
"""Code that catches every exception is interrupted again after this time."""


class Interruption(BaseException):
    """A training is left midway; this is no Exception, so that blocks do not catch it."""


class TimeLimitPassed(Interruption):
    """The training has had its time."""


class StoppedMidway(Interruption):
    """Somebody has asked to stop."""


class _Alarm:
    """The one timer of the process: when what runs now is to be left, in seconds of the monotonic clock."""

    def __init__(self) -> None:
        self.limit_at = self.stop_at = math.inf
        self.armed = False

    def arm(self) -> None:
        """Set the timer to whichever comes first."""
        at = min(self.limit_at, self.stop_at)
        delay_s = 0.0 if math.isinf(at) else max(at - time.monotonic(), 1e-3)
        signal.setitimer(signal.ITIMER_REAL, delay_s, REPEAT_S if delay_s else 0.0)

    def ring(self, _signal: int, _frame: FrameType | None) -> None:
        """Raise the exception that is due; called by the signal."""
        now = time.monotonic()
        if self.armed and now >= self.stop_at:
            raise StoppedMidway
        if self.armed and now >= self.limit_at:
            raise TimeLimitPassed


_alarm = _Alarm()


@contextmanager
def interruptible(limit_s: float | None, crash_report: int = 2) -> Iterator[None]:
    """Leave a context by TimeLimitPassed some seconds after `limit_s`, or by StoppedMidway.

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
    """Leave interruptible contexts after `GRACE_S`, now and in future; a signal's handler may call it."""
    _alarm.stop_at = min(_alarm.stop_at, time.monotonic() + GRACE_S)
    if _alarm.armed:
        _alarm.arm()


def leave_if_asked() -> None:
    """Raise StoppedMidway if somebody has asked to stop."""
    if not math.isinf(_alarm.stop_at):
        raise StoppedMidway


def forget_stop() -> None:
    """Let trainings run again."""
    _alarm.stop_at = math.inf


SIGNALS = (signal.SIGINT, signal.SIGTERM)
"""Signals that ask for a stop: Ctrl-C, and the one that batch systems send."""


@dataclass(slots=True)
class Stop:
    """State of a run: whether it must stop, and whether a signal has asked for it."""

    requested: bool = False
    interrupted: bool = False


@contextmanager
def _handled_by(
    handler: Callable[[int, FrameType | None], None], signals: Sequence[signal.Signals]
) -> Iterator[None]:
    """Replace the handlers of signals within a context."""
    before = {number: signal.signal(number, handler) for number in signals}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


@contextmanager
def on_interrupt(on_request: Callable[[], None]) -> Iterator[Stop]:
    """Yield a Stop that Ctrl-C or SIGTERM requests, with `on_request`.

    A second one raises KeyboardInterrupt.
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
    """Let a SIGTERM leave the context by KeyboardInterrupt, as Ctrl-C does."""

    def leave(_signal: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    with _handled_by(leave, (signal.SIGTERM,)):
        yield


class StartLeft(BaseException):
    """A start of Ray is left, as somebody has asked to stop."""


@contextmanager
def left_when_asked() -> Iterator[None]:
    """Yield a context that the first Ctrl-C or SIGTERM leaves by StartLeft.

    The earlier handler runs first. Ray replaces the handler of SIGTERM by one that raises SystemExit. At
    the end all handlers are restored.
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
