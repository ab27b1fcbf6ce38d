"""Stops in order: after the first Ctrl-C trials end at their next step; the second ends at once."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

from ..core.interruption import forget_stop, stop_soon

SIGNALS = (signal.SIGINT, signal.SIGTERM)
"""What asks for a stop: Ctrl-C, and what batch systems send."""


@dataclass(slots=True)
class Stop:
    """State of a run: whether it must stop, and whether a signal has asked for it."""

    requested: bool = False
    interrupted: bool = False


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

    before = {number: signal.signal(number, ask) for number in SIGNALS}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        forget_stop()


@contextmanager
def left_by_sigterm() -> Iterator[None]:
    """Let a SIGTERM leave the context by KeyboardInterrupt, as Ctrl-C does."""

    def leave(_signal: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


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

    for number in SIGNALS:
        signal.signal(number, leave)
    try:
        yield
    except SystemExit:
        leave(signal.SIGTERM, None)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
